"""One module a harness: its tools, prompts and versions."""
