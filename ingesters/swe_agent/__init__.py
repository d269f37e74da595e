"""Read trajectories of SWE-agent."""
