"""Files, rows, datasets and remote files, before any format is known."""
