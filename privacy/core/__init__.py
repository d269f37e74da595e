"""Rules, lists, known values and placeholders."""
