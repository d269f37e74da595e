"""One harness a file: its tools, prompts and versions."""
