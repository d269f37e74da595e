"""Build the contexts of a task: what the model was sent at each of its answers.

The history holds every message; what a prompt leaves out stands elsewhere. Cline keeps the first two messages
and hides a range behind them, which the messages of the view name, and replaces texts
(`context_history.json`). Roo Code tags messages that a summary or a truncation hides. Where any of that
changes, a context begins.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tracemill.ingesters.cline.messages import (
    CUT_BY_HARNESS,
    INTERRUPTED,
    NO_ANSWER,
    answer_message,
    answer_usage,
    block_text,
    blocks_of,
    blocks_text,
    named_result,
    result_failure,
    result_message,
    unread_blocks,
)
from tracemill.ingesters.cline.task_files import ApiRequest, Range, TaskFiles
from tracemill.ingesters.common.flags import BROKEN_OFF, NO_ACTION
from tracemill.ingesters.common.growing_context import GrowingContext, StepMetadata
from tracemill.ingesters.common.openai_messages import as_mapping, first_text
from tracemill.ingesters.common.times import iso_utc
from tracemill.records.ingest_report import IngestReport, record_type
from tracemill.records.message import Message
from tracemill.records.trace import Context, ContextStart, Fidelity

CUT_ANSWER = "answer that the harness cut off behind its call"
TEXT_RESULT = "result of a call written as text of the user"
UNDATED = "summary or truncation of an unknown time"
BEFORE_SUMMARY = "answer older than the summary that replaced its prompt"
ROLES = ("user", "assistant")
_CWD = re.compile(r"# Current (?:Working|Workspace) Directory \(([^\n]*?)\) Files")
_MODEL = re.compile(r"<model>([^<\n]+)</model>")
Records = Sequence[Mapping[str, Any]]


class HistoryView(NamedTuple):
    """The part of a history that a prompt shows: hidden range, replaced texts, and events before it."""

    hidden: Range | None = None
    shortened: int = 0
    events: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """A summary or a truncation: the place of its record, and its time if that differs."""

    place: int
    name: str | None
    is_summary: bool
    dated: bool
    time: int | None


@dataclass(slots=True)
class TaskContexts:
    """Builder of all contexts of one task, record by record."""

    records: Records
    files: TaskFiles
    report: IngestReport
    contexts: list[Context] = field(default_factory=list)
    cwd: str | None = None
    model: str | None = None
    _names: list[str | None] = field(default_factory=list)
    _events: list[HistoryEvent] = field(default_factory=list)
    _view: HistoryView | None = None
    _request: ApiRequest | None = None
    _growing: GrowingContext = field(default_factory=GrowingContext)
    _last: int = -1
    _inexact: bool = False
    _lost: bool = False
    _outdated: bool = False
    _lost_from: int | None = None
    _approximate_from: int | None = None

    def run(self) -> list[Context]:
        """Return the contexts of the task that hold a step."""
        self._names = list(map(_event_name, self.records))
        self._events = [self._event(place) for place, name in enumerate(self._names) if name is not None]
        for place, record in enumerate(self.records):
            self.report.records[record_type(record.get("role") or record.get("type"))] += 1
            if record.get("role") == "assistant" and not record.get("isSummary"):
                self._look(place)
            self._show(place, own=True)
            self._note_environment(record)
        self._close()
        return self.contexts

    def _event(self, place: int) -> HistoryEvent:
        record = self.records[place]
        name, is_summary = self._names[place], bool(record.get("isSummary"))
        by_place = is_summary and record.get("role") == "user"  # it stands behind all that it replaces
        text = blocks_text(record.get("content"))
        time = self.files.events.get(name or "") or self.files.events.get(text)
        return HistoryEvent(
            place, name or None, is_summary, by_place or time is not None, None if by_place else time
        )

    def _look(self, place: int) -> None:
        """Begin a context if the prompt of an answer does not continue the one before it."""
        time = _time(self.records[place])
        self._request = request = self.files.request_of(place, time)
        asked = request.time if request else time
        shortened = sum(asked is None or each[0] <= asked for each in self.files.shortened)
        active = [event.place for event in self._events if self._is_active(event, place, time)]
        view = HistoryView(self.files.range_at(place), shortened, frozenset(active))
        if view != self._view:
            self._begin(view, place)

    def _is_active(self, event: HistoryEvent, place: int, time: int | None) -> bool:
        if event.place > place:
            return False
        return event.time is None or time is None or event.time < time

    def _begin(self, view: HistoryView, place: int) -> None:
        before = self._view
        self._close()
        start: ContextStart = "start"
        if before is not None and self.contexts:
            removed = before.hidden != view.hidden or before.events != view.events
            start = "compaction" if removed else "microcompaction"
            self.report.compactions += removed
        self._view = view
        self._growing = GrowingContext(start)
        self._last, self._lost_from, self._approximate_from = -1, None, None
        self._lost = self._outdated = False
        self._inexact = not self.files.has_view
        for event in self._events:
            if event.place in view.events and not event.dated:
                self.report.flags[UNDATED] += 1
                self._inexact = True
            if event.place < place and event.place not in view.events and not self._is_tagged(event):
                self._lost = self._outdated = True
        for earlier in range(place):
            self._show(earlier, own=False)

    def _is_tagged(self, event: HistoryEvent) -> bool:
        """Return whether the messages that an event hides are still in the history."""
        keys = ("condenseParent", "truncationParent")
        return event.name is not None and any(
            record.get(key) == event.name for record in self.records for key in keys
        )

    def _close(self) -> None:
        growing = self._growing
        growing.close_calls()
        if not growing.steps:
            return
        lost, approximate = self._lost_from is not None, self._approximate_from is not None
        self.contexts.append(
            Context(
                len(self.contexts),
                tuple(growing.messages),
                tuple(growing.steps),
                growing.start,
                (),
                Fidelity(context="lost" if lost else "approximate" if approximate else "complete"),
                self._lost_from or 0,
                self._approximate_from,
            )
        )

    def _exists(self, place: int) -> bool:
        """Return whether a record was in the history under the current view."""
        record = self.records[place]
        if record.get("type") == "reasoning":
            return False
        return self._names[place] is None or (self._view is not None and place in self._view.events)

    def _is_hidden(self, place: int) -> bool:
        view = self._view
        if view is None:
            return False
        if view.hidden is not None and view.hidden[0] <= place <= view.hidden[1]:
            return True
        if not view.events:
            return False
        record = self.records[place]
        active = [event for event in self._events if event.place in view.events]
        fresh = [each.place for each in active if each.is_summary and self._replaces_all(each)]
        if fresh and place < max(fresh):
            return True
        names = {event.name for event in active if event.name}
        parents = (first_text(record.get(key)) for key in ("condenseParent", "truncationParent"))
        return any(parent in names for parent in parents)

    def _replaces_all(self, event: HistoryEvent) -> bool:
        return self.records[event.place].get("role") == "user"

    def _show(self, place: int, own: bool) -> None:
        """Add the part of a record that a prompt shows."""
        record = self.records[place]
        unread = self._unread(record)
        if unread and own:
            self.report.unknown.update(unread)
        if not self._exists(place) or self._is_hidden(place):
            return
        self._lost = self._lost or bool(unread)
        if place > self._last + 1 and any(map(self._exists, range(self._last + 1, place))):
            self._growing.close_calls()
        self._last = place
        content = self._content(place)
        if record.get("role") == "user":
            self._show_user(content, own)
        elif record.get("role") == "assistant":
            self._show_answer(record, content, place, own and not unread)

    def _unread(self, record: Mapping[str, Any]) -> list[str]:
        if record.get("type") == "reasoning":
            return []
        if record.get("role") not in ROLES:
            return [f"message {record_type(record.get('role'))}"]
        return [f"block {record_type(name)}" for name in unread_blocks(record.get("content"))]

    def _content(self, place: int) -> list[Any]:
        """Return the blocks of a record with the texts that replace them in the current view."""
        blocks = blocks_of(self.records[place].get("content"))
        count = self._view.shortened if self._view else 0
        if not count:
            return blocks
        blocks = list(blocks)
        for _, message, number, text in self.files.shortened[:count]:
            if message == place and number < len(blocks):
                block = as_mapping(blocks[number])
                key = "content" if block.get("type") == "tool_result" else "text"
                blocks[number] = {**block, key: text}
        return blocks

    def _show_user(self, blocks: list[Any], own: bool) -> None:
        rest: list[str] = []
        parts = list(map(as_mapping, blocks))
        is_block = any(part.get("type") == "tool_result" for part in parts)
        failed: Message | None = None
        for block in parts:
            if block.get("type") == "tool_result":
                self._add_result(result_message(block), own)
                continue
            text = block_text(block)
            if not is_block and (named := named_result(text)) is not None:
                call_id = self._growing.find_open_call(named)
                is_error, kind = result_failure(text, None)
                if call_id is None:
                    failed = failed or Message("user", "", is_error=is_error, error_kind=kind)
                    rest.append(text)
                    continue
                self._inexact = True
                self.report.flags[TEXT_RESULT] += own
                self._add_result(
                    Message("tool", text, tool_call_id=call_id, is_error=is_error, error_kind=kind), own
                )
            elif text:
                rest.append(text)
        if rest:
            is_error, kind = (failed.is_error, failed.error_kind) if failed else (None, None)
            self.report.tool_errors += own and is_error is True
            self._growing.add_message(Message("user", "\n".join(rest), is_error=is_error, error_kind=kind))

    def _add_result(self, message: Message, own: bool) -> None:
        self.report.tool_errors += own and message.is_error is True
        if (reason := self._growing.add_result(message)) and own:
            self.report.skipped[reason] += 1

    def _show_answer(self, record: Mapping[str, Any], blocks: list[Any], place: int, own: bool) -> None:
        """Add an answer, as a step where it is a whole action of this context."""
        message = answer_message(record, blocks, place)
        if not message.content.strip() and not message.tool_calls:
            self.report.flags[NO_ACTION] += own
            return
        metadata = None
        text = message.content.rstrip()
        if record.get("isSummary"):
            pass
        elif text == NO_ANSWER or text.endswith(INTERRUPTED):
            self.report.steps_synthetic += own
            self.report.flags[BROKEN_OFF] += own
        elif own:
            if CUT_BY_HARNESS in text[-200:]:
                self.report.flags[CUT_ANSWER] += 1
            self._growing.close_calls()
            self._note_step()
            metadata = self._metadata(record)
        self._growing.add_action(message, metadata)

    def _note_step(self) -> None:
        """Note the fidelity of the step that is added next."""
        growing, index = self._growing, len(self._growing.steps)
        unasked = index == 0 and all(message.role != "user" for message in growing.messages)
        if self._lost_from is None and (self._lost or unasked):
            self._lost_from = index
        if self._outdated:
            self.report.flags[BEFORE_SUMMARY] += 1
        if self._approximate_from is None and (self._inexact or growing.unanswered or growing.displaced):
            self._approximate_from = index

    def _metadata(self, record: Mapping[str, Any]) -> StepMetadata:
        request = self._request
        asked = _time(record) or (request.time if request else None) or None
        own_model = first_text(as_mapping(record.get("modelInfo")).get("modelId"))
        model = own_model or self.model or self.files.model_at(asked)
        stamp = iso_utc(asked / 1000) if asked else None
        usage = answer_usage(record, request.metadata if request else {})
        return StepMetadata(model, first_text(record.get("id")), usage, self.cwd, stamp)

    def _note_environment(self, record: Mapping[str, Any]) -> None:
        """Record the folder and model that texts of the user name."""
        if record.get("role") != "user":
            return
        for block in map(as_mapping, blocks_of(record.get("content"))):
            text = first_text(block.get("text")) if block.get("type") == "text" else None
            if text is None or "<environment_details>" not in text:
                continue
            if found := _CWD.search(text):
                self.cwd = found[1]
            if found := _MODEL.search(text):
                self.model = found[1].strip()


def _event_name(record: Mapping[str, Any]) -> str | None:
    """Return the id of the summary or truncation that a record is, "" for none, None for another record."""
    if record.get("isSummary"):
        return first_text(record.get("condenseId")) or ""
    if record.get("isTruncationMarker"):
        return first_text(record.get("truncationId")) or ""
    return None


def _time(record: Mapping[str, Any]) -> int | None:
    time = record.get("ts")
    return time if isinstance(time, int) and not isinstance(time, bool) else None
