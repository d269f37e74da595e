"""Judge a finished release, and scan files."""
