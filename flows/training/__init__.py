"""A release to a checkpoint."""
