"""Messages → redacted messages and findings."""
