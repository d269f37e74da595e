"""Read session traces of the Hub (Session Trace Simple Format): a header, then a message a line.

Source: https://huggingface.co/docs/hub/session-traces-format. `tracemill export --format sts` says in the
header what messages have no place for: which answers are no step, which calls failed, tools, fidelity.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from tracemill.harnesses.agents.registry import harness_for
from tracemill.ingesters.common.chat_messages import PairedMessages, make_chat_observation
from tracemill.ingesters.common.flags import NO_ACTION
from tracemill.ingesters.common.growing_context import StepFacts
from tracemill.ingesters.common.openai_messages import (
    as_mapping,
    collect_message_calls,
    first_text,
    openai_argument_text,
    parse_openai_tools,
)
from tracemill.ingesters.common.report_counts import count_traces_in_report
from tracemill.ingesters.common.times import iso_time
from tracemill.ingesters.reading.json_reading import iter_json_lines
from tracemill.records.identity import make_trace_id
from tracemill.records.ingest_report import IngestReport, record_type
from tracemill.records.message import ErrorKind, Message, ToolCall
from tracemill.records.trace import Context, ContextStart, Fidelity, Step, Trace

DIALECT = "sts"
ROLES = ("user", "assistant", "system", "tool")
NO_HEADER = "message before the header"
NO_STEP = "session without a step"
NO_STEP_HERE = "answer that is no step"
_STARTS = get_args(ContextStart)
_KINDS = frozenset(kind.value for kind in ErrorKind)


@dataclass(slots=True)
class Session:
    """A session under construction: its header, its messages, its steps.

    `own` is True for what tracemill exported: its messages are taken as they stand. `copied` are the places
    of answers that are no step, `results` what is known of results by their place.
    """

    header: Mapping[str, Any]
    origin: str
    report: IngestReport
    own: bool = False
    paired: PairedMessages = field(default_factory=PairedMessages)
    steps: list[Step] = field(default_factory=list)
    copied: frozenset[int] = frozenset()
    results: Mapping[int, tuple[bool | None, str | None]] = field(default_factory=dict)
    place: int = 0
    lost_from: int | None = None
    lost: bool = False

    def __post_init__(self) -> None:
        self.own = isinstance(self.header.get("results"), list)
        self.copied = frozenset(each for each in _listed(self.header, "copied") if isinstance(each, int))
        self.results = dict(each for row in _listed(self.header, "results") if (each := _known_result(row)))

    def add(self, message: Mapping[str, Any]) -> None:
        """Add a message, as a step where it is an answer of the model."""
        unread = unread_message(message)
        self.report.unknown.update(f"message {record_type(name)}" for name in unread)
        self.lost |= bool(unread)
        read = self._read(message)
        acts = bool(read.content.strip() or read.tool_calls)
        if read.role == "assistant" and not acts and not self.own:
            self.report.flags[NO_ACTION] += 1
            self.place += 1
            return
        if read.role == "assistant" and self.place in self.copied:
            self.report.flags[NO_STEP_HERE] += 1
        elif read.role == "assistant" and not unread:
            if self.lost and self.lost_from is None:
                self.lost_from = len(self.steps)
            facts = StepFacts(first_text(message.get("model")), timestamp=iso_time(message.get("timestamp")))
            self.steps.append(facts.step(len(self.steps), len(self.paired.messages)))
        self.report.tool_errors += read.is_error is True
        if self.own:
            self.paired.messages.append(read)
        else:
            self.paired.add(read)
        self.place += 1

    def _read(self, message: Mapping[str, Any]) -> Message:
        role = message.get("role")
        text = first_text(message.get("content")) or ""
        call_id = first_text(message.get("toolCallId"))
        if role == "assistant":
            named = [each for each in _listed(message, "toolCalls") if _name(each)]
            calls = tuple(_call(each, f"{self.place}-{number}") for number, each in enumerate(named))
            return Message("assistant", text, calls, reasoning=first_text(message.get("reasoningContent")))
        if self.place in self.results:
            failed, kind = self.results[self.place]
            plain = "tool" if role == "tool" else "user"
            return Message(plain, text, (), call_id, is_error=failed, error_kind=kind)
        if role == "tool" and self.own:
            return Message("tool", text, tool_call_id=call_id)
        if role == "tool":
            return make_chat_observation("tool", text, call_id or "")
        return Message("system" if role == "system" else "user", text)

    def finish(self) -> Trace | None:
        """Return the trace of the session, None where it holds no step."""
        self.report.skipped.update(self.paired.dropped)
        self.report.flags.update(self.paired.loose)
        if not self.steps:
            self.report.skipped[NO_STEP] += 1
            return None
        header, messages = self.header, tuple(self.paired.messages)
        harness = first_text(header.get("harness")) or "unknown"
        version = first_text(header.get("harness_version"))
        calls = collect_message_calls(messages)
        tools = parse_openai_tools(header.get("tools"), calls, harness_for(harness, version))
        return Trace(
            trace_id=make_trace_id(DIALECT, harness, first_text(header.get("id")) or ""),
            source=DIALECT,
            dialect=DIALECT,
            harness=harness,
            contexts=(replace(self._context(messages), tools=tools),),
            harness_version=version,
            licence=first_text(header.get("licence")),
            started_at=next((step.timestamp for step in self.steps if step.timestamp), None),
            origin=self.origin,
        )

    def _context(self, messages: tuple[Message, ...]) -> Context:
        """Return the context; what the header says of its fidelity counts, else it is approximate."""
        header = self.header
        told = as_mapping(header.get("fidelity"))
        unasked = all(each.role != "user" for each in messages[: self.steps[0].cut])
        own: Any = told.get("context")
        known = own in ("complete", "approximate", "lost")
        context: Any = own if known else "lost" if unasked else "approximate"
        lost_from = header.get("lost_from") if own == "lost" else self.lost_from
        since = header.get("approximate_from") if self.own else 0
        has_system = bool(messages) and messages[0].role == "system"
        fidelity = Fidelity(
            system="recorded" if told.get("system", "recorded") == "recorded" and has_system else "absent",
            tools="recorded" if told.get("tools") == "recorded" else "absent",
            context="lost" if self.lost_from is not None else context,
        )
        start: Any = header.get("context_start")
        return Context(
            0,
            messages,
            tuple(self.steps),
            start if start in _STARTS else "start",
            (),
            fidelity,
            lost_from if isinstance(lost_from, int) else 0,
            since if isinstance(since, int) else None,
        )


def iter_traces(path: Path, report: IngestReport) -> Iterator[Trace]:
    """Yield the trace of each session of a file and fill the report. Raises SourceError."""
    yield from count_traces_in_report(_traces(path, report), report)
    report.flags = +report.flags


def _traces(path: Path, report: IngestReport) -> Iterator[Trace | None]:
    session: Session | None = None
    for _, line in iter_json_lines(path, report):
        kind = line.get("type")
        if kind == "session":
            if session is not None:
                yield session.finish()
            session = Session(line, path.name, report)
        elif kind != "message":
            report.unknown[f"record {record_type(kind)}"] += 1
            if session is not None:
                session.lost = True
        elif session is None:
            report.skipped[NO_HEADER] += 1
        else:
            session.add(as_mapping(line.get("message")))
    if session is not None:
        yield session.finish()


def unread_message(message: Mapping[str, Any]) -> list[str]:
    """Return the names of what is not read of a message."""
    unread = [] if message.get("role") in ROLES else ["role"]
    if not isinstance(message.get("content", ""), str | None):
        unread.append("content")
    calls = message.get("toolCalls")
    if calls is not None and not (isinstance(calls, list) and all(map(_name, calls))):
        unread.append("toolCalls")
    return unread


def _listed(record: Mapping[str, Any], key: str) -> list[Any]:
    value = record.get(key)
    return value if isinstance(value, list) else []


def _name(call: Any) -> str | None:
    return first_text(as_mapping(as_mapping(call).get("function")).get("name"))


def _call(call: Any, fallback: str) -> ToolCall:
    arguments = openai_argument_text(as_mapping(call["function"]).get("arguments"))
    return ToolCall(first_text(call.get("id")) or fallback, _name(call) or "", arguments)


def _known_result(row: Any) -> tuple[int, tuple[bool | None, str | None]] | None:
    """Return place, failure and its kind of an entry of `results`, None for any other value."""
    if not isinstance(row, list) or len(row) not in (2, 3):
        return None
    place, failed, kind = row[0], row[1], row[2] if len(row) > 2 else None
    if not isinstance(place, int) or not isinstance(failed, bool | None):
        return None
    return place, (failed, kind if isinstance(kind, str) and kind in _KINDS else None)
