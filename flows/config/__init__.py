"""The configuration of a run, and what is built from it."""
