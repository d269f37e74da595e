"""Calls to OpenRouter and other chat completions servers."""
