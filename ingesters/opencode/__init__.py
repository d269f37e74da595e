"""Read sessions that opencode exports."""
