"""Read tables of chat messages, one run a row, as SWE-Gym has them."""
