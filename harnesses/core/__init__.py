"""The vocabulary of harnesses and tools."""
