"""Coding tasks that verify themselves, and the sandbox they are worked on in."""
