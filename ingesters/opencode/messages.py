"""Parse messages of opencode: the parts of a message, its answers, calls with their results, usage."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tracemill.ingesters.common.openai_messages import as_mapping, first_text, openai_argument_text
from tracemill.ingesters.common.repeats import MetRecords
from tracemill.ingesters.common.times import milliseconds
from tracemill.ingesters.reading.result_text import error_kind_of, image_url_placeholder
from tracemill.records.ingest_report import IngestReport
from tracemill.records.message import ErrorKind, Message, ToolCall
from tracemill.records.trace import Usage

Part = Mapping[str, Any]

ROLES = ("user", "assistant")
UNSHOWN = frozenset(("step-start", "step-finish", "snapshot", "patch", "agent", "retry"))
"""Types of parts that no prompt shows."""
SHOWN = frozenset(("text", "reasoning", "file", "tool", "compaction", "subtask"))
STATUSES = ("pending", "running", "completed", "error")
COMPACTION = "What did we do so far?"
"""Words that a prompt shows in the place of a request to compact."""
SUBTASK = "The following tool was executed by the user"
REPEATED = "part that stands in the file before"
SHARED_ID = "part of an id that another part has"
CLEARED = "[Old tool result content cleared]"
INTERRUPTED = "[Tool execution was interrupted]"
UNREADABLE_CALL = "invalid"
"""Name of the tool that stands for a call whose name or arguments opencode could not read."""
_READ_AS_TEXT = ("text/plain", "application/x-directory")
_ERROR_NAME = re.compile(r"(?:Uncaught )?[A-Za-z]*Error: ")
_DENIED = "The user has specified a rule which prevents"
_STOPPED = ("Tool execution aborted", "Tool execution was interrupted", INTERRUPTED, "Cancelled", "The user")
_TIMED_OUT = re.compile(
    r"(?:terminated command after exceeding timeout|command timed out after|Command timed out)[^\n]*\s*"
    r"(?:</bash_metadata>|</shell_metadata>)?\s*\Z"
)
_USER_ABORT = re.compile(r"User aborted the command\s*(?:</bash_metadata>|</shell_metadata>)?\s*\Z")
_END = 2000
"""Length of the end of an output in which opencode says why it stopped a command."""
_SHELLS = ("bash", "shell")


@dataclass(slots=True)
class OpencodeMessage:
    """One message of a session: its metadata, its parts with their types, and unique ids of its calls.

    `unread` names its parts that are not understood.
    """

    info: Mapping[str, Any]
    parts: tuple[Part, ...]
    kinds: tuple[Any, ...]
    call_ids: Mapping[int, str]
    unread: tuple[str, ...]
    created: float = field(init=False)
    """When the message was begun, in milliseconds; 0 if it does not say."""

    def __post_init__(self) -> None:
        self.created = milliseconds(as_mapping(self.info.get("time")).get("created")) or 0

    @property
    def id(self) -> str | None:
        """Return the id of the message."""
        return first_text(self.info.get("id"))

    @property
    def role(self) -> str | None:
        """Return the role of the message."""
        return first_text(self.info.get("role"))

    def has(self, kind: str) -> bool:
        """Return whether a part of the message is of a type."""
        return kind in self.kinds


@dataclass(slots=True)
class OpencodeAnswer:
    """One answer of a model: the parts of a message from one `step-start` to the next one.

    `started` is False for parts that the harness itself put into an assistant message, `finish` is the part
    that closed the answer, None if it broke off, `calls` are its calls with their places in the message.
    """

    parts: tuple[Part, ...]
    started: bool
    finish: Part | None
    calls: tuple[tuple[int, Part], ...]

    @property
    def acts(self) -> bool:
        """Return whether the block holds a text or a call."""
        return bool(self.calls) or any(text.strip() for text in _texts_of(self, "text"))


def read_messages(listed: Sequence[Any], report: IngestReport) -> list[OpencodeMessage]:
    """Return the messages of an export. A call id that was used before is made unique.

    A part that equals an earlier one of its id is left out and counted, and so is a message of such parts.
    """
    used: Counter[str] = Counter()
    met = MetRecords()
    messages: list[OpencodeMessage] = []
    for item in listed:
        info, recorded = as_mapping(as_mapping(item).get("info")), as_mapping(item).get("parts")
        held = recorded if isinstance(recorded, list) else []
        parts: list[Part] = []
        kinds: list[Any] = []
        call_ids: dict[int, str] = {}
        unread = [] if isinstance(recorded, list) else ["parts"]
        for held_part in held:
            part = as_mapping(held_part)
            if met.repeats(first_text(part.get("id")), held_part):
                report.skipped[REPEATED] += 1
                continue
            kind = part.get("type")
            if name := unread_part(held_part):
                unread.append(name)
            if kind == "tool":
                named = first_text(part.get("callID"), part.get("id")) or "call"
                used[named] += 1
                call_ids[len(parts)] = named if used[named] == 1 else f"{named}_{used[named]}"
            parts.append(part)
            kinds.append(kind)
        if parts or not held:
            messages.append(OpencodeMessage(info, tuple(parts), tuple(kinds), call_ids, tuple(unread)))
    report.flags[SHARED_ID] += met.shared_ids
    return messages


def unread_part(part: Any) -> str:
    """Return the name of the unread part of a message part, "" if all is read."""
    if not isinstance(part, dict):
        return type(part).__name__
    kind = first_text(part.get("type")) or "untyped"
    if kind in UNSHOWN or kind in ("compaction", "subtask"):
        return ""
    if kind not in SHOWN:
        return kind
    if kind == "file":
        return "" if isinstance(part.get("url"), str) else "file.url"
    if kind != "tool":
        return "" if isinstance(part.get("text"), str) else f"{kind}.text"
    if not first_text(part.get("tool")):
        return "tool.tool"
    state = as_mapping(part.get("state"))
    if state.get("status") not in STATUSES:
        return "tool.status"
    words = {"completed": "output", "error": "error"}.get(state["status"])
    return f"tool.{words}" if words and not isinstance(state.get(words), str) else ""


def blocks_of(message: OpencodeMessage) -> list[OpencodeAnswer]:
    """Return the answers that an assistant message holds, in order.

    A message without any `step-start` is one block; it is a model's where tokens were spent on it.
    """
    parts, kinds = message.parts, message.kinds
    starts = [place for place, kind in enumerate(kinds) if kind == "step-start"]
    edges = [0, *starts, len(parts)]
    tokens = as_mapping(message.info.get("tokens"))
    finished = message.has("step-finish")
    spent = not starts and bool(tokens.get("output") or finished)
    whole = message.info if not finished and message.info.get("finish") else None
    blocks: list[OpencodeAnswer] = []
    for first, last in pairwise(edges):
        if first == last:
            continue
        own = kinds[first:last]
        closing = parts[first + own.index("step-finish")] if "step-finish" in own else None
        if closing is None and whole is not None and last == len(parts):
            closing = {"reason": whole["finish"], "tokens": tokens, "cost": whole.get("cost")}
        tools = [(place, parts[place]) for place in message.call_ids if first <= place < last]
        calls = tuple([(place, part) for place, part in tools if first_text(part.get("tool"))])
        blocks.append(OpencodeAnswer(parts[first:last], first in starts or spent, closing, calls))
    return blocks


def system_text(message: OpencodeMessage) -> str:
    """Return the system prompt that early versions record with an answer, "" if there is none."""
    listed = message.info.get("system")
    texts = listed if isinstance(listed, list) else []
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def user_text(message: OpencodeMessage) -> str:
    """Return the text of a user message in a prompt; the text of a file is in a part beside it."""
    return "\n".join(text for text in map(_user_part, message.parts) if text)


def _user_part(part: Part) -> str:
    kind = part.get("type")
    if kind == "text":
        return "" if part.get("ignored") else first_text(part.get("text")) or ""
    if kind == "file":
        return "" if part.get("mime") in _READ_AS_TEXT else _placeholder(part)
    return COMPACTION if kind == "compaction" else SUBTASK if kind == "subtask" else ""


def answer_message(message: OpencodeMessage, block: OpencodeAnswer) -> Message:
    """Return a block as the message that a prompt shows; thoughts are kept as reasoning."""
    calls = [
        ToolCall(
            message.call_ids[place],
            first_text(part.get("tool")) or "",
            openai_argument_text(as_mapping(part.get("state")).get("input")),
        )
        for place, part in block.calls
    ]
    text, reasoning = ("\n".join(_texts_of(block, kind)) for kind in ("text", "reasoning"))
    return Message("assistant", text, tuple(calls), reasoning=reasoning or None)


def result_messages(message: OpencodeMessage, block: OpencodeAnswer, now: float) -> list[Message]:
    """Return the results of a block's calls as a prompt of the time `now` shows them."""
    return [_result(message.call_ids[place], part, now) for place, part in block.calls]


def cleared_at(part: Part) -> float | None:
    """Return when the harness cleared the result of a call, None if it did not."""
    return milliseconds(as_mapping(as_mapping(part.get("state")).get("time")).get("compacted"))


def _result(call_id: str, part: Part, now: float) -> Message:
    state, name = as_mapping(part.get("state")), first_text(part.get("tool"))
    status, told = state.get("status"), as_mapping(state.get("metadata"))
    text, kind = INTERRUPTED, None
    if status == "completed":
        text = output = first_text(state.get("output")) or ""
        attached = state.get("attachments")
        if isinstance(attached, list):
            files = map(_placeholder, map(as_mapping, attached))
            text = "\n".join(each for each in (output, *files) if each)
        kind = _kind_of_output(name, output, told.get("exit"))
        cleared = cleared_at(part)
        text = CLEARED if cleared is not None and cleared <= now else text
    elif status == "error":
        words = first_text(state.get("error")) or ""
        kept = told.get("output") if told.get("interrupted") is True else None
        text = kept if isinstance(kept, str) else words
        kind = _kind_of_error(words)
    else:
        kind = ErrorKind.USER_REJECTION
    return Message("tool", text, (), call_id, name, kind is not None, kind)


def _kind_of_output(name: str | None, output: str, code: Any) -> ErrorKind | None:
    """Return why a call that returned has failed: of a shell by its exit code, else None."""
    if name == UNREADABLE_CALL:
        return ErrorKind.TOOL_ERROR
    if name not in _SHELLS:
        return None
    end = output[-_END:]
    if "User aborted" in end and _USER_ABORT.search(end):
        return ErrorKind.USER_REJECTION
    if ("timeout" in end or "timed out" in end) and _TIMED_OUT.search(end):
        return ErrorKind.TIMEOUT
    return ErrorKind.EXIT_CODE if isinstance(code, int) and code else None


def _kind_of_error(words: str) -> ErrorKind:
    """Return the kind of error of a call that raised, by the words of its error."""
    plain = _ERROR_NAME.sub("", words, count=1) if _ERROR_NAME.match(words) else words
    if plain.startswith(_DENIED):
        return ErrorKind.HOOK
    if plain.startswith(_STOPPED):
        return ErrorKind.USER_REJECTION
    kind = error_kind_of(plain, True)
    return ErrorKind.TOOL_ERROR if kind in (None, ErrorKind.UNKNOWN) else kind


def _placeholder(part: Part) -> str:
    return image_url_placeholder(part["url"]) if first_text(part.get("url")) else ""


def _texts_of(block: OpencodeAnswer, kind: str) -> list[str]:
    """Return the texts of a kind in a block."""
    held = [first_text(part.get("text")) for part in block.parts if part.get("type") == kind]
    return [text for text in held if text]


def parse_usage(finish: Part) -> Usage:
    """Return the tokens and cost of an answer; prompt tokens are uncached, cache-read and cache-written ones.

    Later versions record a total and count thoughts apart from the output; earlier ones count them in it.
    """
    tokens = as_mapping(finish.get("tokens"))
    cache = as_mapping(tokens.get("cache"))
    fresh, output, total = (_count(tokens.get(key)) for key in ("input", "output", "total"))
    read, written = _count(cache.get("read")), _count(cache.get("write"))
    prompt = None if fresh is None else fresh + (read or 0) + (written or 0)
    if total is not None and prompt is not None and output is not None:
        output = max(output, total - prompt)
    cost = finish.get("cost")
    paid = float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) else None
    return Usage(prompt, output, read, paid)


def _count(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
