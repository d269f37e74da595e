"""Chat messages as tables and trajectory files hold them, made into ours, each result tied to its call.

Two ways of acting occur: tool calls with results of role `tool`, and commands written in the text with
results of role `user`. Nothing says which results failed but their text.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from tracemill.ingesters.common.openai_messages import (
    openai_content_text,
    openai_reasoning,
    parse_openai_calls,
)
from tracemill.ingesters.reading.result_text import error_kind_of
from tracemill.records.message import ErrorKind, Message, ToolCall

DUPLICATE_RESULT = "second result of one call"
ORPHAN_RESULT = "result without its call"

_ROLES: Mapping[str, str] = {"ai": "assistant", "developer": "system", "function": "tool"}
_EXIT_ZERO = re.compile(r"\[(?:The command completed|Command finished) with exit code 0\b")
_ZERO = "with exit code 0"
_MINI_ZERO = "<returncode>0</returncode>"
_PROMPT_LINES = re.compile(
    r"\n(?:\(Open file: [^\n]*\)\n)?\(Current directory: (?P<cwd>[^\n]*)\)\nbash-\$\s*\Z"
)
_CANCELLED = re.compile(
    r"was cancelled because it took more than \d|</command> timed out and has been killed"
)
_CANCELLED_STARTS = ("The command '", "The last command <command>")
_REFUSED_EDIT = "Your proposed edit has introduced new syntax error"
_OBSERVATION = "OBSERVATION:\n"
_MALFORMED = "\nEXECUTION FAILED OR COMMAND MALFORMED"
_TIMED_OUT = "\nEXECUTION TIMED OUT"
_RESULT_STARTS = (
    _OBSERVATION,
    "EXECUTION RESULT of ",
    "<returncode>",
    _REFUSED_EDIT,
)
_PROMPT_END = "bash-$"
_TAIL = 800
_HEAD = 4000


def parse_chat_message(item: Mapping[str, Any], fallback: str) -> Message | None:
    """One message; None for a role that is none. A call without an id gets `<fallback>-<place>`.

    A user text that is what a tool gave back, and every tool result, carries whether it failed.
    """
    role = item.get("role")
    role = _ROLES.get(role, role) if isinstance(role, str) else None
    content = item.get("content")
    text = content if type(content) is str else openai_content_text(content)
    if not text and "text" in item:
        text = openai_content_text(item["text"])
    if role == "user":
        return _of_user(text)
    if role == "assistant":
        calls = (
            parse_openai_calls(item, fallback) if item.get("tool_calls") or item.get("function_call") else ()
        )
        return Message("assistant", text, calls, None, None, None, None, openai_reasoning(item))
    if role == "tool":
        name = item.get("name")
        return make_chat_observation(
            "tool", text, _answered_id(item), name if isinstance(name, str) and name else None
        )
    if role == "system":
        return Message("system", text or openai_content_text(item.get("system_prompt")))
    return None


def _of_user(text: str) -> Message:
    """A user text, which in harnesses without tool messages may be what a tool gave back."""
    if text.endswith(_PROMPT_END):
        if (shell := _prompt_lines(text)) is None:
            return Message("user", text)
        is_error, kind = _said_error(text[: shell.start()])
    elif text.startswith(_RESULT_STARTS):
        is_error, kind = _said_error(text)
    else:
        return Message("user", text)
    return Message("user", text, (), None, None, is_error, kind)


def make_chat_observation(
    role: Literal["user", "tool"], text: str, call_id: str | None = None, name: str | None = None
) -> Message:
    """What a tool gave back, with its failure read off its text."""
    is_error, kind = chat_text_error(text)
    return Message(role, text, (), call_id, name, is_error, kind)


def chat_text_error(text: str) -> tuple[bool | None, ErrorKind | None]:
    """Whether a result's text says that it failed: True, False (exit code 0), or None where it is silent."""
    if text.endswith(_PROMPT_END) and (shell := _prompt_lines(text)):
        return _said_error(text[: shell.start()])
    return _said_error(text)


def _said_error(said: str) -> tuple[bool | None, ErrorKind | None]:
    """As `chat_text_error`, of a text without the lines of the prompt under it."""
    kind = error_kind_of(said, None) or _by_harness(said)
    if kind is not None:
        return True, kind
    if said.startswith(_MINI_ZERO) or (_ZERO in (tail := said[-_TAIL:]) and _EXIT_ZERO.search(tail)):
        return False, None
    return None, None


def find_chat_cwd(text: str) -> str | None:
    """The folder named by the prompt lines that SWE-agent puts under an observation."""
    found = _prompt_lines(text)
    return found.group("cwd") if found else None


def _prompt_lines(text: str) -> re.Match[str] | None:
    start = text.rfind("\n(Open file: ", -_TAIL)
    return _PROMPT_LINES.match(text, start if start >= 0 else max(0, text.rfind("\n(Current dir", -_TAIL)))


def _by_harness(text: str) -> ErrorKind | None:
    """The kind by what SWE-agent and mini-swe-agent write themselves."""
    start = len(_OBSERVATION) if text.startswith(_OBSERVATION) else 0
    if text.startswith(_REFUSED_EDIT, start) or text.endswith(_MALFORMED):
        return ErrorKind.TOOL_ERROR
    if text.endswith(_TIMED_OUT):
        return ErrorKind.TIMEOUT
    if text.startswith(_CANCELLED_STARTS, start) and _CANCELLED.search(text, start, start + _HEAD):
        return ErrorKind.TIMEOUT
    return None


def _answered_id(item: Mapping[str, Any]) -> str:
    """The call a result names; "" where it names none."""
    single = item.get("tool_call_id")
    if isinstance(single, str) and single:
        return single
    listed = item.get("tool_call_ids")
    first = listed[0] if isinstance(listed, list) and listed else None
    return next((named for named in (first, item.get("call_id")) if isinstance(named, str) and named), "")


class PairedMessages:
    """Messages in the order recorded, every call with at most one result.

    A result that names no call answers the first that is open. A second result of a call is left out and
    counted in `dropped`; one without a call stays and is counted in `loose`. A call id used before is made
    unique, as it is when shown. What a user says before the agent does is no result, whatever it reads like.
    """

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.dropped: Counter[str] = Counter()
        self.loose: Counter[str] = Counter()
        self._used: set[str] = set()
        self._open: dict[str, list[str]] = {}
        self._answered = False

    def add(self, message: Message) -> None:
        """Takes the next message."""
        if message.role == "tool":
            self._result(message)
            return
        self._answered = self._answered or message.role == "assistant"
        if message.tool_calls:
            self._open = {}
            calls = tuple(self._call(call) for call in message.tool_calls)
            self.messages.append(
                message if calls == message.tool_calls else replace(message, tool_calls=calls)
            )
        elif message.is_error is not None and not self._answered:
            name, thought = message.name, message.reasoning
            quiet = Message(message.role, message.content, (), message.tool_call_id, name, reasoning=thought)
            self.messages.append(quiet)
        else:
            self.messages.append(message)

    def _call(self, call: ToolCall) -> ToolCall:
        fresh, copy = call.id, 1
        while fresh in self._used:
            copy += 1
            fresh = f"{call.id}_{copy}"
        self._used.add(fresh)
        self._open.setdefault(call.id, []).append(fresh)
        return call if fresh == call.id else replace(call, id=fresh)

    def _result(self, message: Message) -> None:
        named = message.tool_call_id or next((given for given, free in self._open.items() if free), "")
        waiting = self._open.get(named)
        if waiting:
            call_id = waiting.pop(0)
            self.messages.append(
                message if call_id == message.tool_call_id else replace(message, tool_call_id=call_id)
            )
        elif named in self._used:
            self.dropped[DUPLICATE_RESULT] += 1
        else:
            self._used.add(named)
            self.loose[ORPHAN_RESULT] += 1
            self.messages.append(message)
