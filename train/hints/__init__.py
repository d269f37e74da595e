"""Hints at failed actions: where they are, what they say, and the rows they make."""
