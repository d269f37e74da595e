"""Parse command lines, patches and SQL, and find out what they do."""
