"""Training with TRL, in a process of its own."""
