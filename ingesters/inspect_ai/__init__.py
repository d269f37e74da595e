"""Read logs of inspect."""
