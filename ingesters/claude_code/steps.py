"""Merge the entries of a chain into units: whole assistant steps with their results, and texts between them.

An assistant step is all records of one message id, wherever they stand. Its results belong to it by
tool_use_id, wherever their records hang and whenever they came: streamed tools answer between the chunks of a
step, and parallel calls fork the tree.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tracemill.ingesters.claude_code.session import SessionEntry
from tracemill.records.ingest_report import IngestReport
from tracemill.records.message import Message, ToolCall
from tracemill.records.trace import Usage

_INTERRUPTED = "[Request interrupted by user"


@dataclass(slots=True)
class StepUnit:
    """One response of the model: its merged chunks and the results of its calls.

    `stopped` is True if its last chunk has a stop reason. `cut_off` is True if the user interrupted it: it
    is then a fragment and not an action. The same holds if part of it is not understood (`unread`);
    `unread_results` are the calls whose results are not understood. `home` is the draft it was first placed
    in.
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
    unread: bool = False
    unread_results: set[str] = field(default_factory=set)

    def message(self) -> Message:
        """Return the response as one message, the same object in every context."""
        if self.built is None:
            text, reasoning = "\n\n".join(self.texts), "\n\n".join(self.thoughts)
            self.built = Message("assistant", text, tuple(self.calls.values()), reasoning=reasoning or None)
        return self.built

    @property
    def acts(self) -> bool:
        """Return whether it has text or calls; a response of thinking alone has not."""
        return bool(self.texts or self.calls)


@dataclass(slots=True)
class TextUnit:
    """A message between steps; `spoken` is True if the user wrote it and it is the next message's parent.

    A `queued` one is no message's parent and was typed at the line `typed`; `doubt` says why the agent may
    not have seen it there. `is_stand_in` is True if wording or role is a stand-in for unrecorded text,
    `unread` if part of it is not understood.
    """

    uuid: str
    order: int
    parent: str | None
    content: Message
    spoken: bool
    summary: bool = False
    queued: bool = False
    is_stand_in: bool = False
    typed: int = 0
    doubt: str = ""
    unread: bool = False

    @property
    def interrupts(self) -> bool:
        """Return whether it says that the user interrupted the response."""
        return self.spoken and self.content.content.startswith(_INTERRUPTED)


Unit = StepUnit | TextUnit


def uuids_of(unit: Unit) -> list[str]:
    """Return the uuids of the records that a unit is made of."""
    return unit.uuids if isinstance(unit, StepUnit) else [unit.uuid]


@dataclass(slots=True)
class AssembledUnits:
    """The units of a file by the line that begins each, the step of every call, and the uuids of units."""

    starts: dict[int, list[Unit]]
    by_call: dict[str, StepUnit]
    uuids: frozenset[str]


def assemble_steps(entries: Iterable[SessionEntry], report: IngestReport) -> AssembledUnits:
    """Merge chunks and attach results over the whole file, and return the units by line."""
    entries = list(entries)
    firsts, by_call = _merge(entries, report)
    starts: dict[int, list[Unit]] = {}
    for entry in entries:
        units: list[Unit] = []
        if entry.kind == "assistant" and entry.order in firsts:
            units.append(firsts[entry.order])
        if entry.results:
            units.extend(_attach(entry, by_call, report))
        if (entry.text or entry.unread) and entry.kind in ("user", "reminder", "queued"):
            units.append(_text_unit(entry, Message(entry.role, entry.text)))
        if units:
            starts[entry.order] = units
    uuids = frozenset(uuid for begun in starts.values() for unit in begun for uuid in uuids_of(unit))
    return AssembledUnits(starts, by_call, uuids)


def _merge(
    entries: list[SessionEntry], report: IngestReport
) -> tuple[dict[int, StepUnit], dict[str, StepUnit]]:
    """Return the steps by the line they begin at, and by the ids of their calls."""
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
            is_repeated = by_call.setdefault(call.id, step) is not step or call.id in step.calls
            if is_repeated:
                report.flags["repeated call id"] += 1
            step.calls.setdefault(call.id, call)
    return firsts, by_call


def _add_chunk(step: StepUnit, entry: SessionEntry) -> None:
    """Add a chunk to its step, without text that the step already has.

    A resumed session may hold its last turns twice, under other uuids.
    """
    step.uuids.append(entry.uuid)
    if entry.text and entry.text not in step.texts:
        step.texts.append(entry.text)
    if entry.reasoning and entry.reasoning not in step.thoughts:
        step.thoughts.append(entry.reasoning)
    step.usage = _later(step.usage, entry.usage)
    step.stopped = entry.stopped
    step.cut_off = step.cut_off or entry.cut_off
    step.unread = step.unread or entry.unread


def _later(before: Usage | None, now: Usage | None) -> Usage | None:
    """Return the later usage, with missing fields from the earlier one."""
    if before is None or now is None:
        return now or before
    return Usage(
        before.prompt_tokens if now.prompt_tokens is None else now.prompt_tokens,
        before.completion_tokens if now.completion_tokens is None else now.completion_tokens,
        before.cached_tokens if now.cached_tokens is None else now.cached_tokens,
        before.cost_usd if now.cost_usd is None else now.cost_usd,
    )


def _attach(entry: SessionEntry, by_call: dict[str, StepUnit], report: IngestReport) -> Iterable[TextUnit]:
    """Attach the entry's results to their steps; return those without a step as units."""
    orphans: list[TextUnit] = []
    for result in entry.results:
        step = by_call.get(result.tool_call_id or "")
        unread = (result.tool_call_id or "") in entry.unread_results
        if step is None:
            report.flags["tool result without its call"] += 1
            orphans.append(
                TextUnit(entry.uuid, entry.order, entry.parent, result, spoken=False, unread=unread)
            )
        elif result.tool_call_id in step.results:
            report.flags["repeated tool result"] += 1
        else:
            step.results[result.tool_call_id or ""] = result
            if unread:
                step.unread_results.add(result.tool_call_id or "")
            step.last_result = entry.order
            step.uuids.append(entry.uuid)
    return orphans


def _text_unit(entry: SessionEntry, message: Message) -> TextUnit:
    queued = entry.kind == "queued"
    spoken = not (entry.meta or entry.summary or queued)
    return TextUnit(
        entry.uuid,
        entry.order,
        entry.parent,
        message,
        spoken,
        entry.summary,
        queued,
        entry.is_stand_in,
        entry.typed,
        entry.doubt,
        entry.unread,
    )
