"""OpenHands sessions, rows, events and completion logs."""
