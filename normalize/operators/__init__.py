"""data-juicer operators for preference pairs."""
