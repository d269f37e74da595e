"""Sources to traces in the workspace, incremental and parallel."""
