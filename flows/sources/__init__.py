"""Where sessions are: discovery, watermarks, sampling, shard plan."""
