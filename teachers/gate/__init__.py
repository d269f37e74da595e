"""The value-of-information gate: which steps are asked."""
