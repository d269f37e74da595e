"""Calls, cost and time of a run, before it starts."""
