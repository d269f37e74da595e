"""Read completion logs of OpenHands, which hold the prompts as they were sent."""
