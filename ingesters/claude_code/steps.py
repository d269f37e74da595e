"""Entries of one chain → units: whole assistant steps with their results, and texts between them.

An assistant step is all records of one message id, wherever they stand. Its results belong to it by
tool_use_id, wherever their record hangs and whenever it came (streamed tools answer between the chunks
of a step; parallel calls fork the tree).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tracemill.ingesters.claude_code.session import Entry
from tracemill.records.ingest_report import IngestReport
from tracemill.records.message import Message, ToolCall
from tracemill.records.trace import Usage

_INTERRUPTED = "[Request interrupted by user"


@dataclass(slots=True)
class StepUnit:
    """One response of the model: its chunks merged, the results of its calls behind it.

    `stopped` where its last chunk says why it ended, `cut_off` where the user broke it off before that:
    then it is a fragment, and no action. `home` is the draft it was first placed in.
    """

    message_id: str
    order: int
    parent: str | None
    uuids: list[str]
    model: str | None
    cwd: str | None
    timestamp: str | None
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: dict[str, ToolCall] = field(default_factory=dict)
    results: dict[str, Message] = field(default_factory=dict)
    last_result: int = 0
    usage: Usage | None = None
    home: int = -1
    spoken: bool = True
    stopped: bool = False
    cut_off: bool = False
    built: Message | None = None
    version: str | None = None

    def message(self) -> Message:
        """The response as one message, the same object in every context."""
        if self.built is None:
            text, reasoning = "\n\n".join(self.texts), "\n\n".join(self.thoughts)
            self.built = Message("assistant", text, tuple(self.calls.values()), reasoning=reasoning or None)
        return self.built

    @property
    def acts(self) -> bool:
        """Whether it says or does anything; a response of thinking alone does not."""
        return bool(self.texts or self.calls)


@dataclass(slots=True)
class TextUnit:
    """A message between steps; `spoken` where the user wrote it, not the harness, and the next message
    hangs on it. Nothing hangs on a `queued` one. `stood_in` where its wording is ours."""

    uuid: str
    order: int
    parent: str | None
    content: Message
    spoken: bool
    summary: bool = False
    queued: bool = False
    stood_in: bool = False

    @property
    def interrupts(self) -> bool:
        """Whether it says that the user broke the response off."""
        return self.spoken and self.content.content.startswith(_INTERRUPTED)


Unit = StepUnit | TextUnit


@dataclass(slots=True)
class Assembled:
    """The units of the chains of a file, by the entry that begins each, and the step of every call."""

    starts: dict[int, list[Unit]]
    by_call: dict[str, StepUnit]


def assemble_steps(entries: Iterable[Entry], report: IngestReport) -> Assembled:
    """Merges chunks and attaches results over the whole file, then says what begins at which line."""
    entries = list(entries)
    firsts, by_call = _merge(entries, report)
    starts: dict[int, list[Unit]] = {}
    for entry in entries:
        units: list[Unit] = []
        if entry.kind == "assistant" and entry.order in firsts:
            units.append(firsts[entry.order])
        if entry.results:
            units.extend(_attach(entry, by_call, report))
        if entry.text and entry.kind in ("user", "reminder", "queued"):
            units.append(_text_unit(entry, Message("user", entry.text)))
        if units:
            starts[entry.order] = units
    return Assembled(starts, by_call)


def _merge(entries: list[Entry], report: IngestReport) -> tuple[dict[int, StepUnit], dict[str, StepUnit]]:
    """Steps by the line they begin at, and by the ids of their calls."""
    steps: dict[tuple[str, str | None, bool], StepUnit] = {}
    firsts: dict[int, StepUnit] = {}
    by_call: dict[str, StepUnit] = {}
    for entry in entries:
        if entry.kind != "assistant":
            continue
        key = (entry.message_id, entry.agent, entry.side)
        step = steps.get(key)
        if step is None:
            step = steps[key] = firsts[entry.order] = StepUnit(
                entry.message_id,
                entry.order,
                entry.parent,
                [],
                entry.model,
                entry.cwd,
                entry.timestamp,
                version=entry.version,
            )
        _add_chunk(step, entry)
        for call in entry.calls:
            known = by_call.setdefault(call.id, step) is not step or call.id in step.calls
            if known:
                report.flags["repeated call id"] += 1
            step.calls.setdefault(call.id, call)
    return firsts, by_call


def _add_chunk(step: StepUnit, entry: Entry) -> None:
    """A chunk more. A session that was resumed may hold its last turns twice, under other uuids: what a
    response said already is not said again."""
    step.uuids.append(entry.uuid)
    if entry.text and entry.text not in step.texts:
        step.texts.append(entry.text)
    if entry.reasoning and entry.reasoning not in step.thoughts:
        step.thoughts.append(entry.reasoning)
    step.usage = _later(step.usage, entry.usage)
    step.stopped = entry.stopped
    step.cut_off = step.cut_off or entry.cut_off


def _later(before: Usage | None, now: Usage | None) -> Usage | None:
    """What a later chunk reports, and of what it does not, what an earlier one did."""
    if before is None or now is None:
        return now or before
    return Usage(
        before.prompt_tokens if now.prompt_tokens is None else now.prompt_tokens,
        before.completion_tokens if now.completion_tokens is None else now.completion_tokens,
        before.cached_tokens if now.cached_tokens is None else now.cached_tokens,
        before.cost_usd if now.cost_usd is None else now.cost_usd,
    )


def _attach(entry: Entry, by_call: dict[str, StepUnit], report: IngestReport) -> Iterable[TextUnit]:
    """Gives the entry's results to their steps; those of no step are units of their own."""
    orphans: list[TextUnit] = []
    for result in entry.results:
        step = by_call.get(result.tool_call_id or "")
        if step is None:
            report.flags["tool result without its call"] += 1
            orphans.append(TextUnit(entry.uuid, entry.order, entry.parent, result, spoken=False))
        elif result.tool_call_id in step.results:
            report.flags["repeated tool result"] += 1
        else:
            step.results[result.tool_call_id or ""] = result
            step.last_result = entry.order
            step.uuids.append(entry.uuid)
    return orphans


def _text_unit(entry: Entry, message: Message) -> TextUnit:
    queued = entry.kind == "queued"
    spoken = not (entry.meta or entry.summary or queued)
    return TextUnit(
        entry.uuid, entry.order, entry.parent, message, spoken, entry.summary, queued, entry.stood_in
    )
