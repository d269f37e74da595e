"""Parse the messages of a row: chat messages, Anthropic content blocks, messages of DataClaw.

A message with parts that the reader does not understand (parts of another library, items of another API,
unknown keys) is not read in part: `NotUnderstood` is raised, and the row is left out.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tracemill.ingesters.common.chat_messages import make_chat_observation, parse_chat_message
from tracemill.ingesters.common.openai_messages import (
    IMAGE_PARTS,
    TEXT_PARTS,
    THOUGHT_PARTS,
    openai_argument_text,
    openai_content_text,
    unread_calls,
    unread_content,
)
from tracemill.ingesters.reading.result_text import error_kind_of
from tracemill.records.ingest_report import record_type
from tracemill.records.message import Message, ToolCall

_READ_KEYS_TEXT = """role content text tool_calls tool_call_id tool_call_ids call_id function_call
    name system_prompt reasoning_content thinking_blocks is_demo is_error tool_uses thinking
    reasoning"""
_READ_KEYS = frozenset(_READ_KEYS_TEXT.split())
_METADATA_KEYS_TEXT = """agent message_type action thought cache_control mask cutoff_date extra id
    uuid index type timestamp created created_at date model source status usage stop_reason
    finish_reason stop_sequence logprobs metadata weight tag provider_specific_fields provider
    annotations token_ids tool_name"""
_METADATA_KEYS = frozenset(_METADATA_KEYS_TEXT.split())
"""Keys with facts about a message that no model was shown."""
KNOWN_KEYS = _READ_KEYS | _METADATA_KEYS
_PLAIN_KEYS = KNOWN_KEYS - {"tool_uses", "thinking", "reasoning", "is_error"}
READ_PARTS = IMAGE_PARTS | TEXT_PARTS | THOUGHT_PARTS | {"tool_use", "tool_result", "tool_reference"}
ROLES = frozenset(("system", "developer", "user", "assistant", "ai", "tool", "function"))
_USE_KEYS = frozenset(("tool", "input", "output", "status", "id", "tool_use_id", "timestamp"))
_OUTPUT_TEXTS = ("text", "output", "content")
_OUTPUT_METADATA = frozenset(("raw", "exit_code", "wall_time", "duration", "truncated", "stdout", "stderr"))
_LOADED = "[tool loaded: "
_PLAIN_NAME = re.compile(r"[A-Za-z_][\w.-]{0,39}")


class NotUnderstood(ValueError):
    """A message has a part that the reader does not understand.

    The text names none of its content; `kind` is the name that a census uses for the part.
    """

    def __init__(self, words: str, kind: str = "") -> None:
        super().__init__(words)
        self.kind = kind


def part_not_understood(kind: object) -> NotUnderstood:
    """Return the error for a content part of an unknown type or shape."""
    return NotUnderstood(f"content part not understood: {plain_name(kind)}", f"part {record_type(kind)}")


def item_not_understood(kind: object) -> NotUnderstood:
    """Return the error for an unknown item of the Responses API."""
    return NotUnderstood(f"item not understood: {plain_name(kind)}", f"item {record_type(kind)}")


def parse_row_message(item: Any, place: int) -> list[Message]:
    """Return the message of a row's item and its results as messages, none for an empty one.

    Raises NotUnderstood.
    """
    if not isinstance(item, dict):
        raise NotUnderstood("message that is not an object")
    content = item.get("content")
    plain = item.keys() <= _PLAIN_KEYS and "role" in item
    if not plain:
        _check_keys(item)
        if item.get("tool_uses"):
            return _with_tool_uses(item, place)
    if isinstance(content, list | dict):
        parts = content if isinstance(content, list) else [content]
        if _check_parts(parts):
            return _of_blocks(item, parts, place)
    _check_texts(item)
    message = parse_chat_message(item, f"call-{place}")
    if message is None:
        raise _role_not_understood(item)
    _check_calls(item, message.role)
    if message.role == "assistant":
        if not plain and message.reasoning is None:
            message = replace(message, reasoning=_thought(item))
    elif not plain and message.role == "tool" and isinstance(item.get("is_error"), bool):
        message = _flagged(message, item["is_error"])
    return [message]


def _check_keys(item: Mapping[str, Any]) -> None:
    kind = item.get("type")
    if "role" not in item and isinstance(kind, str):
        raise item_not_understood(kind)
    check_known_keys(item, KNOWN_KEYS, "message key")


def _check_texts(item: Mapping[str, Any]) -> None:
    """Raise NotUnderstood where a text has a shape that is not read."""
    for key in ("content", "text", "system_prompt"):
        value = item.get(key)
        if not has_no_text(value) and (unread := unread_content(value)):
            raise part_not_understood(unread[0])
        if isinstance(value, int | float):
            raise NotUnderstood(f"{key} that is a number")


def _check_calls(item: Mapping[str, Any], role: str) -> None:
    """Raise NotUnderstood where a call is not fully read, or is in a message that is not the agent's."""
    if unread := unread_calls(item):
        raise NotUnderstood(f"tool call not understood: {unread[0]}")
    if item.get("tool_calls") and role != "assistant":
        raise NotUnderstood("tool_calls in a message that is not the agent's")


def _role_not_understood(item: Mapping[str, Any]) -> NotUnderstood:
    role = item.get("role")
    return NotUnderstood(f"role not understood: {plain_name(role)}", f"message {record_type(role)}")


def has_no_text(value: Any) -> bool:
    """Return whether a value can hold no text: None, a number, a flag, or an empty value."""
    return (
        value is None
        or isinstance(value, int | float)
        or (isinstance(value, str | list | dict) and not value)
    )


def check_known_keys(item: Mapping[str, Any], known: frozenset[str], label: str) -> None:
    """Raise NotUnderstood where an unknown key has a value that may hold text."""
    for key, value in item.items():
        if key not in known and not has_no_text(value):
            raise NotUnderstood(f"{label} not understood: {plain_name(key)}")


def plain_name(name: object) -> str:
    """Return a name that is a plain word, and so reveals no content; else a stand-in."""
    return (
        name if isinstance(name, str) and _PLAIN_NAME.fullmatch(name) else "a name that is not a plain word"
    )


def _check_parts(parts: Sequence[Any]) -> bool:
    """Return whether the parts are content blocks of Anthropic's API beyond text and images."""
    blocks = False
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in ("tool_use", "tool_result") or kind in THOUGHT_PARTS:
            blocks = True
        elif unread := unread_content([part]):
            if kind in IMAGE_PARTS:
                raise NotUnderstood("image without an address or data")
            raise part_not_understood(unread[0] if kind in READ_PARTS or kind is None else kind)
    return blocks


def _of_blocks(item: Mapping[str, Any], parts: Sequence[Any], place: int) -> list[Message]:
    """Return a message of content blocks, with its results before the text that came with them."""
    calls: list[ToolCall] = []
    results: list[Message] = []
    thoughts: list[str] = []
    rest: list[Any] = []
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "tool_use":
            calls.append(
                _call(part.get("id"), part.get("name"), part.get("input"), f"call-{place}-{len(calls)}")
            )
        elif kind == "tool_result":
            results.append(_result(part))
        elif kind in THOUGHT_PARTS:
            thoughts.append(str(part.get("thinking") or ""))
        else:
            rest.append(part)
    role, text = item.get("role"), openai_content_text(rest)
    if calls and role not in ("assistant", "ai"):
        raise NotUnderstood("tool_use in a message that is not the agent's")
    if results and role in ("assistant", "ai"):
        raise NotUnderstood("tool_result in a message of the agent")
    plain = parse_chat_message({**item, "content": text}, f"call-{place}")
    if plain is None:
        raise _role_not_understood(item)
    _check_calls(item, plain.role)
    if role in ("assistant", "ai"):
        reasoning = "\n\n".join(filter(str.strip, thoughts)) or plain.reasoning or _thought(item)
        return [replace(plain, tool_calls=(*plain.tool_calls, *calls), reasoning=reasoning)]
    return [*results, plain] if text.strip() else results


def _result(block: Mapping[str, Any]) -> Message:
    content = block.get("content")
    if isinstance(content, list | dict):
        content = [_shown_reference(part) for part in (content if isinstance(content, list) else [content])]
        if _check_parts(content):
            raise NotUnderstood("content block inside of a tool_result")
    elif isinstance(content, int | float):
        raise NotUnderstood("content that is a number")
    call_id = block.get("tool_use_id")
    message = make_chat_observation(
        "tool", openai_content_text(content), call_id if isinstance(call_id, str) else ""
    )
    flag = block.get("is_error")
    return _flagged(message, flag) if isinstance(flag, bool) else message


def _shown_reference(part: Any) -> Any:
    """Return a found tool as a text that names it, any other part as it is."""
    name = part.get("tool_name") if isinstance(part, dict) and part.get("type") == "tool_reference" else None
    return {"type": "text", "text": f"{_LOADED}{name}]"} if isinstance(name, str) else part


def _with_tool_uses(item: Mapping[str, Any], place: int) -> list[Message]:
    """Return a message of DataClaw, whose `tool_uses` holds each call with its result."""
    uses = item["tool_uses"]
    plain = parse_chat_message(item, f"call-{place}")
    if plain is None or plain.role != "assistant" or not isinstance(uses, list):
        raise NotUnderstood("tool_uses in a message that is not the agent's")
    _check_texts(item)
    _check_calls(item, plain.role)
    calls = list(plain.tool_calls)
    results: list[Message] = []
    for use in uses:
        if not isinstance(use, dict):
            raise NotUnderstood("tool_uses that is not an object")
        check_known_keys(use, _USE_KEYS, "key of tool_uses")
        use_id = use.get("id") or use.get("tool_use_id")
        call = _call(use_id, use.get("tool"), use.get("input"), f"call-{place}-{len(calls)}")
        calls.append(call)
        if use.get("output") is not None:
            message = make_chat_observation("tool", _output_text(use["output"]), call.id, call.name)
            failed = use.get("status") in ("error", "failed")
            results.append(_flagged(message, True) if failed else message)
    return [replace(plain, tool_calls=tuple(calls), reasoning=plain.reasoning or _thought(item)), *results]


def _output_text(output: Any) -> str:
    if isinstance(output, str):
        return output
    body = output if isinstance(output, dict) else {"content": output}
    check_known_keys(body, _OUTPUT_METADATA.union(_OUTPUT_TEXTS), "key of a tool's output")
    content = next((body[key] for key in _OUTPUT_TEXTS if body.get(key) is not None), "")
    if isinstance(content, list | dict) and _check_parts(content if isinstance(content, list) else [content]):
        raise NotUnderstood("content block inside of a tool's output")
    return openai_content_text(content)


def _call(call_id: Any, name: Any, arguments: Any, fallback: str) -> ToolCall:
    if not isinstance(name, str) or not name:
        raise NotUnderstood("tool call without a name")
    if not isinstance(arguments, str | dict):
        raise NotUnderstood("tool input that is not an object")
    call = ToolCall(
        call_id if isinstance(call_id, str) and call_id else fallback, name, openai_argument_text(arguments)
    )
    if call.parsed() is None:
        raise NotUnderstood("tool input that is not an object")
    return call


def _flagged(message: Message, failed: bool) -> Message:
    """Return the message with the recorded failure flag."""
    return replace(
        message, is_error=failed, error_kind=error_kind_of(message.content, True) if failed else None
    )


def _thought(item: Mapping[str, Any]) -> str | None:
    text = item.get("thinking") or item.get("reasoning")
    return text if isinstance(text, str) and text.strip() else None
