"""The card of a release (README.md) and its checks."""
