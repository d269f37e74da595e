"""Read session files into traces, one format per subpackage."""
