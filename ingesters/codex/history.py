"""Follow the records of a rollout and build the contexts of its session.

A prompt is the base instructions and the items since the last compaction. Items of the model form one answer
until an item of another side, a new total of tokens, or the end of the turn. Codex sends `aborted` for a call
without a result. The items that a fork copies from its origin are shown, and are steps of the origin alone.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tracemill.ingesters.codex.items import (
    ANSWERED_CALLS,
    NOT_SENT,
    OUTPUTS,
    SERVER_CALLS,
    SUMMARIES,
    is_answer,
    parse_codex_call,
    parse_codex_message,
    parse_codex_result,
    parse_codex_thought,
)
from tracemill.ingesters.common.flags import NO_ACTION
from tracemill.ingesters.common.growing_context import (
    DUPLICATE_RESULT,
    GrowingContext,
    PromptStyle,
    StepMetadata,
)
from tracemill.ingesters.common.openai_messages import as_mapping, first_text, openai_content_text
from tracemill.ingesters.common.repeats import MetRecords
from tracemill.records.ingest_report import IngestReport, record_type
from tracemill.records.message import ErrorKind, Message, ToolCall
from tracemill.records.trace import Context, ContextStart, Usage

ABORTED = "aborted"
COPIED = "answer copied from the session it was forked from"
CUT_OFF = "answer cut off by an interrupt"
DISPLACED = "text between a call and its result, shown behind the result"
MOVED = "text behind a call of the same answer, shown before it"
SEARCHED = "search of the web, whose result is not recorded"
WRITTEN_TWICE = "call or result that is written twice"
_BYTES_PER_TOKEN = 4
_TOLERANCE = 1.2
"""A result is shortened where it is longer than the limit times this."""
_STYLE = PromptStyle(by_arrival=True)


@dataclass(slots=True)
class _Answer:
    """The items of the model since the last item of another role."""

    texts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    searched: bool = False
    moved: bool = False
    timestamp: str | None = None


@dataclass(slots=True)
class TurnSettings:
    """The settings of the turn that is being read: model, working directory, and output limit in bytes."""

    model: str | None = None
    cwd: str | None = None
    shown_bytes: float | None = None


class CodexHistory:
    """The contexts of a session under construction; `copied` is True while a fork repeats its origin."""

    def __init__(self, system: str | None, report: IngestReport) -> None:
        self.turn = TurnSettings()
        self.copied = False
        self.unread: Counter[str] = Counter()
        self._system = system
        self._report = report
        self._replayed = False
        self._contexts: list[Context] = []
        self._answer: _Answer | None = None
        self._waits: list[str] = []
        self._total: Any = None
        self._written = MetRecords()
        self._begin("start", [Message("system", system)] if system else [])

    def _begin(self, start: ContextStart, messages: list[Message], lost: bool = False) -> None:
        self._context = GrowingContext(start, _STYLE, messages)
        self._lost_from = 0 if lost else None
        self._approximate: int | None = None
        self._turns: list[int] = []
        self._opened: int | None = None

    def _approximated(self) -> None:
        """Mark the prompts from the next step on as not fully known."""
        if self._approximate is None:
            self._approximate = len(self._context.steps)

    def add_gap(self) -> None:
        """Note that a line here could not be read: it may hold a part of the answer, or a result.

        The answer so far and what follows are lost. No result is made up for the calls that are open.
        """
        if self._lost_from is None:
            self._lost_from = len(self._context.steps)
        self.close_answer()
        self._waits = []

    def _not_read(self, names: list[str]) -> None:
        if names:
            self.unread.update(record_type(name.replace(" ", "_")) for name in names)
            self._approximated()

    def add_item(self, item: Mapping[str, Any], place: str, timestamp: str | None) -> None:
        """Add a response item; `place` is the id of a call that has none."""
        kind = item.get("type")
        if is_answer(item):
            self._add_answer(item, place, timestamp)
            return
        if kind in NOT_SENT:
            return
        if kind in OUTPUTS:
            self._add_result(item, timestamp)
            return
        self.close_answer()
        if kind in SUMMARIES:
            if not self._context.steps:
                self._lost_from = 0
            self._not_read(["encrypted summary"])
        else:
            message, unread = parse_codex_message(item)
            self._not_read(unread)
            if message is not None:
                if message.role == "system" and not self._context.messages:
                    message = replace(message, role="user")  # the first would be the system prompt
                    self._approximated()
                self._context.add_message(message)

    def _is_written_twice(self, timestamp: str | None, call_id: str, written: ToolCall | Message) -> bool:
        """Return whether a call or result equals an earlier one of its time and id; count it then."""
        if timestamp is None or not self._written.repeats((timestamp, call_id), written):
            return False
        self._report.skipped[WRITTEN_TWICE] += 1
        return True

    def _add_answer(self, item: Mapping[str, Any], place: str, timestamp: str | None) -> None:
        kind, call = item["type"], None
        if kind not in ("reasoning", "message"):
            call = parse_codex_call(item, place)
            if call is not None and self._is_written_twice(timestamp, call.id, call):
                return
        answer = self._answer = self._answer or _Answer(timestamp=timestamp)
        if kind == "reasoning":
            answer.thoughts.append(parse_codex_thought(item))
        elif kind == "message":
            answer.moved = answer.moved or bool(answer.calls)
            answer.texts.append(openai_content_text(item.get("content")))
        else:
            if call is None:
                self._not_read([f"{kind} without a name"])
                return
            answer.calls.append(call)
            if kind in ANSWERED_CALLS:
                answer.waits.append(call.id)
            answer.searched = answer.searched or kind in SERVER_CALLS

    def close_answer(self, interrupted: bool = False) -> None:
        """End the answer of the model, if there is one."""
        answer, self._answer = self._answer, None
        if answer is None:
            return
        text = "\n".join(text for text in answer.texts if text)
        if not text and not answer.calls:
            self._report.flags[NO_ACTION] += 1
            return
        self._abort_calls()
        thought = "\n\n".join(text for text in answer.thoughts if text)
        message = Message("assistant", text, tuple(answer.calls), reasoning=thought or None)
        metadata = StepMetadata(self.turn.model, cwd=self.turn.cwd, timestamp=answer.timestamp)
        self._context.add_action(message, metadata)
        self._waits = answer.waits
        if answer.moved:
            self._report.flags[MOVED] += 1
        if self.copied or self._replayed or (interrupted and not answer.calls):
            self._context.steps.pop()
            if not self._replayed:
                self._report.flags[COPIED if self.copied else CUT_OFF] += 1
        if answer.searched:
            self._report.flags[SEARCHED] += 1
            self._approximated()

    def _add_result(self, item: Mapping[str, Any], timestamp: str | None) -> None:
        message, unread = parse_codex_result(item)
        call_id = message.tool_call_id or ""
        if self._is_written_twice(timestamp, call_id, message):
            return
        self.close_answer()
        self._not_read(unread)
        limit = self.turn.shown_bytes
        if limit is not None and len(message.content.encode("utf-8", "replace")) > limit:
            self._approximated()
        self._context.displaced = False
        reason = self._context.add_result(message)
        if self._context.displaced:
            self._report.flags[DISPLACED] += 1
        if reason:
            self._report.skipped[reason] += 1
            if reason == DUPLICATE_RESULT:
                self._approximated()
            return
        self._report.tool_errors += message.is_error is True and not (self.copied or self._replayed)
        if call_id in self._waits:
            self._waits.remove(call_id)

    def _abort_calls(self) -> None:
        """Add results to unanswered calls, in the way that Codex does before it sends the next prompt."""
        waits, self._waits = self._waits, []
        for call_id in waits:
            self._context.add_result(
                Message("tool", ABORTED, (), call_id, None, True, ErrorKind.USER_REJECTION)
            )

    def begin_turn(self) -> None:
        """Note that a turn begins here."""
        self.close_answer()
        self._abort_calls()
        self._context.close_calls()
        self._opened = len(self._context.messages)

    def begin_user_turn(self) -> None:
        """Record that the user typed the last text; a rollback removes it with the turn's texts before it.

        Texts before the first user text of a session stay.
        """
        typed, opened = len(self._context.messages) - 1, self._opened
        self._turns.append(typed if opened is None or not self._turns else opened)
        self._opened = None

    def set_limit(self, limit: int, in_tokens: bool) -> None:
        """Set the length at which Codex truncates a result; the file holds the whole result."""
        self.turn.shown_bytes = limit * (_BYTES_PER_TOKEN if in_tokens else 1) * _TOLERANCE

    def report_tokens(self, info: Mapping[str, Any]) -> None:
        """Read the tokens of the session; a new total ends an answer."""
        total, last = info.get("total_token_usage"), as_mapping(info.get("last_token_usage"))
        if total == self._total:
            return
        self._total = total
        self.close_answer()
        if not self.copied and last.get("input_tokens"):
            counts = (last.get(key) for key in ("input_tokens", "output_tokens", "cached_input_tokens"))
            self._context.report_usage(Usage(*(n if isinstance(n, int) else None for n in counts)))

    def compact(self, payload: Mapping[str, Any]) -> None:
        """Begin a context with the history that replaces the one so far.

        A version that does not record it keeps the texts of the user and puts the summary after them.
        """
        self.close_answer()
        old = self._end()
        self._report.compactions += not self.copied
        summary, replaced = first_text(payload.get("message")), payload.get("replacement_history")
        system = [Message("system", self._system)] if self._system else []
        if isinstance(replaced, list):
            self._begin("compaction", system, lost=summary is None)
            self._replayed = True
            for place, item in enumerate(replaced):
                self.add_item(as_mapping(item), f"compacted-{place}", None)
            self.close_answer()
            self._replayed = False
        else:
            kept = [message for message in old.messages[len(system) :] if message.role in ("user", "system")]
            gap = self._lost_from is not None
            self._begin("compaction", [*system, *kept], lost=gap or summary is None)
            self._approximated()
            if summary:
                self._context.add_message(Message("user", summary))

    def roll_back(self, count: int) -> None:
        """Begin a context without the last turns of the user."""
        self.close_answer()
        turns = self._turns
        old = self._end()
        self._report.branches_real += not self.copied
        known = 0 < count <= len(turns)
        kept = old.messages[: turns[-count]] if known else old.messages[: 1 if self._system else 0]
        lost, approximate = self._lost_from is not None or not known, self._approximate
        self._begin("rewind", kept, lost)
        self._turns = turns[:-count] if known else []
        self._approximate = None if approximate is None else 0

    def _end(self) -> GrowingContext:
        """Close the current context and keep it if it has steps."""
        self._abort_calls()
        context = self._context
        context.close_calls()
        if context.steps:
            lost = self._lost_from is not None and self._lost_from < len(context.steps)
            built = context.finish(len(self._contexts), (), lost)
            if lost:
                built = replace(built, lost_from=self._lost_from or 0)
            if built.fidelity.context == "complete" and self._is_approximate(built):
                fidelity = replace(built.fidelity, context="approximate")
                built = replace(built, fidelity=fidelity, approximate_from=self._approximate)
            self._contexts.append(built)
        return context

    def _is_approximate(self, built: Context) -> bool:
        return self._approximate is not None and self._approximate < len(built.steps)

    @property
    def empty(self) -> bool:
        """Return whether no item came so far."""
        shown = len(self._context.messages) > bool(self._system)
        return not (shown or self._answer or self._contexts)

    def finish(self) -> tuple[Context, ...]:
        """Return the contexts that hold a step."""
        self.close_answer()
        self._waits = []
        self._end()
        return tuple(self._contexts)
