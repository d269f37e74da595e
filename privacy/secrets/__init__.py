"""Detect secrets in assignments, commands, encodings and known formats."""
