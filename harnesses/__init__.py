"""Per harness: tool schemas, stand-in system prompt, tool → operation, and what a model is shown."""
