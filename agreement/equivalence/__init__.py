"""When two actions are the same: the levels, from exact to same class."""
