"""The version of tracemill, read by the build."""

__version__ = "0.1.0"
