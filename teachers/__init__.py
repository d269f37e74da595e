"""Steps → decisions and replies; prices, ledger, gate."""
