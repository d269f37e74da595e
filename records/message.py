"""Messages in the OpenAI chat shape, and the actions an agent takes.

Source of the shape: https://platform.openai.com/docs/api-reference/chat. Two departures: content is always
text (an image is a text placeholder with its digest), and fields that only the recording knows (`is_error`,
`error_kind`, `reasoning`) are never shown to a teacher.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Literal

from tracemill.records.printable import printable, printable_count

Role = Literal["system", "user", "assistant", "tool"]


class ErrorKind(StrEnum):
    """The reason why a tool result counts as failed."""

    EXIT_CODE = "exit_code"  # a command ended with a code other than 0
    TOOL_ERROR = "tool_error"  # the tool refused or failed (bad arguments, file not there)
    TIMEOUT = "timeout"  # the command was cut off or still runs
    HOOK = "hook"  # a hook or a permission rule of the user's stopped the call
    USER_REJECTION = "user_rejection"  # the user said no, or interrupted
    CANCELLED = "cancelled"  # never made, because another call of the step failed
    API_ERROR = "api_error"  # the model's API failed (under a subagent)
    UNKNOWN = "unknown"  # flagged as failed, and nothing says why


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool. `arguments` is the exact string the model emitted, valid JSON or not."""

    id: str
    name: str
    arguments: str

    def parsed(self) -> dict[str, Any] | None:
        """Return the arguments as a new dict, None if they are not a JSON object."""
        return _parse_object(self.arguments)


@lru_cache(maxsize=64)
def read_arguments(arguments: str) -> dict[str, Any] | None:
    """Return the arguments of a call as a dict, None if they are not a JSON object.

    The dict is cached and shared: do not change it. `ToolCall.parsed` gives a new one.
    """
    return _parse_object(arguments)


def _parse_object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as offered to a model: name, description, JSON schema of its parameters.

    `origin` says where the schema comes from: `recorded` in the session, `stand_in` written for tracemill, or
    `inferred` from the calls seen.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    origin: Literal["recorded", "stand_in", "inferred"] = "recorded"

    def to_wire(self) -> dict[str, Any]:
        """Return the tool as an entry of OpenAI's `tools`."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": dict(self.parameters),
            },
        }


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    `tool_call_id` and `name` are set on tool results only. `is_error` is None if the source does not say;
    `error_kind` is an `ErrorKind` value where the call failed. `reasoning` is recorded thinking; it is never
    part of a later prompt.
    """

    role: Role
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    is_error: bool | None = None
    error_kind: str | None = None
    reasoning: str | None = None

    def __repr__(self) -> str:
        """Describe the message in a line, without its text: logs and errors print this."""
        facts = [self.role, printable_count(len(self.content), "character")]
        if self.tool_calls:
            facts.append(f"calls {call_names(self.tool_calls)}")
        if self.is_error or self.error_kind:
            facts.append(f"failed: {self.error_kind or 'unknown'}")
        return f"Message({', '.join(facts)})"

    def texts(self) -> Iterator[str]:
        """Yield the texts of the message: content, reasoning, arguments of calls."""
        yield self.content
        if self.reasoning:
            yield self.reasoning
        yield from (call.arguments for call in self.tool_calls)

    def to_wire(self) -> dict[str, Any]:
        """Return the message in OpenAI's format for a prompt: text content, without recorded extras."""
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
    """One step of an agent or a teacher: a text, tool calls, or both."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()

    @classmethod
    def of(cls, message: Message) -> "Action":
        """Return the action of an assistant message."""
        return cls(message.content, message.tool_calls)

    def to_message(self) -> Message:
        """Return the action as an assistant message."""
        return Message("assistant", self.text, self.tool_calls)


def call_names(calls: Sequence[ToolCall]) -> str:
    """Return the tool that was called first, and how many calls follow, for a short line."""
    name = printable(calls[0].name, 20)
    return name if len(calls) == 1 else f"{name} + {len(calls) - 1} more"


def render_arguments(arguments: str) -> str:
    """Return arguments as `key: value` lines with real newlines; unchanged where they are not an object."""
    value = _parse_object(arguments)
    if value is None:
        return arguments
    texts = {
        key: each if isinstance(each, str) else json.dumps(each, ensure_ascii=False)
        for key, each in value.items()
    }
    return "\n".join(f"{key}: {text}" for key, text in texts.items())


def render_turn(messages: tuple[Message, ...]) -> str:
    """Render a turn as flat text for filters and reports: text, then each call's name and arguments."""
    parts: list[str] = []
    for message in messages:
        if message.content.strip():
            parts.append(message.content.strip())
        parts.extend(f"{c.name} {render_arguments(c.arguments)}".strip() for c in message.tool_calls)
    return "\n".join(parts)
