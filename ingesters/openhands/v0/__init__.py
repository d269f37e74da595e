"""Read events of OpenHands 0.x."""
