"""Read files, rows, datasets and remote files of any format."""
