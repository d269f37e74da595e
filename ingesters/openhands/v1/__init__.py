"""Read events of the OpenHands SDK (V1)."""
