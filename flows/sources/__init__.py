"""Sources of sessions: discovery, watermarks, sampling, shard plan."""
