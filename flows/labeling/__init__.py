"""Traces to decisions, replies, votes and pairs."""
