"""Rows of chat messages, as SWE-Gym has them."""
