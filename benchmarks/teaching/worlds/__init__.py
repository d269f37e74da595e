"""Worlds with tools, in which the right action is known at every step."""
