"""A small library that tasks are made of: crops, beds, dates, weights and orders."""
