"""DPOPairs → NormalizedDPOPairs and dropped rows, by a data-juicer recipe."""
