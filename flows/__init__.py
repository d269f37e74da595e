"""Everything in order: Prefect flows, run configuration, command line, workspace paths."""
