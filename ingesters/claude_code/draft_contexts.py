"""Arrange units in file order into drafts of contexts: runs of messages that only grew.

A new draft begins at a compaction boundary, at a root in the middle of the file (`/clear`), at a
microcompaction (old results cleared), and at a rewind: a text or step whose parent stands before later text
of the user or the model. File order decides, not a walk from the leaf, which loses the results of parallel
calls.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tracemill.ingesters.claude_code.compaction import PreservedMessages, read_compaction
from tracemill.ingesters.claude_code.prompt_snapshots import PromptSnapshot
from tracemill.ingesters.claude_code.record_fields import field_strings
from tracemill.ingesters.claude_code.session import SessionEntry, SessionFile
from tracemill.ingesters.claude_code.steps import AssembledUnits, StepUnit, TextUnit, Unit, uuids_of
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import ContextStart

TOO_EARLY = "message before the one that it hangs on"


@dataclass(slots=True)
class ContextDraft:
    """A context under construction; `at` maps a uuid to the index of its unit, -1 for the root.

    The first `shared` units are those of the draft `origin`. From the unit at `lost_at` on, something that
    the agent saw is not in the file. `prompt` is the system prompt and the tools of its own steps, `acted`
    the number of steps that began in it, `without_prompt` the number of its steps after an answer without a
    prompt between.
    """

    number: int
    start: ContextStart
    origin: "ContextDraft | None" = None
    shared: int = 0
    lost_at: int | None = None
    units: list[Unit | None] = field(default_factory=list)
    at: dict[str, int] = field(default_factory=dict)
    cleared: frozenset[str] = frozenset()
    preserved: PreservedMessages | None = None
    awaits_summary: bool = False
    prompt: PromptSnapshot | None = None
    acted: int = 0
    without_prompt: int = 0

    def lose(self, place: int) -> None:
        """Record that something is missing before the unit at this index."""
        self.lost_at = place if self.lost_at is None else min(self.lost_at, place)


def draft_contexts(
    entries: Iterable[SessionEntry], session: SessionFile, assembled: AssembledUnits, report: IngestReport
) -> list[ContextDraft]:
    """Return the contexts of one chain, in the order they began."""
    chain = list(entries)
    has_parent = [entry.parent is not None for entry in chain if entry.kind == "assistant"]
    linked = sum(has_parent) * 2 >= len(has_parent)
    builder = _DraftBuilder(session, assembled, report, linked)
    for entry in chain:
        builder.add(entry)
    return builder.drafts


def live_draft(drafts: list[ContextDraft], session: SessionFile) -> ContextDraft:
    """Return the draft the session ended in: the last one that holds the leaf or an ancestor of it.

    Where no record names the leaf, that is the last draft.
    """
    at, remaining = session.leaf, len(session.parents)
    while at is not None and remaining:
        for draft in reversed(drafts):
            if at in draft.at:
                return draft
        at, remaining = session.parents.get(at), remaining - 1
    return drafts[-1]


class _DraftBuilder:
    """Builder of drafts from entries."""

    def __init__(
        self, session: SessionFile, assembled: AssembledUnits, report: IngestReport, linked: bool
    ) -> None:
        self.parents = session.parents
        self.assembled = assembled
        self.report = report
        self.linked = linked
        self.drafts: list[ContextDraft] = [ContextDraft(0, "start")]
        self.unit_of: dict[str, Unit] = {}
        self.known: set[str] = set()
        self.prompt: PromptSnapshot | None = None

    def add(self, entry: SessionEntry) -> None:
        """Add one entry: a boundary opens a draft, other entries are placed."""
        if entry.kind == "compact":
            self._open_compaction(entry)
        elif entry.kind == "microcompact":
            self._open_microcompaction(entry)
        elif entry.snapshot is not None:
            self._set_prompt(entry.snapshot)
        else:
            for unit in self.assembled.starts.get(entry.order, ()):
                self._place_unit(unit)

    @property
    def current(self) -> ContextDraft:
        return self.drafts[-1]

    def _place_unit(self, unit: Unit) -> None:
        """Place a unit after its parent: at the end of the draft, or in a draft opened for it."""
        draft = self._draft_for(unit)
        if isinstance(unit, StepUnit):
            draft = self._draft_for_prompt(draft, unit)
        place = len(draft.units)
        draft.units.append(unit)
        uuids = uuids_of(unit)
        if self.linked and self._precedes_ancestor(unit, uuids):
            self.report.flags[TOO_EARLY] += 1
            draft.lose(place)
        for uuid in uuids:
            draft.at[uuid] = place
            self.unit_of[uuid] = unit
        self.known.update(uuids)
        if isinstance(unit, StepUnit):
            unit.home = draft.number
            self._check_compaction(draft, place)
        elif unit.doubt:
            self.report.flags[unit.doubt] += 1
            draft.lose(place)
        elif unit.interrupts:
            _mark_cut_off(draft, place)
        if draft.preserved is not None and draft.preserved.anchor in uuids:
            self._splice(draft, draft.preserved)

    def _precedes_ancestor(self, unit: Unit, own: Sequence[str]) -> bool:
        """Return whether an ancestor of the unit comes after it in the file."""
        parent, remaining = unit.parent, len(self.parents)
        while parent is not None and remaining and parent not in self.known:
            if parent in self.assembled.uuids and parent not in own:
                return True
            parent, remaining = self.parents.get(parent), remaining - 1
        return False

    def _set_prompt(self, snapshot: PromptSnapshot) -> None:
        """Set the recorded prompt for all steps from here on.

        It applies to the first step too if the tools of its prompt were recorded late.
        """
        late = self.current.acted == 1 and self.prompt is not None and self.prompt.tools is None
        self.prompt = snapshot.follows(self.prompt)
        if late and self.current.prompt is not None and self.current.prompt.version == self.prompt.version:
            self.current.prompt = self.prompt

    def _draft_for_prompt(self, draft: ContextDraft, step: StepUnit) -> ContextDraft:
        """Return the draft for a step by its prompt; a changed prompt begins a context.

        A snapshot of another version of the program is ignored.
        """
        prompt = self.prompt if self.prompt is not None and self.prompt.version == step.version else None
        if draft.acted and draft.prompt != prompt and step.acts:
            draft = self._copy_draft("tools_changed", draft)
        if not draft.acted:
            draft.prompt = prompt
        draft.acted += step.acts
        return draft

    def _copy_draft(self, start: ContextStart, older: ContextDraft) -> ContextDraft:
        """Open a draft that shares all units of an older one."""
        draft = self._open_draft(start, older)
        draft.origin, draft.shared = older, len(older.units)
        draft.units, draft.at = list(older.units), dict(older.at)
        draft.awaits_summary, draft.preserved = older.awaits_summary, older.preserved
        return draft

    def _draft_for(self, unit: Unit) -> ContextDraft:
        """Return the draft of a unit, found by its nearest placed ancestor."""
        current = self.current
        if isinstance(unit, TextUnit) and unit.summary:
            return self._summary_draft(current)
        if not self.linked or (isinstance(unit, TextUnit) and unit.queued):
            return current
        anchor, missing = self._anchor(unit.parent, uuids_of(unit)[0])
        if missing:
            return self._missing_parent(current)
        place = current.at.get(anchor)
        if place is not None:
            later = current.units[place + 1 :]
            # The unit cannot follow on a place after which the user or the model spoke.
            spoken = any(other is not None and other.spoken for other in later)
            return self._open_rewind(current, place) if spoken else current
        if anchor not in self.known:
            return self._new_root(current, anchor)
        older = next((draft for draft in reversed(self.drafts) if anchor in draft.at), current)
        return self._open_rewind(older, older.at[anchor])

    def _anchor(self, parent: str | None, own: str) -> tuple[str, bool]:
        """Return the nearest placed ancestor, else the root of the tree, and whether the root is missing."""
        below, remaining = own, len(self.parents)
        while parent is not None and remaining:
            if parent in self.known:
                return parent, False
            if parent not in self.parents:
                return parent, True
            below, parent, remaining = parent, self.parents[parent], remaining - 1
        return below, False

    def _summary_draft(self, current: ContextDraft) -> ContextDraft:
        """Return the draft of a compaction's summary; early versions did not write the boundary before it."""
        if not current.awaits_summary and current.units:
            current = self._open_draft("compaction", current)
        current.awaits_summary = False
        return current

    def _missing_parent(self, current: ContextDraft) -> ContextDraft:
        """Record a parent that is missing from the file: something before it is lost, and the run goes on."""
        current.lose(len(current.units))
        self.report.flags["parent missing"] += 1
        return current

    def _new_root(self, current: ContextDraft, root: str) -> ContextDraft:
        """Return the draft of a new root: the first of its draft, or a reset in the middle of the file."""
        if current.units:
            current = self._open_draft("clear")
        current.at[root] = -1
        self.known.add(root)
        return current

    def _open_rewind(self, older: ContextDraft, place: int) -> ContextDraft:
        """Open a draft that shares the units of an older one up to index `place`."""
        self.report.flags["rewind"] += 1
        place = _after_queued(older, place)
        draft = self._open_draft("rewind", older)
        draft.origin, draft.shared = older, place + 1
        draft.units = older.units[: place + 1]
        draft.at = {uuid: at for uuid, at in older.at.items() if at <= place}
        return draft

    def _open_compaction(self, entry: SessionEntry) -> None:
        """Open a draft for a compaction, with the old messages that it keeps after its anchor."""
        draft = self._open_draft("compaction", self.current) if self.current.units else self.current
        draft.start, draft.awaits_summary = "compaction", True
        draft.at[entry.uuid] = -1
        self.known.add(entry.uuid)
        draft.preserved = read_compaction(entry, self.parents)
        if draft.preserved is not None and draft.preserved.anchor == entry.uuid:
            self._splice(draft, draft.preserved)

    def _check_compaction(self, draft: ContextDraft, place: int) -> None:
        """Check at a step that the summary and the kept messages of a compaction have come."""
        if draft.awaits_summary:
            self.report.flags["compaction without its summary"] += 1
            draft.lose(place)
            draft.awaits_summary = False
        if draft.preserved is not None:
            self.report.flags["preserved messages without their anchor"] += 1
            draft.lose(place)
            draft.preserved = None

    def _splice(self, draft: ContextDraft, keep: PreservedMessages) -> None:
        """Insert preserved units after the anchor, each once; a missing one loses context.

        Later units with the anchor as parent come after them.
        """
        draft.preserved = None
        if keep.broken:
            self._preserved_missing(draft)
        for uuid in keep.uuids:
            unit = self.unit_of.get(uuid)
            if unit is None:
                if uuid not in self.parents:
                    self._preserved_missing(draft)
                continue
            if any(unit is other for other in draft.units):
                continue
            place = len(draft.units)
            draft.units.append(unit)
            for unit_uuid in uuids_of(unit):
                draft.at[unit_uuid] = place
        draft.at[keep.anchor] = len(draft.units) - 1

    def _preserved_missing(self, draft: ContextDraft) -> None:
        """Record that a message which the compaction kept is not in the file."""
        draft.lose(0)
        self.report.flags["preserved message missing"] += 1

    def _open_microcompaction(self, entry: SessionEntry) -> None:
        """Open a draft for a microcompaction, which clears old results and removes attachments."""
        self.report.flags["microcompaction"] += 1
        older = self.current
        if not older.units:
            return
        detail = entry.detail or {}
        draft = self._copy_draft("microcompaction", older)
        draft.cleared = older.cleared | set(field_strings(detail.get("compactedToolIds")))
        for uuid in field_strings(detail.get("clearedAttachmentUUIDs")):
            place = draft.at.get(uuid, -1)
            if place >= 0 and isinstance(draft.units[place], TextUnit):
                draft.units[place] = None

    def _open_draft(self, start: ContextStart, before: ContextDraft | None = None) -> ContextDraft:
        """Open a draft; results cleared in the one before it stay cleared."""
        draft = ContextDraft(len(self.drafts), start, cleared=before.cleared if before else frozenset())
        self.drafts.append(draft)
        return draft


def _after_queued(draft: ContextDraft, place: int) -> int:
    """Return the place, or that of the last prompt right after it that only the queue holds."""
    for at in range(place + 1, len(draft.units)):
        unit = draft.units[at]
        if not (isinstance(unit, TextUnit) and unit.queued):
            return at - 1
    return max(place, len(draft.units) - 1)


def _mark_cut_off(draft: ContextDraft, place: int) -> None:
    """Mark the response before this place as cut off by the user: text without its end."""
    before = next((u for u in reversed(draft.units[:place]) if u is not None and u.spoken), None)
    if isinstance(before, StepUnit) and not before.calls and not before.stopped:
        before.cut_off = True
