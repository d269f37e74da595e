"""The ledger: what was bought, and the hard cap."""
