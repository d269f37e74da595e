"""A server that speaks as OpenRouter does, for tests and dry runs."""
