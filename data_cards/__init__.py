"""Rows → a release with its card."""
