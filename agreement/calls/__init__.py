"""Tool calls in normal form, and the effect each has."""
