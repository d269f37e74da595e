"""Teachers without a server: recorded and simulated."""
