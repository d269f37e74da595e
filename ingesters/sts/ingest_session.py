"""Read session traces of the Hub (Session Trace Simple Format): a header, then a message a line.

Source: https://huggingface.co/docs/hub/session-traces-format. `tracemill export --format sts` says in the
header what messages have no place for: which answers are no step, which calls failed, tools, fidelity.

llama.app writes a tree: each message has an `id` and names its `parent`. One whose parent is not the message
before it begins a context with the path to that parent.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from tracemill.harnesses.agents.registry import harness_for
from tracemill.ingesters.common.chat_messages import PairedMessages, make_chat_observation
from tracemill.ingesters.common.flags import CHANGED_EXPORT, NO_ACTION
from tracemill.ingesters.common.growing_context import StepMetadata
from tracemill.ingesters.common.openai_messages import (
    as_mapping,
    collect_message_calls,
    first_text,
    openai_argument_text,
    parse_openai_tools,
)
from tracemill.ingesters.common.report_counts import count_traces_in_report
from tracemill.ingesters.common.times import iso_time
from tracemill.ingesters.reading.json_reading import UnreadLines, iter_json_lines
from tracemill.ingesters.sts.attachments import text_with_attachments, unread_attachments
from tracemill.records.identity import make_trace_id
from tracemill.records.ingest_report import IngestReport, record_type
from tracemill.records.message import ErrorKind, Message, ToolCall
from tracemill.records.trace import Context, ContextStart, Fidelity, Outcome, Step, Trace

DIALECT = "sts"
ROLES = ("user", "assistant", "system", "tool")
NO_HEADER = "message before the header"
NO_STEP = "session without a step"
NO_STEP_HERE = "answer that is no step"
NO_PARENT = "message whose parent is not in the file"
_STARTS = get_args(ContextStart)
_KINDS = frozenset(kind.value for kind in ErrorKind)
_KnownResult = tuple[bool | None, str | None, str | None]
"""Whether a result failed, its error kind, and the name of its tool."""


@dataclass(slots=True)
class STSSession:
    """A session under construction: its header, its contexts, messages and steps of the last one.

    `tree` holds the messages that have ids, each with its parent's, `last` the id of the latest. `own` is
    True for an export of tracemill: its messages are taken as they are. `copied` are the indices of answers
    that are not steps, `results` the known failures of results by index.
    """

    header: Mapping[str, Any]
    origin: str
    report: IngestReport
    own: bool = False
    paired: PairedMessages = field(default_factory=PairedMessages)
    steps: list[Step] = field(default_factory=list)
    copied: frozenset[int] = frozenset()
    results: Mapping[str | int, _KnownResult] = field(default_factory=dict)
    place: int = 0
    lost_from: int | None = None
    lost: bool = False
    contexts: list[Context] = field(default_factory=list)
    start: ContextStart = "start"
    tree: dict[str, tuple[str | None, Mapping[str, Any]]] = field(default_factory=dict)
    last: str | None = None

    def __post_init__(self) -> None:
        self.own = type(self.header.get("messages")) is int and isinstance(self.header.get("results"), list)
        self.copied = frozenset(each for each in _listed(self.header, "copied") if isinstance(each, int))
        self.results = dict(each for row in _listed(self.header, "results") if (each := _known_result(row)))

    def pass_lines(self, count: int) -> None:
        """Pass over lines that could not be read; each is a message that the agent saw."""
        self.lost = True
        self.place += count

    def add(self, message: Mapping[str, Any]) -> None:
        """Add a message; it is a step if it is an answer of the model."""
        if not self.own:
            self._take_place(message)
            if _says_nothing(message):
                return
        unread = unread_message(message)
        if unread:
            self.report.unknown.update(f"message {record_type(name)}" for name in unread)
            self.lost = True
        read = self._read(message)
        if read.role == "assistant" and not _acts(read) and not self.own:
            self.report.flags[NO_ACTION] += 1
            self.place += 1
            return
        if read.role == "assistant" and self.place in self.copied:
            self.report.flags[NO_STEP_HERE] += 1
        elif read.role == "assistant" and not unread:
            if self.lost and self.lost_from is None:
                self.lost_from = len(self.steps)
            metadata = StepMetadata(
                first_text(message.get("model")), timestamp=iso_time(message.get("timestamp"))
            )
            self.steps.append(metadata.step(len(self.steps), len(self.paired.messages)))
        self.report.tool_errors += read.is_error is True
        if self.own:
            self.paired.messages.append(read)
        else:
            self.paired.add(read)
        self.place += 1

    def _take_place(self, message: Mapping[str, Any]) -> None:
        """Put a message in its place in the tree, which may begin a context."""
        own, parent = first_text(message.get("id")), first_text(message.get("parent"))
        if self.last is not None and "parent" in message and parent != self.last:
            self._branch(parent)
        self.last = own
        if own is not None:
            self.tree[own] = (parent, message)

    def _branch(self, parent: str | None) -> None:
        """Begin a context with the path to a message."""
        self._close()
        self.report.branches_real += 1
        path: list[Mapping[str, Any]] = []
        left = dict(self.tree)
        while parent in left:
            parent, message = left.pop(parent)
            path.append(message)
        if parent is not None:
            self.report.flags[NO_PARENT] += 1
            self.lost = True
        self.paired, self.steps, self.lost_from, self.start = PairedMessages(), [], None, "rewind"
        for message in reversed(path):
            read = self._read(message)
            if not _says_nothing(message) and (read.role != "assistant" or _acts(read)):
                self.paired.add(read)
        self.paired.dropped.clear()
        self.paired.loose.clear()

    def _close(self) -> None:
        """End the current context, which is kept if it has a step."""
        if (lost_at := self.paired.lost_at) is not None:
            behind = [step.index for step in self.steps if step.cut >= lost_at]
            known = self.lost_from if self.lost_from is not None else len(self.steps)
            self.lost_from = min(behind[0], known) if behind else self.lost_from
        self.report.skipped.update(self.paired.dropped)
        self.report.flags.update(self.paired.loose)
        if self.steps:
            self.contexts.append(self._context(tuple(self.paired.messages)))

    def _read(self, message: Mapping[str, Any]) -> Message:
        role = message.get("role")
        text = first_text(message.get("content")) or ""
        if message.get("extra"):
            text = text_with_attachments(message, text)
        call_id = first_text(message.get("toolCallId"))
        if role == "assistant":
            named = [each for each in _listed(message, "toolCalls") if _name(each)]
            calls = tuple(_call(each, f"{self.place}-{number}") for number, each in enumerate(named))
            thought = message.get("reasoningContent")
            thought = thought if isinstance(thought, str) and (thought or self.own) else None
            return Message("assistant", text, calls, reasoning=thought)
        known = self.results.get(call_id) if role == "tool" and call_id else None
        known = known or self.results.get(self.place)
        if known is not None:
            failed, kind, tool = known
            return Message("tool" if role == "tool" else "user", text, (), call_id, tool, failed, kind)
        if role == "tool" and self.own:
            return Message("tool", text, tool_call_id=call_id)
        if role == "tool":
            return make_chat_observation("tool", text, call_id or "")
        return Message("system" if role == "system" else "user", text)

    def finish(self) -> Trace | None:
        """Return the trace of the session, None if it holds no step."""
        count = self.header.get("messages")
        if self.own and self.place != count:
            self.report.flags[CHANGED_EXPORT] += 1
            self.lost_from = 0
        self._close()
        if not self.contexts:
            self.report.skipped[NO_STEP] += 1
            return None
        header = self.header
        harness = first_text(header.get("harness")) or "unknown"
        version = first_text(header.get("harness_version"))
        calls = collect_message_calls(message for each in self.contexts for message in each.messages)
        tools = parse_openai_tools(header.get("tools"), calls, harness_for(harness, version))
        outcome: Any = header.get("outcome")
        return Trace(
            trace_id=make_trace_id(DIALECT, harness, first_text(header.get("id")) or ""),
            source=DIALECT,
            dialect=DIALECT,
            harness=harness,
            contexts=tuple(replace(each, tools=tools) for each in self.contexts),
            harness_version=version,
            repository=first_text(header.get("repository")),
            instance_id=first_text(header.get("instance_id")),
            licence=first_text(header.get("licence")),
            outcome=outcome if self.own and outcome in get_args(Outcome) else "unknown",
            started_at=next((s.timestamp for each in self.contexts for s in each.steps if s.timestamp), None),
            origin=self.origin,
        )

    def _context(self, messages: tuple[Message, ...]) -> Context:
        """Return the context with the fidelity that the header records, else `approximate`."""
        header = self.header
        told = as_mapping(header.get("fidelity")) if self.own else {}
        unasked = all(each.role != "user" for each in messages[: self.steps[0].cut])
        own: Any = told.get("context")
        known = own in ("complete", "approximate", "lost")
        context: Any = own if known else "lost" if unasked else "approximate"
        recorded_from = (_index(header.get("lost_from")) or 0) if own == "lost" else None
        lost_from = min((each for each in (self.lost_from, recorded_from) if each is not None), default=0)
        since = _index(header.get("approximate_from")) if self.own else 0
        has_system = bool(messages) and messages[0].role == "system"
        fidelity = Fidelity(
            system="recorded" if told.get("system", "recorded") == "recorded" and has_system else "absent",
            tools="recorded" if told.get("tools") == "recorded" else "absent",
            context="lost" if self.lost_from is not None else context,
        )
        start: Any = header.get("context_start")
        return Context(
            len(self.contexts),
            messages,
            tuple(self.steps),
            start if start in _STARTS else self.start,
            (),
            fidelity,
            lost_from,
            since,
        )


def iter_traces(path: Path, report: IngestReport) -> Iterator[Trace]:
    """Yield the trace of each session of a file and fill the report. Raises SourceError."""
    yield from count_traces_in_report(_traces(path, report), report)
    report.flags = +report.flags


def _traces(path: Path, report: IngestReport) -> Iterator[Trace | None]:
    session: STSSession | None = None
    unread = UnreadLines(report)
    for _, line in iter_json_lines(path, report):
        kind = line.get("type")
        if (passed := unread.passed()) and session is not None:
            session.pass_lines(passed)
        if kind == "session":
            if session is not None:
                yield session.finish()
            session = STSSession(line, path.name, report)
        elif kind != "message":
            report.unknown[f"record {record_type(kind)}"] += 1
            if session is not None:
                session.lost = True
        elif session is None:
            report.skipped[NO_HEADER] += 1
        else:
            session.add(as_mapping(line.get("message")))
    if session is not None:
        if passed := unread.passed():
            session.pass_lines(passed)
        yield session.finish()


def unread_message(message: Mapping[str, Any]) -> list[str]:
    """Return the names of the unread parts of a message."""
    unread = [] if message.get("role") in ROLES else ["role"]
    if not isinstance(message.get("content", ""), str | None):
        unread.append("content")
    calls = message.get("toolCalls")
    if calls is not None and not (isinstance(calls, list) and all(map(_name, calls))):
        unread.append("toolCalls")
    return [*unread, *unread_attachments(message)]


def _says_nothing(message: Mapping[str, Any]) -> bool:
    """Return whether a message is an empty system prompt, such as the root of a tree, which is not sent."""
    return message.get("role") == "system" and not message.get("content")


def _acts(message: Message) -> bool:
    return bool(message.content.strip() or message.tool_calls)


def _listed(record: Mapping[str, Any], key: str) -> list[Any]:
    value = record.get(key)
    return value if isinstance(value, list) else []


def _name(call: Any) -> str | None:
    return first_text(as_mapping(as_mapping(call).get("function")).get("name"))


def _call(call: Any, fallback: str) -> ToolCall:
    arguments = openai_argument_text(as_mapping(call["function"]).get("arguments"))
    return ToolCall(first_text(call.get("id")) or fallback, _name(call) or "", arguments)


def _index(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _known_result(row: Any) -> tuple[str | int, _KnownResult] | None:
    """Return the key of an entry of `results` and what it tells, None for any other value."""
    if not isinstance(row, list) or not 2 <= len(row) <= 4:
        return None
    key, failed, kind, name = (*row, None, None)[:4]
    if not isinstance(key, str | int) or not isinstance(failed, bool | None):
        return None
    return key, (failed, kind if isinstance(kind, str) and kind in _KINDS else None, first_text(name))
