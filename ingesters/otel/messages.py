"""Parse messages of the conventions: a role with parts, or a chat message as some programs write it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tracemill.ingesters.common.chat_messages import (
    make_chat_observation,
    parse_chat_message,
    unread_chat_message,
)
from tracemill.ingesters.common.openai_messages import as_mapping, first_text, openai_argument_text
from tracemill.ingesters.otel.spans import structured
from tracemill.ingesters.reading.result_text import image_placeholder, image_url_placeholder
from tracemill.records.identity import canonical_json
from tracemill.records.message import Message, ToolCall

TEXTS = ("text",)
THOUGHTS = ("reasoning", "thinking")
FILES = ("blob", "file", "file_data", "uri")
PARTS = (*TEXTS, *THOUGHTS, *FILES, "tool_call", "tool_call_response")
_RESPONSES = frozenset(("response", "result", "content"))
ROLES = ("system", "developer", "user", "assistant", "model", "ai", "tool")


@dataclass(slots=True)
class ReadMessages:
    """Messages of a list, with the names of their unread parts.

    `seeded` says whether a call got its id from the seed.
    """

    messages: list[Message] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    seeded: bool = False


class PromptReader:
    """Reader of prompts; the prefix that a prompt shares with the one before it is read once."""

    def __init__(self) -> None:
        self._items: list[Any] = []
        self._read: list[ReadMessages] = []

    def read(self, listed: Any, seed: str) -> ReadMessages:
        """Return the messages of an attribute; a call without an id gets `<seed>-<number>`."""
        items = [listed] if isinstance(listed, dict) else listed
        if not isinstance(items, list):
            return ReadMessages(unread=["messages"])
        whole, made = ReadMessages(), list[ReadMessages]()
        for place, item in enumerate(items):
            read = self._read[place] if place < len(self._read) and item == self._items[place] else None
            if read is None or read.seeded:
                read = _read_message(item, f"{seed}-{place}")
            made.append(read)
            whole.messages += read.messages
            whole.unread += read.unread
        self._items, self._read = items, made
        return whole


def read_messages(listed: Any, seed: str) -> ReadMessages:
    """Return the messages of an attribute; a call without an id gets `<seed>-<number>`."""
    return PromptReader().read(listed, seed)


def _read_message(item: Any, seed: str) -> ReadMessages:
    read = ReadMessages()
    message = as_mapping(item)
    if "parts" not in message:
        calls = message.get("tool_calls")
        if isinstance(calls, str) and (listed := structured(calls)) is not None:
            item = message = {**message, "tool_calls": listed}
        read.unread += unread_chat_message(item)
        parsed = parse_chat_message(message, seed)
        read.messages += [parsed] if parsed is not None else []
        read.seeded = any(call.id.startswith(seed) for each in read.messages for call in each.tool_calls)
        return read
    role, parts = message.get("role"), message["parts"]
    if role not in ROLES:
        read.unread.append("role")
    if not isinstance(parts, list):
        read.unread.append("parts")
        return read
    read.unread += unread_parts(parts)
    blocks = [as_mapping(part) for part in parts]
    results = [_result(part) for part in blocks if part.get("type") == "tool_call_response"]
    read.messages += results
    text = "\n".join([each for part in blocks if (each := _part_text(part))])
    if role in ("assistant", "model", "ai"):
        thought = [_content(part) for part in blocks if part.get("type") in THOUGHTS]
        reasoning = "\n".join([each for each in thought if each]) or None
        calls = _calls(blocks, seed)
        read.messages.append(Message("assistant", text, calls, reasoning=reasoning))
        read.seeded = any(call.id.startswith(seed) for call in calls)
    elif text or not results:
        read.messages.append(
            Message("system" if role in ("system", "developer") else "user", text)
            if role != "tool"
            else make_chat_observation("tool", text, first_text(message.get("tool_call_id")) or "")
        )
    return read


def system_message(value: Any) -> ReadMessages:
    """Return the system instructions as one message: a text, parts, or a message."""
    if isinstance(value, str):
        return ReadMessages([Message("system", value)])
    if isinstance(value, dict):
        value = value["parts"] if "parts" in value else [value.get("message", value)]
    parts = value if isinstance(value, list) else []
    plain = [{"type": "text", "content": part} if isinstance(part, str) else part for part in parts]
    if any("parts" in as_mapping(part) or "role" in as_mapping(part) for part in plain):
        read = read_messages(plain, "system")
        texts = "\n".join(message.content for message in read.messages)
        return ReadMessages([Message("system", texts)], read.unread)
    text = "\n".join(each for part in plain if (each := _part_text(as_mapping(part))))
    return ReadMessages([Message("system", text)], unread_parts(plain))


def unread_parts(parts: list[Any]) -> list[str]:
    """Return the names of the parts that are not read."""
    return [name for part in parts if (name := _unread(part))]


def _unread(part: Any) -> str:
    if not isinstance(part, dict):
        return type(part).__name__
    kind = part.get("type")
    if not isinstance(kind, str) or kind not in PARTS:
        return kind if isinstance(kind, str) and kind else "untyped"
    if kind in TEXTS + THOUGHTS:
        return "" if _content(part) or "" in (part.get("content"), part.get("text")) else f"{kind}.content"
    if kind == "tool_call":
        return "" if first_text(part.get("name")) else "tool_call.name"
    if kind == "tool_call_response" and _RESPONSES.isdisjoint(part):
        return "tool_call_response.response"
    return ""


def _content(part: Mapping[str, Any]) -> str:
    return first_text(part.get("content"), part.get("text")) or ""


def _part_text(part: Mapping[str, Any]) -> str:
    kind = part.get("type")
    if kind in TEXTS:
        return _content(part)
    if kind not in FILES:
        return ""
    media = first_text(part.get("mime_type"), part.get("modality")) or "of no known type"
    data = first_text(part.get("content"), part.get("data"))
    if data is not None:
        return image_placeholder(media, data)
    address = first_text(part.get("uri"), part.get("file_id"))
    return image_url_placeholder(address) if address else f"[file: {media}]"


def _calls(blocks: list[Mapping[str, Any]], seed: str) -> tuple[ToolCall, ...]:
    used = [part for part in blocks if part.get("type") == "tool_call" and first_text(part.get("name"))]
    return tuple(
        ToolCall(
            first_text(part.get("id")) or f"{seed}-{place}",
            part["name"],
            openai_argument_text(part.get("arguments")),
        )
        for place, part in enumerate(used)
    )


def _result(part: Mapping[str, Any]) -> Message:
    response = part.get("response", part.get("result", part.get("content")))
    return result_message(first_text(part.get("id")) or "", response)


def result_message(call_id: str, response: Any) -> Message:
    """Return the result of a call; a response that is no text is canonical JSON."""
    blocks = response if isinstance(response, list) else None
    if blocks and not unread_parts(blocks):
        response = "\n".join(each for part in blocks if (each := _part_text(part)))
    text = response if isinstance(response, str) else "" if response is None else canonical_json(response)
    return make_chat_observation("tool", text, call_id)
