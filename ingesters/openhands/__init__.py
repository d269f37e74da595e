"""Read sessions of OpenHands: event format V0 and SDK V1."""
