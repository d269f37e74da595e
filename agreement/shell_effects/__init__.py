"""What command lines read, search, test and change."""
