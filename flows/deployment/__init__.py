"""The deployments of a configuration at a Prefect server."""
