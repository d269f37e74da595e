"""Find attempts to earn a reward without doing the work."""
