"""One message of a row, made ours: chat messages, Anthropic content blocks, messages of DataClaw.

A message that holds more than its reader understands (parts of another library, items of another API, keys
unheard of) is never read in part: `NotUnderstood` says what was found, and the row is left out.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tracemill.ingesters.common.chat_messages import make_chat_observation, parse_chat_message
from tracemill.ingesters.common.openai_messages import openai_argument_text, openai_content_text
from tracemill.ingesters.format import KindSeen
from tracemill.ingesters.reading.result_text import error_kind_of
from tracemill.records.message import Message, ToolCall

_READ = frozenset(
    (
        *(
            "role",
            "content",
            "text",
            "tool_calls",
            "tool_call_id",
            "tool_call_ids",
            "call_id",
            "function_call",
        ),
        *("name", "system_prompt", "reasoning_content", "thinking_blocks", "is_demo", "is_error"),
        *("tool_uses", "thinking", "reasoning"),
    )
)
_ASIDE = frozenset(
    (
        *(
            "agent",
            "message_type",
            "action",
            "thought",
            "cache_control",
            "mask",
            "cutoff_date",
            "extra",
            "id",
        ),
        *("uuid", "index", "type", "timestamp", "created", "created_at", "date", "model", "source", "status"),
        *("usage", "stop_reason", "finish_reason", "stop_sequence", "logprobs", "metadata", "weight", "tag"),
        *("provider_specific_fields", "provider", "annotations", "token_ids", "tool_name"),
    )
)
"""Keys that say something of a message and nothing that a model was shown."""
_KNOWN = _READ | _ASIDE
_PLAIN = _KNOWN - {"tool_uses", "thinking", "reasoning", "is_error"}
_SHOWN_PARTS = frozenset(("text", "input_text", "output_text", "image", "image_url", "input_image"))
_THOUGHTS = frozenset(("thinking", "redacted_thinking"))
_ROLES = frozenset(("system", "developer", "user", "assistant", "ai", "tool", "function"))
_USE_KEYS = frozenset(("tool", "input", "output", "status", "id", "tool_use_id", "timestamp"))
_OUTPUT_TEXTS = ("text", "output", "content")
_OUTPUT_ASIDE = frozenset(("raw", "exit_code", "wall_time", "duration", "truncated", "stdout", "stderr"))
_PLAIN_NAME = re.compile(r"[A-Za-z_][\w.-]{0,39}")


class NotUnderstood(ValueError):
    """What a message holds that no reader of ours understands, in words that name none of its content."""


def parse_row_message(item: Any, place: int) -> list[Message]:
    """Return a message of a row as ours, with the results that it holds as messages of their own; none for
    one of no known role. Raises NotUnderstood."""
    if not isinstance(item, dict):
        return []
    content = item.get("content")
    plain = item.keys() <= _PLAIN and "role" in item
    if not plain:
        _check_keys(item)
        if item.get("tool_uses"):
            return _with_tool_uses(item, place)
    if isinstance(content, list | dict):
        parts = content if isinstance(content, list) else [content]
        if _check_parts(parts):
            return _of_blocks(item, parts, place)
    message = parse_chat_message(item, f"call-{place}")
    if message is None:
        return []
    if message.role == "assistant":
        listed = item.get("tool_calls")
        if listed and isinstance(listed, list) and len(message.tool_calls) < len(listed) - listed.count(None):
            raise NotUnderstood("tool call not understood")
        if not plain and message.reasoning is None:
            message = replace(message, reasoning=_thought(item))
    elif not plain and message.role == "tool" and isinstance(item.get("is_error"), bool):
        message = _flagged(message, item["is_error"])
    return [message]


def kinds_of_message(item: Mapping[str, Any]) -> Iterator[KindSeen]:
    """Give a message and its content parts, and what of them is read."""
    role, content = item.get("role"), item.get("content")
    said = [key for key, value in item.items() if key in _KNOWN or not _says_nothing(value)]
    yield KindSeen(f"message {role if isinstance(role, str) else ''}", said, role in _ROLES, _KNOWN)
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict):
            kind = part.get("type")
            known = kind in _SHOWN_PARTS or kind in _THOUGHTS or kind in ("tool_use", "tool_result")
            yield KindSeen(f"part {kind if isinstance(kind, str) else ''}", part.keys(), known)


def _check_keys(item: Mapping[str, Any]) -> None:
    kind = item.get("type")
    if "role" not in item and isinstance(kind, str):
        raise NotUnderstood(f"item not understood: {_plain_name(kind)}")
    for key, value in item.items():
        if key not in _KNOWN and not _says_nothing(value):
            raise NotUnderstood(f"message key not understood: {_plain_name(key)}")


def _says_nothing(value: Any) -> bool:
    """Whether a value can hold no text: nothing, a number, a flag."""
    return (
        value is None
        or isinstance(value, int | float)
        or (isinstance(value, str | list | dict) and not value)
    )


def _plain_name(name: object) -> str:
    return name if isinstance(name, str) and _PLAIN_NAME.fullmatch(name) else "a name that is no plain word"


def _check_parts(parts: Sequence[Any]) -> bool:
    """Whether the parts are content blocks of Anthropic's API and more than text and images."""
    blocks = False
    for part in parts:
        if not isinstance(part, dict):
            continue
        kind = part.get("type")
        if kind in ("tool_use", "tool_result") or kind in _THOUGHTS:
            blocks = True
        elif not (kind in _SHOWN_PARTS or (kind is None and isinstance(part.get("text"), str))):
            raise NotUnderstood(f"content part not understood: {_plain_name(kind)}")
    return blocks


def _of_blocks(item: Mapping[str, Any], parts: Sequence[Any], place: int) -> list[Message]:
    """A message of content blocks. Results stand before the text that came with them."""
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
        elif kind in _THOUGHTS:
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
        return []
    if role in ("assistant", "ai"):
        reasoning = "\n\n".join(filter(str.strip, thoughts)) or plain.reasoning or _thought(item)
        return [replace(plain, tool_calls=(*plain.tool_calls, *calls), reasoning=reasoning)]
    return [*results, plain] if text.strip() else results


def _result(block: Mapping[str, Any]) -> Message:
    content = block.get("content")
    if isinstance(content, list | dict):
        parts = content if isinstance(content, list) else [content]
        if _check_parts(parts):
            raise NotUnderstood("content block inside of a tool_result")
    call_id = block.get("tool_use_id")
    message = make_chat_observation(
        "tool", openai_content_text(content), call_id if isinstance(call_id, str) else ""
    )
    flag = block.get("is_error")
    return _flagged(message, flag) if isinstance(flag, bool) else message


def _with_tool_uses(item: Mapping[str, Any], place: int) -> list[Message]:
    """A message of DataClaw: `tool_uses` holds each call with its result."""
    uses = item["tool_uses"]
    plain = parse_chat_message(item, f"call-{place}")
    if plain is None or plain.role != "assistant" or not isinstance(uses, list):
        raise NotUnderstood("tool_uses in a message that is not the agent's")
    calls = list(plain.tool_calls)
    results: list[Message] = []
    for use in uses:
        if not isinstance(use, dict):
            raise NotUnderstood("tool_uses that is no object")
        for key, value in use.items():
            if key not in _USE_KEYS and not _says_nothing(value):
                raise NotUnderstood(f"key of tool_uses not understood: {_plain_name(key)}")
        given = use.get("id") or use.get("tool_use_id")
        call = _call(given, use.get("tool"), use.get("input"), f"call-{place}-{len(calls)}")
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
    for key, value in body.items():
        if key not in _OUTPUT_TEXTS and key not in _OUTPUT_ASIDE and not _says_nothing(value):
            raise NotUnderstood(f"key of a tool's output not understood: {_plain_name(key)}")
    content = next((body[key] for key in _OUTPUT_TEXTS if body.get(key) is not None), "")
    if isinstance(content, list | dict) and _check_parts(content if isinstance(content, list) else [content]):
        raise NotUnderstood("content block inside of a tool's output")
    return openai_content_text(content)


def _call(call_id: Any, name: Any, arguments: Any, fallback: str) -> ToolCall:
    if not isinstance(name, str) or not name:
        raise NotUnderstood("tool call without a name")
    made = ToolCall(
        call_id if isinstance(call_id, str) and call_id else fallback, name, openai_argument_text(arguments)
    )
    if made.parsed() is None:
        raise NotUnderstood("tool input that is no object")
    return made


def _flagged(message: Message, failed: bool) -> Message:
    """The message with the flag that its record has."""
    return replace(
        message, is_error=failed, error_kind=error_kind_of(message.content, True) if failed else None
    )


def _thought(item: Mapping[str, Any]) -> str | None:
    text = item.get("thinking") or item.get("reasoning")
    return text if isinstance(text, str) and text.strip() else None
