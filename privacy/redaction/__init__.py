"""The redactor: messages and traces without secrets and names."""
