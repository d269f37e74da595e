"""Completion logs of OpenHands: the prompts as they were sent."""
