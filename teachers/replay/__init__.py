"""A replay: questions to replies, through one ledger."""
