"""Personal data: names, addresses, accounts, numbers."""
