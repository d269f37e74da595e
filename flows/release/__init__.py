"""Pairs of a workspace to a versioned release."""
