"""Tables of recorded answers of several models, drawn into students and teachers."""
