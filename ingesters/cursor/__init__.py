"""Read conversations of Cursor: its databases and its exports as Markdown."""
