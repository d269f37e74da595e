"""Units in file order → contexts: runs of messages that only grew.

A new context begins at a compaction boundary, at a root in the middle of the file (`/clear`), at a
microcompaction (old results blanked), and at a rewind: a text or step whose parent lies before what the
user or the model said last. File order decides, never a walk from the leaf: a walk loses the results of
parallel calls.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ingesters.claude_code_entries import Entry, Session
from ingesters.claude_code_fields import strings
from ingesters.claude_code_steps import Assembled, StepUnit, TextUnit, Unit
from records.skip import IngestReport
from records.state import ContextStart


@dataclass(slots=True)
class Draft:
    """A context as it grows. `at` gives the place of the unit a uuid belongs to, -1 for the root."""

    number: int
    start: ContextStart
    lost: bool = False
    units: list[Unit | None] = field(default_factory=list)
    at: dict[str, int] = field(default_factory=dict)
    cleared: frozenset[str] = frozenset()
    preserved: tuple[str, list[str]] | None = None
    awaits_summary: bool = False


def draft_contexts(
    entries: Iterable[Entry], session: Session, assembled: Assembled, report: IngestReport
) -> list[Draft]:
    """The contexts of one chain, in the order they began."""
    chain = list(entries)
    rootless = [entry.parent is not None for entry in chain if entry.kind == "assistant"]
    linked = sum(rootless) * 2 >= len(rootless)
    line = _Line(session, assembled, report, linked)
    for entry in chain:
        line.feed(entry)
    return line.drafts


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

    def feed(self, entry: Entry) -> None:
        """One entry: a boundary opens a draft, the rest is placed."""
        if entry.kind == "compact":
            self._compact(entry)
        elif entry.kind == "microcompact":
            self._microcompact(entry)
        else:
            for unit in self.assembled.starts.get(entry.order, ()):
                self._place(unit)

    @property
    def current(self) -> Draft:
        return self.drafts[-1]

    def _place(self, unit: Unit) -> None:
        """Puts a unit behind its parent: at the end, or in a draft opened for it."""
        draft = self._draft_for(unit)
        place = len(draft.units)
        draft.units.append(unit)
        uuids = unit.uuids if isinstance(unit, StepUnit) else [unit.uuid]
        for uuid in uuids:
            draft.at[uuid] = place
            self.unit_of[uuid] = unit
        self.known.update(uuids)
        if isinstance(unit, StepUnit):
            unit.home = draft.number
        if draft.preserved and draft.preserved[0] in uuids:
            self._splice(draft, *draft.preserved)

    def _draft_for(self, unit: Unit) -> Draft:
        """Where a unit goes, by where its nearest placed ancestor is."""
        current = self.current
        if isinstance(unit, TextUnit) and unit.summary:
            return self._summarised(current)
        if not self.linked:
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
        """Where the summary of a compaction goes: behind its boundary; early versions wrote none."""
        if not current.awaits_summary and current.units:
            current = self._open("compaction")
        current.awaits_summary = False
        return current

    def _dangling(self, current: Draft) -> Draft:
        """A parent the file does not hold: something before it is lost, and the run goes on."""
        current.lost = True
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
        draft = self._open("rewind")
        draft.lost, draft.cleared = older.lost, older.cleared
        draft.units = older.units[: place + 1]
        draft.at = {uuid: at for uuid, at in older.at.items() if at <= place}
        return draft

    def _compact(self, entry: Entry) -> None:
        """A compaction: a fresh draft, and the old messages it says to keep behind its anchor."""
        draft = self._open("compaction") if self.current.units else self.current
        draft.start, draft.awaits_summary = "compaction", True
        draft.at[entry.uuid] = -1
        self.known.add(entry.uuid)
        keep = _preserved(entry, self.parents)
        if keep is None:
            return
        draft.preserved = keep
        if keep[0] == entry.uuid:
            self._splice(draft, *keep)

    def _splice(self, draft: Draft, anchor: str, uuids: list[str]) -> None:
        """Puts preserved units behind the anchor, each once; a missing one loses context.

        What hangs on the anchor from then on comes behind them.
        """
        draft.preserved = None
        for uuid in uuids:
            unit = self.unit_of.get(uuid)
            if unit is None:
                if uuid not in self.parents:
                    draft.lost = True
                    self.report.flags["preserved message missing"] += 1
                continue
            if any(unit is other for other in draft.units):
                continue
            place = len(draft.units)
            draft.units.append(unit)
            for known in unit.uuids if isinstance(unit, StepUnit) else [unit.uuid]:
                draft.at[known] = place
        draft.at[anchor] = len(draft.units) - 1

    def _microcompact(self, entry: Entry) -> None:
        """Old results blanked, attachments taken out: the same run, with other text."""
        self.report.flags["microcompaction"] += 1
        older = self.current
        if not older.units:
            return
        draft = self._open("microcompaction")
        draft.lost, draft.units, draft.at = older.lost, list(older.units), dict(older.at)
        draft.cleared = older.cleared | set(strings(entry.detail.get("compactedToolIds")))
        for uuid in strings(entry.detail.get("clearedAttachmentUUIDs")):
            place = draft.at.get(uuid, -1)
            if place >= 0 and isinstance(draft.units[place], TextUnit):
                draft.units[place] = None

    def _open(self, start: ContextStart) -> Draft:
        draft = Draft(len(self.drafts), start)
        self.drafts.append(draft)
        return draft


def _passed(draft: Draft, place: int) -> bool:
    """Whether something was said behind the place already, so that the unit cannot follow on it."""
    return any(other is not None and other.spoken for other in draft.units[place + 1 :])


def _first_uuid(unit: Unit) -> str:
    return unit.uuids[0] if isinstance(unit, StepUnit) else unit.uuid


def _preserved(entry: Entry, parents: dict[str, str | None]) -> tuple[str, list[str]] | None:
    """Anchor and uuids of the messages a compaction keeps; the list wins over the segment."""
    listed = entry.detail.get("preservedMessages")
    segment = entry.detail.get("preservedSegment")
    if isinstance(listed, dict):
        uuids = strings(listed.get("uuids")) or strings(listed.get("allUuids"))
        anchor = listed.get("anchorUuid")
    elif isinstance(segment, dict):
        uuids = _walk(segment.get("tailUuid"), segment.get("headUuid"), parents)
        anchor = segment.get("anchorUuid")
    else:
        return None
    return (anchor if isinstance(anchor, str) else entry.uuid), uuids


def _walk(tail: object, head: object, parents: dict[str, str | None]) -> list[str]:
    """The uuids from head to tail, found from the tail upwards; the tail alone where they do not meet."""
    path: list[str] = []
    at = tail if isinstance(tail, str) else None
    while at is not None and len(path) <= len(parents):
        path.append(at)
        if at == head:
            return path[::-1]
        at = parents.get(at)
    return [uuid for uuid in (head, tail) if isinstance(uuid, str)]
