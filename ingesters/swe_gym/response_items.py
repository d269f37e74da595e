"""Convert items of OpenAI's Responses API to chat messages; the items of one answer form one message.

Source: https://platform.openai.com/docs/api-reference/responses. Items that are read are `message`,
`function_call`, `function_call_output` and `reasoning`; a row with any other is left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from tracemill.ingesters.swe_gym.row_messages import NotUnderstood, check_known_keys, item_not_understood
from tracemill.ingesters.swe_gym.row_signs import holds_transitions

CALL_KEYS = frozenset(("type", "id", "call_id", "name", "arguments", "status"))
OUTPUT_KEYS = frozenset(("type", "id", "call_id", "output", "status"))
REASONING_KEYS = frozenset(("type", "id", "summary", "content", "encrypted_content", "status"))
ITEM_KEYS: Mapping[str, frozenset[str]] = {
    "function_call": CALL_KEYS,
    "function_call_output": OUTPUT_KEYS,
    "reasoning": REASONING_KEYS,
}
"""Items without a role, with their keys."""
TEXT_BEHIND_CALL = "text behind a call of the same answer"


def is_response_item(item: Any) -> bool:
    """Return whether a value is an item of the Responses API: it has a type and no role."""
    return isinstance(item, dict) and item.get("role") is None and isinstance(item.get("type"), str)


def items_of_response(row: Mapping[str, Any]) -> list[Any]:
    """Return the items of a request and its response, `instructions` first as the system message.

    Raises NotUnderstood.
    """
    given, told, output = row["input"], row.get("instructions"), row["output"]
    asked = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if holds_transitions(output):
        asked, output = [], _last_transition(output)
    return [*([{"role": "system", "content": told}] if told else []), *asked, *output]


def _last_transition(transitions: Sequence[list[Any]]) -> list[Any]:
    """Return the items after the last transition, which are those of the whole run.

    Each transition of an agent of Aviary holds all that the model saw and said until then, the request first
    (responses_api_agents/aviary_agent of https://github.com/NVIDIA-NeMo/Gym). Raises NotUnderstood where one
    does not begin with the one before it: what an agent hid from its model is told by no item.
    """
    if any(after[: len(before)] != before for before, after in pairwise(transitions)):
        raise NotUnderstood("transitions that change what stood before")
    return transitions[-1]


def chat_of_items(listed: Sequence[Any]) -> Iterator[Any]:
    """Yield the items as chat messages, in order. Raises NotUnderstood."""
    answer: dict[str, Any] | None = None
    for item in listed:
        kind = item.get("type") if is_response_item(item) else "message"
        if kind not in ITEM_KEYS and kind != "message":
            raise item_not_understood(kind)
        if kind in ITEM_KEYS:
            check_known_keys(item, ITEM_KEYS[kind], f"key of {kind}")
        if kind in ("function_call", "reasoning"):
            answer = answer or {"role": "assistant", "content": ""}
            _add(item, kind, answer)
            continue
        if kind == "message" and isinstance(item, dict) and item.get("role") == "assistant":
            if answer is not None and answer.get("tool_calls"):
                raise NotUnderstood(TEXT_BEHIND_CALL)
            if answer is not None and answer["content"]:
                yield answer
                answer = None
            answer = (answer or {}) | {key: value for key, value in item.items() if key != "phase"}
            continue
        if answer is not None:
            yield answer
            answer = None
        yield _output(item) if kind == "function_call_output" else item
    if answer is not None:
        yield answer


def _add(item: Mapping[str, Any], kind: str, answer: dict[str, Any]) -> None:
    """Add a call or thoughts to the answer that they belong to."""
    if kind == "function_call":
        call_id, arguments = item.get("call_id"), item.get("arguments")
        if not isinstance(call_id, str) or not call_id or not isinstance(arguments, str):
            raise NotUnderstood("function_call without call_id or arguments")
        call = {"id": call_id, "function": {"name": item.get("name"), "arguments": arguments}}
        answer.setdefault("tool_calls", []).append(call)
        return
    thoughts = [answer["reasoning_content"]] if answer.get("reasoning_content") else []
    for part in [*(item.get("summary") or ()), *(item.get("content") or ())]:
        if not isinstance(part, dict) or not isinstance(part.get("text"), str):
            raise NotUnderstood("part of reasoning not understood")
        thoughts.append(part["text"])
    answer["reasoning_content"] = "\n\n".join(thoughts)


def _output(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of a call. Raises NotUnderstood where it does not name its call."""
    call_id, output = item.get("call_id"), item.get("output")
    if not isinstance(call_id, str) or not call_id or not isinstance(output, str | list):
        raise NotUnderstood("function_call_output without call_id or output")
    return {"role": "tool", "tool_call_id": call_id, "content": output}
