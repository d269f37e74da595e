"""In which order and how fast questions are sent."""
