"""Read sessions of Gemini CLI."""
