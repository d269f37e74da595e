"""Detect personal data: names, addresses, accounts and numbers."""
