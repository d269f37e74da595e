"""Four arms of the three-channel trainer, compared on tasks of an environment."""
