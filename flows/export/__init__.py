"""Write stored traces in formats that other programs read."""
