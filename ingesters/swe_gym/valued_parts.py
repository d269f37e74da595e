"""Convert messages whose content parts are {type, value}, as version 1 of LLaMA-Factory keeps them.

Source: src/llamafactory/v1/utils/types.py of https://github.com/hiyouga/LLaMA-Factory. Parts that are read
are `text`, `reasoning` and `tool_call`, whose value is the JSON of a call; a row with any other is left out.
"""

from collections.abc import Mapping
from typing import Any

from tracemill.ingesters.swe_gym.response_items import TEXT_BEHIND_CALL
from tracemill.ingesters.swe_gym.row_messages import NotUnderstood, part_not_understood
from tracemill.ingesters.swe_gym.sharegpt_turns import read_call

VALUED_PARTS = frozenset(("text", "reasoning", "tool_call"))


def holds_valued_parts(item: Any) -> bool:
    """Return whether a message has parts of {type, value}."""
    content = item.get("content") if isinstance(item, dict) and isinstance(item.get("role"), str) else None
    return isinstance(content, list) and bool(content) and all(map(_is_valued, content))


def chat_of_valued(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message as a chat message. Raises NotUnderstood."""
    texts: list[dict[str, Any]] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    for part in item["content"]:
        kind, value = part["type"], part["value"]
        if kind not in VALUED_PARTS or not isinstance(value, str):
            raise part_not_understood(kind)
        if kind == "tool_call":
            calls.append(read_call(value))
        elif calls:
            raise NotUnderstood(TEXT_BEHIND_CALL)
        elif kind == "reasoning":
            thoughts.append(value)
        else:
            texts.append({"type": "text", "text": value})
    if item["role"] != "assistant" and (thoughts or calls):
        raise NotUnderstood("thoughts or calls in a message that is not the agent's")
    read = {"reasoning_content": "\n\n".join(thoughts)} if thoughts else {}
    return {**item, "content": texts, **read} | ({"tool_calls": calls} if calls else {})


def _is_valued(part: Any) -> bool:
    return isinstance(part, dict) and isinstance(part.get("type"), str) and part.keys() == {"type", "value"}
