"""What several readers share: messages, contexts, verdicts, counts."""
