"""Restrictions in vendors' terms on training with outputs of their models."""

_RESTRICTED = {
    "anthropic": "Anthropic's terms forbid training a competing model on outputs without its approval",
    "openai": "OpenAI's terms forbid using outputs to develop models that compete with its own",
    "google": "Google's terms restrict developing models that compete with its own",
}
_OPEN_WEIGHTS = ("gpt-oss", "gemma")


def find_vendor_restriction(family: str, model: str) -> str | None:
    """Return what the terms of a model restrict, as a sentence; None if nothing is known."""
    if any(name in model for name in _OPEN_WEIGHTS):
        return None
    return _RESTRICTED.get(family)
