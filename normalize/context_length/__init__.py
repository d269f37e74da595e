"""Token counts, and contexts cut to a length."""
