"""Checks that ask real servers, within a fixed small sum."""
