"""Formats of keys and tokens by vendor."""
