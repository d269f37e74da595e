"""Read a session of Gemini CLI (`~/.gemini/tmp/PROJECT/chats`) into one trace.

Early versions write one JSON object, later ones a line for every change: a message (again where it grew),
`$set` of metadata or of all messages, `$rewindTo` a message. Every list of messages that was shown is a
context; a step belongs to the first one that holds it. Results of calls stand beside the calls.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from tracemill.ingesters.common.flags import NO_ACTION
from tracemill.ingesters.common.growing_context import GrowingContext, StepMetadata
from tracemill.ingesters.common.openai_messages import as_mapping, first_text
from tracemill.ingesters.common.repeats import MetRecords
from tracemill.ingesters.common.report_counts import count_traces_in_report
from tracemill.ingesters.gemini_cli.messages import (
    UNSHOWN,
    answer_message,
    content_text,
    parse_usage,
    recorded_calls,
    recorded_results,
    sent_results,
    unread_parts,
    unread_recorded_calls,
)
from tracemill.ingesters.reading.decompress import open_bytes
from tracemill.ingesters.reading.json_reading import (
    UnreadLines,
    iter_json_lines,
    raise_source_errors,
    read_json,
)
from tracemill.records.identity import make_trace_id
from tracemill.records.ingest_report import IngestReport, record_type
from tracemill.records.message import Message
from tracemill.records.trace import Context, ContextStart, Fidelity, Trace

DIALECT = "gemini_cli"
NO_STEP = "session without a step"
SECOND_MESSAGE = "message of an id that a later one of its list has"
SECOND_RECORD = "answer in two records"
REPEATED_CALL = "call that stands in its answer before"
FEWER_TOKENS = "prompt that shrank without a record of why"
REWIND_TO_UNKNOWN = "rewind to a message that is not in the file"
ENVIRONMENT = "<session_context>"
"""First words of the message about the environment, which early versions send and do not record."""
_SHRANK = 0.6
Records = dict[str, Mapping[str, Any]]


def iter_traces(path: Path, report: IngestReport) -> Iterator[Trace]:
    """Yield the trace of each session and fill the report. Raises SourceError if it cannot be read."""
    yield from count_traces_in_report(_traces(path, report), report)


def _traces(path: Path, report: IngestReport) -> Iterator[Trace | None]:
    session, unread = GeminiSession(report), UnreadLines(report)
    for record in _records(path, report):
        if session.ends_before(record):
            yield _trace(path, session)
            session = GeminiSession(report)
        if unread.passed():
            session.add_gap()
        session.add(record)
    yield _trace(path, session)


def _trace(path: Path, session: "GeminiSession") -> Trace | None:
    session.close("start")
    if not session.contexts:
        session.report.skipped[NO_STEP] += 1
        return None
    metadata = session.metadata
    above = path.parent.name
    is_side = metadata.get("kind") == "subagent"
    return Trace(
        trace_id=make_trace_id(DIALECT, str(metadata.get("sessionId"))),
        source=DIALECT,
        dialect=DIALECT,
        harness=DIALECT,
        contexts=tuple(session.contexts),
        kind="side" if is_side else "main",
        parent_trace_id=make_trace_id(DIALECT, above) if is_side and above != "chats" else None,
        started_at=first_text(metadata.get("startTime")),
        origin=path.name,
        notes=dict(sorted(Counter(f"contexts_{context.start}" for context in session.contexts).items())),
    )


def _records(path: Path, report: IngestReport) -> Iterable[Mapping[str, Any]]:
    """Return the lines of a file, or the one object that it is."""
    with raise_source_errors(path), open_bytes(path) as stream:
        first = stream.readline().strip()
    try:
        whole = not isinstance(orjson.loads(first), dict)
    except orjson.JSONDecodeError:
        whole = True
    if whole:
        value = read_json(path, report)
        return [as_mapping(each) for each in (value if isinstance(value, list) else [value])]
    return (record for _, record in iter_json_lines(path, report, kind=None))


@dataclass(slots=True)
class GeminiSession:
    """A session under construction: its metadata, and its current messages.

    `torn` are the ids of the messages at which a line could not be read, `gap` is True before the next one.
    """

    report: IngestReport
    metadata: dict[str, Any] = field(default_factory=dict)
    messages: Records = field(default_factory=dict)
    contexts: list[Context] = field(default_factory=list)
    start: ContextStart = "start"
    done: set[str] = field(default_factory=set)
    counted: set[str] = field(default_factory=set)
    lost: bool = False
    gap: bool = False
    torn: set[str] = field(default_factory=set)

    def ends_before(self, record: Mapping[str, Any]) -> bool:
        """Return whether a line is the header of another session."""
        named, own = first_text(record.get("sessionId")), first_text(self.metadata.get("sessionId"))
        header = named is not None and "id" not in record
        return header and own is not None and named != own

    def add_gap(self) -> None:
        """Note that a line here could not be read: a message, or what became of the last answer."""
        self.gap = True
        last = next(reversed(self.messages), None)
        if last is not None and self.messages[last].get("type") == "gemini":
            self.torn.add(last)

    def add(self, record: Mapping[str, Any]) -> None:
        """Add a line of the file, or a file that is one object."""
        if isinstance(target := record.get("$rewindTo"), str):
            self._rewind(target)
        elif isinstance(change := record.get("$set"), dict):
            self._set(change)
        elif isinstance(record.get("id"), str):
            self._count(record)
            if self.gap:
                self.torn.add(record["id"])
                self.gap = False
            self.messages[record["id"]] = record
        elif "sessionId" in record:
            self._set(record)
        else:
            self.report.unknown["record other"] += 1
            self.lost = True

    def _set(self, change: Mapping[str, Any]) -> None:
        self.metadata |= {key: value for key, value in change.items() if key != "messages"}
        listed = change.get("messages")
        if not isinstance(listed, list):
            return
        replaced: Records = {}
        for place, row in enumerate(row if isinstance(row, dict) else {} for row in listed):
            name = str(row.get("id") or place)
            if name in replaced:
                self.report.skipped[SECOND_MESSAGE] += 1
                self.torn.add(name)
            replaced[name] = row
        for row in replaced.values():
            self._count(row)
        if self.messages and _rendered(replaced) != _rendered(self.messages):
            self.report.compactions += len(replaced) < len(self.messages)
            self.close("compaction" if len(replaced) < len(self.messages) else "rewritten")
        self.messages = replaced
        self.gap = False

    def _rewind(self, target: str) -> None:
        self.report.branches_real += 1
        self.close("rewind")
        names = list(self.messages)
        if target not in self.messages:
            self.report.flags[REWIND_TO_UNKNOWN] += 1
        kept = names[: names.index(target)] if target in self.messages else []
        self.messages = {name: self.messages[name] for name in kept}

    def _count(self, record: Mapping[str, Any]) -> None:
        """Count a message once, however often its record is written."""
        name = str(record.get("id"))
        if name not in self.counted:
            self.counted.add(name)
            self.report.records[record_type(record.get("type"))] += 1

    def close(self, following: ContextStart) -> None:
        """End the context of the current messages; `following` is the reason for the next one."""
        context = _ContextBuilder(self).build()
        if context.steps:
            self.contexts.append(context)
            self.start = following
        elif following != "start":
            self.start = following if self.contexts else "start"


def _rendered(messages: Records) -> list[Any]:
    """Return the messages in the form that a prompt shows."""
    shown = (record for record in messages.values() if record.get("type") not in UNSHOWN)
    return [
        (record.get("type"), content_text(record.get("content")), recorded_results(record))
        for record in shown
    ]


class _ContextBuilder:
    """Builder of one context of a session."""

    def __init__(self, session: GeminiSession) -> None:
        self.session, self.report = session, session.report
        self.growing = GrowingContext(session.start)
        self.lost = session.lost
        self.lost_from: int | None = None
        self.approximate_from: int | None = None
        self.environment = False
        self.tokens = 0

    def build(self) -> Context:
        """Return the context."""
        records = list(_joined(self.session.messages.values(), self.report, self.session.done))
        for record in records:
            name = str(record.get("id"))
            own = name not in self.session.done
            self.session.done.add(name)
            self._add(record, own)
        self.growing.close_calls()
        lost, approximate = self.lost_from is not None, self.approximate_from is not None
        return Context(
            len(self.session.contexts),
            tuple(self.growing.messages),
            tuple(self.growing.steps),
            self.session.start,
            (),
            Fidelity(context="lost" if lost else "approximate" if approximate else "complete"),
            self.lost_from or 0,
            self.approximate_from,
        )

    def _add(self, record: Mapping[str, Any], own: bool) -> None:
        kind = record.get("type")
        if kind in UNSHOWN:
            return
        unread = [f"part {record_type(name)}" for name in unread_parts(record.get("content"))]
        unread += [f"part {name}" for name in unread_recorded_calls(record)]
        unread += [] if kind in ("user", "gemini") else [f"message {record_type(kind)}"]
        self.lost |= str(record.get("id")) in self.session.torn
        if unread:
            self.lost = True
            self.report.unknown.update(unread if own else ())
        if kind == "user":
            self._add_user(record)
        elif kind == "gemini":
            self._add_answer(self._without_repeated_calls(record, own), own and not unread, own)

    def _without_repeated_calls(self, record: Mapping[str, Any], own: bool) -> Mapping[str, Any]:
        """Return an answer without the calls that equal another one of it and its id; count them."""
        listed, met = recorded_calls(record), MetRecords()
        if len(listed) < 2:
            return record
        kept = [call for call in listed if not met.repeats(first_text(call.get("id")), call)]
        if len(kept) == len(listed):
            return record
        if own:
            self.report.skipped[REPEATED_CALL] += len(listed) - len(kept)
        return {**record, "toolCalls": kept}

    def _add_user(self, record: Mapping[str, Any]) -> None:
        for result in sent_results(record):
            self.growing.add_result(result)  # a twin of the one beside the call is left out
        if text := content_text(record.get("content")):
            self.environment |= text.startswith(ENVIRONMENT)
            self.growing.add_message(Message("user", text))

    def _add_answer(self, record: Mapping[str, Any], acts: bool, own: bool) -> None:
        message = answer_message(record)
        if not message.content.strip() and not message.tool_calls:
            self.report.flags[NO_ACTION] += own
            return
        self.growing.close_calls()
        metadata = None
        if acts:
            metadata = StepMetadata(
                model=first_text(record.get("model")),
                native_id=first_text(record.get("id")),
                usage=parse_usage(record.get("tokens")),
                timestamp=first_text(record.get("timestamp")),
            )
            self._note_step(metadata)
        self.growing.add_action(message, metadata)
        for result in recorded_results(record):
            self.report.tool_errors += own and result.is_error is True
            if (reason := self.growing.add_result(result)) and own:
                self.report.skipped[reason] += 1

    def _note_step(self, metadata: StepMetadata) -> None:
        """Record the fidelity of the next step; a prompt that shrank was shortened without a record."""
        index, tokens = len(self.growing.steps), metadata.usage.prompt_tokens or 0
        if tokens and tokens < _SHRANK * self.tokens:
            self.report.flags[FEWER_TOKENS] += 1
            self.lost = True
        self.tokens = tokens or self.tokens
        unasked = index == 0 and all(message.role != "user" for message in self.growing.messages)
        if self.lost_from is None and (self.lost or unasked):
            self.lost_from = index
        inexact = not self.environment or self.growing.start == "compaction" or self.growing.unanswered
        if self.approximate_from is None and inexact:
            self.approximate_from = index


def _joined(
    records: Iterable[Mapping[str, Any]], report: IngestReport, done: set[str]
) -> Iterator[Mapping[str, Any]]:
    """Yield the records; calls that a notice separated from their answer's text are joined to it.

    Such a second record holds calls alone and no tokens of its own.
    """
    held: Mapping[str, Any] | None = None
    for record in records:
        kind = record.get("type")
        if held is not None and kind in UNSHOWN:
            continue
        if held is not None and kind == "gemini" and _is_continuation(held, record):
            report.flags[SECOND_RECORD] += str(record.get("id")) not in done
            done.add(str(record.get("id")))
            held = {**held, "toolCalls": record.get("toolCalls")}
            continue
        if held is not None:
            yield held
        held = record if kind == "gemini" else None
        if held is None:
            yield record
    if held is not None:
        yield held


def _is_continuation(held: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
    alone = (
        not content_text(record.get("content")) and parse_usage(record.get("tokens")).prompt_tokens is None
    )
    return alone and bool(record.get("toolCalls")) and not held.get("toolCalls")
