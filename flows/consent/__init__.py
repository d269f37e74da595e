"""Who agreed to send what where."""
