"""Refuse requests that real vendor families refuse."""

from collections.abc import Mapping, Sequence
from typing import Any

_FORCED_REFUSED = ("claude-opus-5", "claude-fable-5", "claude-sonnet-5")
_REASONING = ("reasoning", "reasoning_details", "reasoning_content")


def family_quirk_refusal(model: str, family: str, wanted: Mapping[str, Any]) -> str:
    """Return why a model of this family refuses the request with HTTP 400; "" if it does not."""
    messages: Sequence[Mapping[str, Any]] = wanted["messages"]
    if any(message.get("content") is None for message in messages):
        return "messages: content must be a string or a list of parts"
    if any(message.get(field) for message in messages for field in _REASONING):
        return "reasoning blocks of another model or conversation"
    forced = wanted.get("tool_choice") not in (None, "auto", "none")
    if forced and any(name in model for name in _FORCED_REFUSED):
        return "tool_choice: only auto and none are supported"
    if family == "deepseek" and any(m.get("tool_calls") and "reasoning_content" not in m for m in messages):
        return "reasoning_content is missing in an assistant turn that calls tools"
    if family == "anthropic":
        return _marks(messages)
    return ""


def _marks(messages: Sequence[Mapping[str, Any]]) -> str:
    parts = [part for m in messages if isinstance(m["content"], list) for part in m["content"]]
    marked = [part for part in parts if "cache_control" in part]
    if any(not part.get("text") for part in marked):
        return "cache_control cannot be set for empty text blocks"
    return "a maximum of 4 blocks with cache_control may be provided" if len(marked) > 4 else ""
