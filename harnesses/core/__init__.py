"""Types and schema builders that describe harnesses and tools."""
