"""Losses of training: pure functions of tensors, each with its equation and its source."""
