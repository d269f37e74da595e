"""mini-swe-agent trajectories."""
