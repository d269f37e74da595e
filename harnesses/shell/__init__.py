"""Command lines, patches and SQL: parsed, and what they do."""
