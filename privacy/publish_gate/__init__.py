"""What judges a finished release and scans files."""
