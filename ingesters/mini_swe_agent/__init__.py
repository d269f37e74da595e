"""Read trajectories of mini-swe-agent."""
