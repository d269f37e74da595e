"""Messages in the OpenAI chat shape, and the actions an agent takes.

Source of the shape: https://platform.openai.com/docs/api-reference/chat. Two departures: content is
always text (an image is a text placeholder with its digest), and what only the record knows
(`is_error`, `error_kind`, `reasoning`) rides along without ever being shown to a teacher.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Literal

import orjson

from tracemill.records.fast_dataclass import quick_init

_FLAT = frozenset((str, int, bool, type(None)))
Role = Literal["system", "user", "assistant", "tool"]


class ErrorKind(StrEnum):
    """Why a tool result counts as failed."""

    EXIT_CODE = "exit_code"  # a command ended with a code other than 0
    TOOL_ERROR = "tool_error"  # the tool refused or failed (bad arguments, file not there)
    TIMEOUT = "timeout"  # the command was cut off or still runs
    HOOK = "hook"  # a hook or a permission rule of the user's stopped the call
    USER_REJECTION = "user_rejection"  # the user said no, or interrupted
    CANCELLED = "cancelled"  # never made, because another call of the step failed
    API_ERROR = "api_error"  # the model's API failed (under a subagent)
    UNKNOWN = "unknown"  # flagged as failed, and nothing says why


@quick_init
@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool. `arguments` is the exact string the model emitted, valid JSON or not."""

    id: str
    name: str
    arguments: str

    def parsed(self) -> dict[str, Any] | None:
        """The arguments as an object; None where they are not a JSON object."""
        try:
            value = json.loads(self.arguments)
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None


@lru_cache(maxsize=64)
def read_arguments(arguments: str) -> dict[str, Any] | None:
    """The arguments of a call as an object, None where they are no JSON object. Read once while the same call
    is looked at again: whoever takes it must not change it (`ToolCall.parsed` gives one of its own)."""
    try:
        value = _flat(arguments)
        if value is None:
            value = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _flat(text: str) -> dict[str, Any] | None:
    """An object whose values are texts, small whole numbers, truth values and nulls, read several times as
    fast; None for anything else. A float may be a number of more than 64 bits."""
    try:
        value = orjson.loads(text)
    except ValueError:
        return None
    return value if type(value) is dict and _FLAT.issuperset(map(type, value.values())) else None


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as offered to a model: name, description, JSON schema of its parameters.

    `origin` says where the schema comes from: `recorded` in the session, a `stand_in` written by us,
    or `inferred` from the calls seen.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    origin: Literal["recorded", "stand_in", "inferred"] = "recorded"

    def to_wire(self) -> dict[str, Any]:
        """The OpenAI `tools` entry."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": dict(self.parameters),
            },
        }


@quick_init
@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    `tool_call_id` and `name` are set on tool results only. `is_error` is None where the source does
    not say; `error_kind` is an `ErrorKind` value where it failed. `reasoning` is recorded thinking: it
    is kept for the record and never part of a later prompt.
    """

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    is_error: bool | None = None
    error_kind: str | None = None
    reasoning: str | None = None

    def texts(self) -> Iterator[str]:
        """Give the texts of the message: content, reasoning, arguments of calls."""
        yield self.content
        if self.reasoning:
            yield self.reasoning
        yield from (call.arguments for call in self.tool_calls)

    def to_wire(self) -> dict[str, Any]:
        """The message as a model is shown it: content always a string, record-only fields left out."""
        wire: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.tool_calls:
            wire["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in self.tool_calls
            ]
        if self.tool_call_id is not None:
            wire["tool_call_id"] = self.tool_call_id
        return wire


@dataclass(frozen=True, slots=True)
class Action:
    """What an agent or a teacher does in one step: a text, calls of tools, or both."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()

    @classmethod
    def of(cls, message: Message) -> "Action":
        """The action an assistant message is."""
        return cls(message.content, message.tool_calls)

    def to_message(self) -> Message:
        """The action as an assistant message."""
        return Message("assistant", self.text, self.tool_calls)


def render_arguments(arguments: str) -> str:
    """Arguments as readable text: `key: value` lines with real newlines; not JSON: as they are."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    if not isinstance(value, dict):
        return arguments
    lines = [
        f"{key}: {item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)}"
        for key, item in value.items()
    ]
    return "\n".join(lines)


def render_turn(messages: tuple[Message, ...]) -> str:
    """The one flat rendering of a turn, for filters and reports: text, then each call by name and
    arguments, parts separated by newlines."""
    parts: list[str] = []
    for message in messages:
        if message.content.strip():
            parts.append(message.content.strip())
        parts.extend(f"{c.name} {render_arguments(c.arguments)}".strip() for c in message.tool_calls)
    return "\n".join(parts)
