"""Prices of models and of prompt caches."""
