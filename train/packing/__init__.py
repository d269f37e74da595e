"""Shared-prefix packing: each token prefix that rows of a batch share is computed once."""
