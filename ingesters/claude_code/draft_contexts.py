"""Units in file order → drafts of contexts: runs of messages that only grew.

A new draft begins at a compaction boundary, at a root in the middle of the file (`/clear`), at a
microcompaction (old results blanked), and at a rewind: a text or step whose parent lies before what the
user or the model said last. File order decides, never a walk from the leaf: a walk loses the results of
parallel calls.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tracemill.ingesters.claude_code.compaction import Preserved, read_compaction
from tracemill.ingesters.claude_code.prompt_snapshots import PromptSnapshot
from tracemill.ingesters.claude_code.record_fields import field_strings
from tracemill.ingesters.claude_code.session import Entry, Session
from tracemill.ingesters.claude_code.steps import Assembled, StepUnit, TextUnit, Unit
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import ContextStart


@dataclass(slots=True)
class Draft:
    """A context as it grows. `at` gives the place of the unit a uuid belongs to, -1 for the root.

    The first `shared` units are those of the draft `origin`. From the unit at `lost_at` on, something
    that the agent saw before it is not in the file. `prompt` is the system prompt and the tools that its
    own steps were given, `acted` how many steps began in it.
    """

    number: int
    start: ContextStart
    origin: "Draft | None" = None
    shared: int = 0
    lost_at: int | None = None
    units: list[Unit | None] = field(default_factory=list)
    at: dict[str, int] = field(default_factory=dict)
    cleared: frozenset[str] = frozenset()
    preserved: Preserved | None = None
    awaits_summary: bool = False
    prompt: PromptSnapshot | None = None
    acted: int = 0

    def lose(self, place: int) -> None:
        """Something is missing before the unit at this place."""
        self.lost_at = place if self.lost_at is None else min(self.lost_at, place)


def draft_contexts(
    entries: Iterable[Entry], session: Session, assembled: Assembled, report: IngestReport
) -> list[Draft]:
    """The contexts of one chain, in the order they began."""
    chain = list(entries)
    hanging = [entry.parent is not None for entry in chain if entry.kind == "assistant"]
    linked = sum(hanging) * 2 >= len(hanging)
    line = _Line(session, assembled, report, linked)
    for entry in chain:
        line.feed(entry)
    return line.drafts


def live_draft(drafts: list[Draft], session: Session) -> Draft:
    """The draft the session ended in: the last one that holds the leaf, where a record names it, or what
    the leaf hangs on; else the last one."""
    at, left = session.leaf, len(session.parents)
    while at is not None and left:
        for draft in reversed(drafts):
            if at in draft.at:
                return draft
        at, left = session.parents.get(at), left - 1
    return drafts[-1]


class _Line:
    """Feeds entries into drafts."""

    def __init__(self, session: Session, assembled: Assembled, report: IngestReport, linked: bool) -> None:
        self.parents = session.parents
        self.assembled = assembled
        self.report = report
        self.linked = linked
        self.drafts: list[Draft] = [Draft(0, "start")]
        self.unit_of: dict[str, Unit] = {}
        self.known: set[str] = set()
        self.prompt: PromptSnapshot | None = None

    def feed(self, entry: Entry) -> None:
        """One entry: a boundary opens a draft, the rest is placed."""
        if entry.kind == "compact":
            self._compact(entry)
        elif entry.kind == "microcompact":
            self._microcompact(entry)
        elif entry.snapshot is not None:
            self._snapshot(entry.snapshot)
        else:
            for unit in self.assembled.starts.get(entry.order, ()):
                self._place(unit)

    @property
    def current(self) -> Draft:
        return self.drafts[-1]

    def _place(self, unit: Unit) -> None:
        """Puts a unit behind its parent: at the end, or in a draft opened for it."""
        draft = self._draft_for(unit)
        if isinstance(unit, StepUnit):
            draft = self._prompted(draft, unit)
        place = len(draft.units)
        draft.units.append(unit)
        uuids = unit.uuids if isinstance(unit, StepUnit) else [unit.uuid]
        for uuid in uuids:
            draft.at[uuid] = place
            self.unit_of[uuid] = unit
        self.known.update(uuids)
        if isinstance(unit, StepUnit):
            unit.home = draft.number
            self._check_whole(draft, place)
        elif unit.interrupts:
            _cut_off(draft, place)
        if draft.preserved is not None and draft.preserved.anchor in uuids:
            self._splice(draft, draft.preserved)

    def _snapshot(self, snapshot: PromptSnapshot) -> None:
        """Take a recorded prompt: of all steps from here on, and of the first step where the tools of its
        own came late."""
        late = self.current.acted == 1 and self.prompt is not None and self.prompt.tools is None
        self.prompt = snapshot.follows(self.prompt)
        if late and self.current.prompt is not None and self.current.prompt.version == self.prompt.version:
            self.current.prompt = self.prompt

    def _prompted(self, draft: Draft, step: StepUnit) -> Draft:
        """Return the draft that a step goes to, by the prompt it was given: a prompt that changed begins a
        context. A snapshot of another version of the program tells nothing of it."""
        prompt = self.prompt if self.prompt is not None and self.prompt.version == step.version else None
        if draft.acted and draft.prompt != prompt and step.acts:
            draft = self._copied("tools_changed", draft)
        if not draft.acted:
            draft.prompt = prompt
        draft.acted += step.acts
        return draft

    def _copied(self, start: ContextStart, older: Draft) -> Draft:
        """Open a draft that shares all of an older one."""
        draft = self._open(start, older)
        draft.origin, draft.shared = older, len(older.units)
        draft.units, draft.at = list(older.units), dict(older.at)
        draft.awaits_summary, draft.preserved = older.awaits_summary, older.preserved
        return draft

    def _draft_for(self, unit: Unit) -> Draft:
        """Where a unit goes, by where its nearest placed ancestor is."""
        current = self.current
        if isinstance(unit, TextUnit) and unit.summary:
            return self._summarised(current)
        if not self.linked or (isinstance(unit, TextUnit) and unit.queued):
            return current
        anchor, missing = self._anchor(unit.parent, _first_uuid(unit))
        if missing:
            return self._dangling(current)
        place = current.at.get(anchor)
        if place is not None:
            return self._rewind(current, place) if _passed(current, place) else current
        if anchor not in self.known:
            return self._root(current, anchor)
        older = next((draft for draft in reversed(self.drafts) if anchor in draft.at), current)
        return self._rewind(older, older.at[anchor])

    def _anchor(self, parent: str | None, own: str) -> tuple[str, bool]:
        """The nearest ancestor already placed, else the root of the tree, and whether the root is missing."""
        below, left = own, len(self.parents)
        while parent is not None and left:
            if parent in self.known:
                return parent, False
            if parent not in self.parents:
                return parent, True
            below, parent, left = parent, self.parents[parent], left - 1
        return below, False

    def _summarised(self, current: Draft) -> Draft:
        """Where the summary of a compaction goes: behind its boundary, which early versions did not write."""
        if not current.awaits_summary and current.units:
            current = self._open("compaction", current)
        current.awaits_summary = False
        return current

    def _dangling(self, current: Draft) -> Draft:
        """A parent the file does not hold: something before it is lost, and the run goes on."""
        current.lose(len(current.units))
        self.report.flags["parent missing"] += 1
        return current

    def _root(self, current: Draft, root: str) -> Draft:
        """A root that is new: the first of its draft, or a reset in the middle of the file."""
        if current.units:
            current = self._open("clear")
        current.at[root] = -1
        self.known.add(root)
        return current

    def _rewind(self, older: Draft, place: int) -> Draft:
        """A draft that shares the older one up to a place."""
        self.report.flags["rewind"] += 1
        place = _with_queued(older, place)
        draft = self._open("rewind", older)
        draft.origin, draft.shared = older, place + 1
        draft.units = older.units[: place + 1]
        draft.at = {uuid: at for uuid, at in older.at.items() if at <= place}
        return draft

    def _compact(self, entry: Entry) -> None:
        """A compaction: a fresh draft, and the old messages it says to keep behind its anchor."""
        draft = self._open("compaction", self.current) if self.current.units else self.current
        draft.start, draft.awaits_summary = "compaction", True
        draft.at[entry.uuid] = -1
        self.known.add(entry.uuid)
        draft.preserved = read_compaction(entry, self.parents)
        if draft.preserved is not None and draft.preserved.anchor == entry.uuid:
            self._splice(draft, draft.preserved)

    def _check_whole(self, draft: Draft, place: int) -> None:
        """A step came: what a compaction left in the context should be there by now."""
        if draft.awaits_summary:
            self.report.flags["compaction without its summary"] += 1
            draft.lose(place)
            draft.awaits_summary = False
        if draft.preserved is not None:
            self.report.flags["preserved messages without their anchor"] += 1
            draft.lose(place)
            draft.preserved = None

    def _splice(self, draft: Draft, keep: Preserved) -> None:
        """Puts preserved units behind the anchor, each once; a missing one loses context.

        What hangs on the anchor from then on comes behind them.
        """
        draft.preserved = None
        if keep.broken:
            self._not_preserved(draft)
        for uuid in keep.uuids:
            unit = self.unit_of.get(uuid)
            if unit is None:
                if uuid not in self.parents:
                    self._not_preserved(draft)
                continue
            if any(unit is other for other in draft.units):
                continue
            place = len(draft.units)
            draft.units.append(unit)
            for known in unit.uuids if isinstance(unit, StepUnit) else [unit.uuid]:
                draft.at[known] = place
        draft.at[keep.anchor] = len(draft.units) - 1

    def _not_preserved(self, draft: Draft) -> None:
        """A message the compaction kept is not in the file: none is invented."""
        draft.lose(0)
        self.report.flags["preserved message missing"] += 1

    def _microcompact(self, entry: Entry) -> None:
        """Old results blanked, attachments taken out: the same run, with other text."""
        self.report.flags["microcompaction"] += 1
        older = self.current
        if not older.units:
            return
        detail = entry.detail or {}
        draft = self._copied("microcompaction", older)
        draft.cleared = older.cleared | set(field_strings(detail.get("compactedToolIds")))
        for uuid in field_strings(detail.get("clearedAttachmentUUIDs")):
            place = draft.at.get(uuid, -1)
            if place >= 0 and isinstance(draft.units[place], TextUnit):
                draft.units[place] = None

    def _open(self, start: ContextStart, before: Draft | None = None) -> Draft:
        """A new draft; what was blanked in the one before it stays so."""
        draft = Draft(len(self.drafts), start, cleared=before.cleared if before else frozenset())
        self.drafts.append(draft)
        return draft


def _passed(draft: Draft, place: int) -> bool:
    """Whether something was said behind the place already, so that the unit cannot follow on it."""
    return any(other is not None and other.spoken for other in draft.units[place + 1 :])


def _with_queued(draft: Draft, place: int) -> int:
    """The place, or that of the last prompt right behind it that only the queue holds."""
    for at in range(place + 1, len(draft.units)):
        unit = draft.units[at]
        if not (isinstance(unit, TextUnit) and unit.queued):
            return at - 1
    return max(place, len(draft.units) - 1)


def _cut_off(draft: Draft, place: int) -> None:
    """The user broke the response off that stands before this place: text without its end."""
    before = next((u for u in reversed(draft.units[:place]) if u is not None and u.spoken), None)
    if isinstance(before, StepUnit) and not before.calls and not before.stopped:
        before.cut_off = True


def _first_uuid(unit: Unit) -> str:
    return unit.uuids[0] if isinstance(unit, StepUnit) else unit.uuid
