"""Secrets: in assignments, commands, encodings and known formats."""
