"""Command lines in normal form."""
