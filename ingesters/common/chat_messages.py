"""Parse chat messages of tables and trajectory files, and pair each result with its call.

Agents act in two ways: by tool calls with results of role `tool`, or by commands in the text with results of
role `user`. Only the text of a result says whether it failed.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import orjson

from tracemill.ingesters.common.growing_context import DUPLICATE_RESULT, ENDING_CALLS, ORPHAN_RESULT
from tracemill.ingesters.common.openai_messages import (
    first_text,
    openai_content_text,
    openai_reasoning,
    parse_openai_calls,
    unread_calls,
    unread_content,
)
from tracemill.ingesters.reading.result_text import error_kind_of
from tracemill.records.ingest_report import IngestReport, record_type
from tracemill.records.message import ErrorKind, Message, ToolCall

UNREAD_RUN = "run with content that is not understood"

_ROLES: Mapping[str, str] = {"ai": "assistant", "developer": "system", "function": "tool"}
_EXIT_ZERO = re.compile(r"\[(?:The command completed|Command finished) with exit code 0\b")
_ZERO = "with exit code 0"
_MINI_ZERO = "<returncode>0</returncode>"
_EXITED = "Command exited with code "
_EXITED_END = re.compile(r"(?:^|\n)\(?Command exited with code [1-9]\d{0,2}\)?\s*\Z")
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
_ENVELOPE = re.compile(r'\{\s*"(?:output|stdout|stderr|exit_code|success|error)"\s*:')
_OUTPUTS = frozenset(("output", "stdout", "stderr"))
_EXIT_STARTS = ("Exit code: ", "Exit Code: ", "exit code ", "Process exited ", "Command failed ")
_EXIT_LINE = re.compile(
    r"(?:Exit [Cc]ode: (?P<told>-?\d+)[ \t\r]*(?:\n|\Z)|exit code (?P<whole>-?\d+)\s*\Z"
    r"|Process exited with (?:exit )?code (?P<process>-?\d+)[ \t\r.]*(?:\n|\Z)"
    r"|Command failed with (?:exit )?code (?P<command>\d+)\b)"
)
"""First lines that programs put in front of the output of a command."""
_ERROR_TAG = ("<error>", "</error>")
_TAIL = 800
_EXITED_TAIL = 80
_HEAD = 4000


def parse_chat_message(item: Mapping[str, Any], fallback: str) -> Message | None:
    """Return the message of an object, None for an unknown role.

    A call without an id gets `<fallback>-<index>`. Tool results, and user texts that are results, carry
    whether they failed.
    """
    role = item.get("role")
    role = _ROLES.get(role, role) if isinstance(role, str) else None
    content = item.get("content")
    text = content if type(content) is str else openai_content_text(content)
    if not text and "text" in item:
        text = openai_content_text(item["text"])
    if role == "user":
        return _user_message(text)
    if role == "assistant":
        calls = (
            parse_openai_calls(item, fallback) if item.get("tool_calls") or item.get("function_call") else ()
        )
        return Message("assistant", text, calls, None, None, None, None, openai_reasoning(item))
    if role == "tool":
        return make_chat_observation("tool", text, _result_call_id(item), first_text(item.get("name")))
    if role == "system":
        return Message("system", text or openai_content_text(item.get("system_prompt")))
    return None


def unread_chat_message(item: Any) -> list[str]:
    """Return the names of the parts of a message that `parse_chat_message` does not read."""
    if not isinstance(item, dict):
        return [type(item).__name__]
    recorded_role = item.get("role")
    role = _ROLES.get(recorded_role, recorded_role) if isinstance(recorded_role, str) else None
    if role not in ("system", "user", "assistant", "tool"):
        return [f"role.{recorded_role}" if isinstance(recorded_role, str) else "role"]
    unread = unread_content(item.get("content"))
    if "text" in item or "system_prompt" in item:
        unread += [*unread_content(item.get("text")), *unread_content(item.get("system_prompt"))]
    if role == "assistant":
        return unread + unread_calls(item)
    return [*unread, "tool_calls"] if item.get("tool_calls") else unread


def count_unread_run(unread: Sequence[str], report: IngestReport) -> bool:
    """Return whether a run holds content that is not understood, and count that content by name."""
    if unread:
        report.skipped[UNREAD_RUN] += 1
        report.unknown.update(f"message {record_type(name)}" for name in unread)
    return bool(unread)


def _user_message(text: str) -> Message:
    """Return a user text as a message; in harnesses without tool messages it may be a tool result."""
    ended = text.endswith(_PROMPT_END)
    if _prompt_lines(text) if ended else text.startswith(_RESULT_STARTS):
        return make_chat_observation("user", text)
    return Message("user", text)


def make_chat_observation(
    role: Literal["user", "tool"], text: str, call_id: str | None = None, name: str | None = None
) -> Message:
    """Return a tool result as a message, with its failure read from its text."""
    is_error, kind = chat_text_error(text)
    return Message(role, text, (), call_id, name, is_error, kind)


def chat_text_error(text: str) -> tuple[bool | None, ErrorKind | None]:
    """Return whether a result's text says that it failed, and how.

    The first value is False if the text has exit code 0, None if it says nothing.
    """
    if text.endswith(_PROMPT_END) and (shell := _prompt_lines(text)):
        text = text[: shell.start()]
    if text.startswith("{") and _ENVELOPE.match(text) and (told := _failure_of_json_result(text)):
        return told
    if text.startswith(_EXIT_STARTS) and (line := _EXIT_LINE.match(text)):
        failed = int(line[line.lastgroup or 0]) != 0
        return failed, ErrorKind.EXIT_CODE if failed else None
    kind = error_kind_of(text, None) or _harness_error(text)
    if kind is not None:
        return True, kind
    if text.startswith(_MINI_ZERO) or (_ZERO in (tail := text[-_TAIL:]) and _EXIT_ZERO.search(tail)):
        return False, None
    return None, None


def find_chat_cwd(text: str) -> str | None:
    """Return the folder named in the prompt lines that SWE-agent puts under an observation."""
    match = _prompt_lines(text)
    return match.group("cwd") if match else None


def _prompt_lines(text: str) -> re.Match[str] | None:
    start = text.rfind("\n(Open file: ", -_TAIL)
    return _PROMPT_LINES.match(text, start if start >= 0 else max(0, text.rfind("\n(Current dir", -_TAIL)))


def _failure_of_json_result(text: str) -> tuple[bool, ErrorKind | None] | None:
    """Return the success or failure that a JSON result reports, None if it reports neither.

    Hermes writes output and exit code of a command, and for other tools whether they succeeded. An object
    that holds an `error` alone is a failure.
    """
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict):
        return None
    code = value.get("exit_code") if _OUTPUTS & value.keys() else None
    success = False if value.keys() == {"error"} and value["error"] else value.get("success")
    if type(code) is int:
        return code != 0, ErrorKind.EXIT_CODE if code else None
    if success is False:
        kind = error_kind_of(first_text(value.get("error")) or "", True)
        return True, ErrorKind.TOOL_ERROR if kind == ErrorKind.UNKNOWN else kind
    return (False, None) if success is True else None


def _harness_error(text: str) -> ErrorKind | None:
    """Return the error that SWE-agent, mini-swe-agent, Pi or OpenClaw reports in a result's text."""
    if _EXITED in text[-_EXITED_TAIL:] and _EXITED_END.search(text, max(0, len(text) - _EXITED_TAIL)):
        return ErrorKind.EXIT_CODE
    if text.startswith(_ERROR_TAG[0]) and text.rstrip().endswith(_ERROR_TAG[1]):
        return ErrorKind.TOOL_ERROR
    start = len(_OBSERVATION) if text.startswith(_OBSERVATION) else 0
    if text.startswith(_REFUSED_EDIT, start) or text.endswith(_MALFORMED):
        return ErrorKind.TOOL_ERROR
    if text.endswith(_TIMED_OUT):
        return ErrorKind.TIMEOUT
    if text.startswith(_CANCELLED_STARTS, start) and _CANCELLED.search(text, start, start + _HEAD):
        return ErrorKind.TIMEOUT
    return None


def _result_call_id(item: Mapping[str, Any]) -> str:
    """Return the id of the call a result names, "" if it names none."""
    listed = item.get("tool_call_ids")
    first = listed[0] if isinstance(listed, list) and listed else None
    return first_text(item.get("tool_call_id"), first, item.get("call_id")) or ""


class PairedMessages:
    """Messages in the recorded order, every call with at most one result.

    A result that names no call belongs to the first open call. A second result of a call is left out and
    counted in `dropped`; a result without a call stays and is counted in `loose`. A call id used before is
    made unique. A user text before the agent's first message is never a result.

    `lost_at` is the place from which on messages are missing: a result was left out, or the agent went on
    though a call had none. It is None where all are there.
    """

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.dropped: Counter[str] = Counter()
        self.loose: Counter[str] = Counter()
        self._used: set[str] = set()
        self.lost_at: int | None = None
        self._open: dict[str, list[str]] = {}
        self._owed: set[str] = set()
        self._answered = False

    def add(self, message: Message) -> None:
        """Add the next message."""
        if message.role == "tool":
            self._result(message)
            return
        if message.role == "assistant":
            self._answered = True
            if self._owed:
                self._lose()
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

    def _lose(self) -> None:
        if self.lost_at is None:
            self.lost_at = len(self.messages)

    def _call(self, call: ToolCall) -> ToolCall:
        fresh, copy = call.id, 1
        while fresh in self._used:
            copy += 1
            fresh = f"{call.id}_{copy}"
        self._used.add(fresh)
        self._open.setdefault(call.id, []).append(fresh)
        if call.name not in ENDING_CALLS:
            self._owed.add(fresh)
        return call if fresh == call.id else replace(call, id=fresh)

    def _result(self, message: Message) -> None:
        named = message.tool_call_id or next(
            (call_name for call_name, free in self._open.items() if free), ""
        )
        waiting = self._open.get(named)
        if waiting:
            call_id = waiting.pop(0)
            self._owed.discard(call_id)
            self.messages.append(
                message if call_id == message.tool_call_id else replace(message, tool_call_id=call_id)
            )
        elif named and named in self._used:
            self.dropped[DUPLICATE_RESULT] += 1
            self._lose()
        else:
            self._used.add(named)
            self.loose[ORPHAN_RESULT] += 1
            self.messages.append(message)
