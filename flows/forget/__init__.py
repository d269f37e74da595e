"""Remove sessions and values from a workspace."""
