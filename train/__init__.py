"""Train a checkpoint on a release, with a TRL trainer in a child process."""
