"""The version of tracemill; the package is built under it."""

__version__ = "0.1.0"
