"""This process: interrupts, worker pool, progress, terminal, masked errors."""
