"""Traces and replies → preference pairs."""
