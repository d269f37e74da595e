"""Parts of a teacher: question, settings, price, protocol."""
