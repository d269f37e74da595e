"""Build the contexts of an opencode session: what the model was sent at each of its answers.

A prompt is every message since the last compaction. A compaction starts anew with its summary. The harness
clears results of old calls at a recorded time: an answer behind it begins a context (`microcompaction`). What
broke off before a retry is shown later, and not to the retry (`rewritten`); an answer that failed is in no
later prompt (`rewind`). Early versions record the system prompt of each answer; another one begins a context.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tracemill.ingesters.common.flags import BROKEN_OFF, NO_ACTION, OVER_LIMIT
from tracemill.ingesters.common.growing_context import GrowingContext, StepMetadata
from tracemill.ingesters.common.openai_messages import as_mapping, first_text
from tracemill.ingesters.common.times import iso_time
from tracemill.ingesters.opencode.messages import (
    ROLES,
    UNREADABLE_CALL,
    OpencodeAnswer,
    OpencodeMessage,
    answer_message,
    blocks_of,
    cleared_at,
    parse_usage,
    result_messages,
    system_text,
    user_text,
)
from tracemill.records.ingest_report import IngestReport, record_type
from tracemill.records.message import ErrorKind, Message
from tracemill.records.trace import Context, ContextStart, Fidelity

BY_THE_USER = "call that the user made"
NOT_AS_EMITTED = "call that the harness could not read"
FAILED_COMPACTION = "compaction that failed"
MISSING_TAIL = "kept message of a compaction that is not in the file"
QUEUED = "message of the user while the agent worked"
_ABORTED = "MessageAbortedError"
_CUT = ("length", "content-filter", "error")


@dataclass(slots=True)
class OpencodeContexts:
    """Builder of all contexts of one session, message by message.

    `shown` are the messages of the current prompt. `stale` is why the next prompt differs from the messages
    of the current context, None while it goes on. `clearings` are the times at which results were cleared,
    the next one last. `planning`, `queued` and `tail` say why prompts hold what the file does not.
    """

    messages: Sequence[OpencodeMessage]
    report: IngestReport
    contexts: list[Context] = field(default_factory=list)
    shown: list[OpencodeMessage] = field(default_factory=list)
    growing: GrowingContext = field(default_factory=GrowingContext)
    start: ContextStart = "start"
    stale: ContextStart | None = None
    clearings: list[float] = field(default_factory=list)
    lost: bool = False
    planning: bool = False
    queued: bool = False
    tail: bool = False
    working: bool = False
    system: str = ""
    lost_from: int | None = None
    approximate_from: int | None = None

    def run(self) -> list[Context]:
        """Return the contexts of the session that hold a step."""
        times = (cleared_at(message.parts[at]) for message in self.messages for at in message.call_ids)
        self.clearings = sorted({time for time in times if time is not None}, reverse=True)
        for message in self.messages:
            self._add(message)
        self._close()
        return self.contexts

    def _add(self, message: OpencodeMessage) -> None:
        role = message.role
        unread = [f"part {record_type(name)}" for name in message.unread]
        unread += [] if role in ROLES else [f"message {record_type(message.info.get('role'))}"]
        if unread:
            self.report.unknown.update(unread)
            self.lost = True
        self.planning |= message.info.get("agent", message.info.get("mode")) == "plan"
        if role == "user":
            if self.working and not message.has("compaction") and _is_typed(message):
                self.report.flags[QUEUED] += 1
                self.queued = True
            self.shown.append(message)
            self._show(message)
        elif role == "assistant" and message.info.get("summary") is True:
            self._add_summary(message)
        elif role == "assistant":
            self._add_answer(message)

    def _add_summary(self, message: OpencodeMessage) -> None:
        """Begin a context with the summary, after its request and the messages kept before that."""
        if message.info.get("error") or not message.info.get("finish"):
            self.report.flags[FAILED_COMPACTION] += 1
            blocks = blocks_of(message)
            if _is_kept(message, blocks):
                self.shown.append(message)
                for block in (each for each in blocks if each.acts):
                    _act(self.growing, message, block, message.created)
            return
        self.report.compactions += 1
        asked = message.info.get("parentID")
        place = next((at for at, each in enumerate(self.shown) if asked and each.id == asked), None)
        request = self.shown[place] if place is not None and self.shown[place].has("compaction") else None
        kept, missing = self._kept(request, self.shown[:place]) if request else ([], False)
        self.report.flags[MISSING_TAIL] += missing
        self.shown = [*kept, *([request] if request else []), message]
        self._begin("compaction", self._drawn("compaction", message.created))
        self.lost = missing or any(each.unread for each in self.shown)
        self.working, self.queued, self.tail = False, False, bool(kept)

    def _kept(
        self, request: OpencodeMessage, before: list[OpencodeMessage]
    ) -> tuple[list[OpencodeMessage], bool]:
        """Return the messages that a compaction keeps, and whether the first of them is missing."""
        part = next(part for part in request.parts if part.get("type") == "compaction")
        first = first_text(part.get("tail_start_id"))
        place = next((at for at, each in enumerate(before) if first and each.id == first), None)
        return ([] if place is None else before[place:]), first is not None and place is None

    def _add_answer(self, message: OpencodeMessage) -> None:
        """Add an assistant message, each whole answer of a model in it as a step."""
        error, blocks = message.info.get("error"), blocks_of(message)
        kept = _is_kept(message, blocks)
        started = any(block.started for block in blocks)
        own = system_text(message) if started else self.system
        self._renew(message.created, own)
        stale: ContextStart | None = None
        for place, block in enumerate(blocks, 1):
            if block.started and block.finish is None:
                self._count_cut_off()
                if place < len(blocks):
                    stale = "rewritten" if block.acts else stale
                    continue
                if not kept:
                    continue
            self._add_block(message, block, message is not self.messages[-1] or place < len(blocks))
        if error and not started:
            self._count_cut_off()
        if kept:
            self.shown.append(message)
        elif any(block.finish for block in blocks):
            stale = "rewind"
        self.stale = stale
        stopped = [result.error_kind for result in self.growing.messages[-8:]]
        going = message.info.get("finish") == "tool-calls" and not error
        self.working = going and ErrorKind.USER_REJECTION not in stopped

    def _count_cut_off(self) -> None:
        self.report.flags[BROKEN_OFF] += 1
        self.report.steps_synthetic += 1

    def _add_block(self, message: OpencodeMessage, block: OpencodeAnswer, answered: bool) -> None:
        if not block.acts:
            self.report.flags[NO_ACTION] += block.started
            return
        metadata = None
        if self._is_step(block) and not message.unread:
            self._note_step()
            metadata = StepMetadata(
                model=first_text(message.info.get("modelID")),
                native_id=message.id,
                usage=parse_usage(block.finish or {}),
                cwd=first_text(as_mapping(message.info.get("path")).get("cwd")),
                timestamp=iso_time(message.created or None),
            )
        results = _act(self.growing, message, block, message.created, metadata, answered)
        self.report.tool_errors += sum(result.is_error is True for result in results) if metadata else 0

    def _is_step(self, block: OpencodeAnswer) -> bool:
        """Return whether a block is a whole action of a model; count the reason if it is not."""
        if not block.started:
            self.report.flags[BY_THE_USER] += len(block.calls)
            return False
        if block.finish is None:
            return False
        if block.finish.get("reason") in _CUT:
            self.report.flags[OVER_LIMIT] += 1
            return False
        unread = sum(part.get("tool") == UNREADABLE_CALL for _, part in block.calls)
        self.report.flags[NOT_AS_EMITTED] += unread
        return not unread

    def _show(self, message: OpencodeMessage) -> None:
        if text := user_text(message):
            self.growing.add_message(Message("user", text))

    def _renew(self, now: float, system: str) -> None:
        """Begin a context if the prompt of the next step differs from the messages so far."""
        cleared = False
        if system != self.system:
            self.system, self.stale = system, self.stale or "rewritten"
        while self.clearings and self.clearings[-1] <= now:
            self.clearings.pop()
            cleared = True
        self.growing.close_calls()
        if self.stale is not None or cleared:
            start: ContextStart = self.stale or "microcompaction"
            drawn = self._drawn(start, now)
            if drawn.messages != self.growing.messages:
                self._begin(start, drawn)
            self.stale = None

    def _begin(self, start: ContextStart, drawn: GrowingContext) -> None:
        """Begin a context with these messages; the start of a context without a step is inherited."""
        has_steps = bool(self.growing.steps)
        self._close()
        self.start = start if has_steps or start == "compaction" else self.start
        self.growing, self.stale = drawn, None

    def _drawn(self, start: ContextStart, now: float) -> GrowingContext:
        """Return a context that holds the messages shown at a time, none of them a step."""
        drawn = GrowingContext(start, messages=[Message("system", self.system)] if self.system else ())
        for message in self.shown:
            if message.role == "user":
                if text := user_text(message):
                    drawn.add_message(Message("user", text))
                continue
            for block in blocks_of(message):
                if block.acts:
                    _act(drawn, message, block, now)
        drawn.close_calls()
        return drawn

    def _note_step(self) -> None:
        """Note the fidelity of the step that is added next."""
        self.growing.close_calls()
        index = len(self.growing.steps)
        unasked = index == 0 and all(each.role != "user" for each in self.growing.messages)
        if self.lost_from is None and (self.lost or unasked):
            self.lost_from = index
        inexact = self.planning or self.queued or self.tail or self.growing.unanswered
        if self.approximate_from is None and inexact:
            self.approximate_from = index
        self.queued = False

    def _close(self) -> None:
        self.growing.close_calls()
        if self.growing.steps:
            lost, approximate = self.lost_from is not None, self.approximate_from is not None
            known = "lost" if lost else "approximate" if approximate else "complete"
            self.contexts.append(
                Context(
                    len(self.contexts),
                    tuple(self.growing.messages),
                    tuple(self.growing.steps),
                    self.start,
                    (),
                    Fidelity(
                        system="recorded" if self.growing.messages[0].role == "system" else "absent",
                        context=known,
                    ),
                    self.lost_from or 0,
                    self.approximate_from,
                )
            )
        self.lost_from, self.approximate_from = None, None


def _is_kept(message: OpencodeMessage, blocks: Sequence[OpencodeAnswer]) -> bool:
    """Return whether later prompts show a message; a failed one is shown only if the user stopped it."""
    error = as_mapping(message.info.get("error"))
    stopped = error.get("name") == _ABORTED and any(block.acts for block in blocks)
    return not message.info.get("error") or stopped


def _act(
    growing: GrowingContext,
    message: OpencodeMessage,
    block: OpencodeAnswer,
    now: float,
    metadata: StepMetadata | None = None,
    answered: bool = True,
) -> list[Message]:
    """Add a block with its calls' results as shown in a prompt at time `now`; return the results.

    A call that still runs has no result if nothing follows it (`answered` is False).
    """
    growing.add_action(answer_message(message, block), metadata)
    results = result_messages(message, block, now)
    for (_, part), result in zip(block.calls, results, strict=True):
        if answered or as_mapping(part.get("state")).get("status") not in ("pending", "running"):
            growing.add_result(result)
    return results


def _is_typed(message: OpencodeMessage) -> bool:
    """Return whether a message of the user holds a text that the harness did not write."""
    texts = (part for part in message.parts if part.get("type") == "text")
    return any(not part.get("synthetic") and not part.get("ignored") for part in texts)
