"""Votes of teachers at a step, and what they come to."""
