"""Agent harnesses: tool schemas, stand-in prompts, tool → operation, and what a model is shown."""
