"""Tasks for other libraries, each of which wants a virtual environment of its own: OpenEnv, verifiers."""
