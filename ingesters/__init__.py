"""Files → Traces; one dialect a file, nothing is judged here."""
