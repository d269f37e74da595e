"""Code shared by several readers: messages, contexts, verdicts, counts."""
