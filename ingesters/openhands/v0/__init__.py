"""OpenHands 0.x events."""
