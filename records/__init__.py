"""Data types shared by all packages, and the workspace on disk; imports no other package of tracemill."""
