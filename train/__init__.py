"""A release becomes a checkpoint: TRL's trainer in a child process."""
