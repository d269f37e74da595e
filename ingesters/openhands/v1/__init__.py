"""OpenHands SDK 1.x events."""
