"""Read sessions of Pi."""
