"""Read session traces of the Hub."""
