"""Redact secrets and names in messages and traces."""
