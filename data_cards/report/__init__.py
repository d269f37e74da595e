"""The report of a release: figures and one HTML page."""
