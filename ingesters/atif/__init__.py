"""Read trajectories in the Agent Trajectory Interchange Format."""
