"""Redact messages, and check what is published for private data."""
