"""Watermarks: every source that was read, so that the next run reads only what is new.

`sources.jsonl`: a JSON object a line, later lines replace earlier ones; a line that is cut or broken is
a source that is read again. Only the run that holds the workspace writes it.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from tracemill.flows.admission.reading_version import ReadingVersion, RedactionVersion
from tracemill.flows.run_state.jsonl_log import append_lines, read_jsonl_log, rewrite_lines
from tracemill.flows.sources.watermark_records import (
    SourceRecord,
    companion_digest,
    digest_file_ends,
    source_address,
    source_roots,
)
from tracemill.ingesters.discover import KnownDialect, resolve_source_path
from tracemill.ingesters.reading.source_file import SourceFile, SourceStamp
from tracemill.records.errors import WorkspaceError
from tracemill.records.identity import canonical_json
from tracemill.records.storage.workspace import Workspace
from tracemill.records.storage.workspace_marker import Text

FILE = "sources.jsonl"
READ_OTHERWISE = "read again: settings or readers changed"
TAKEN_UP = "resumed where a run stopped"
MORE_WANTED = "read for more of its sessions"
NOT_HELD = "read again: traces not in the workspace"
_SPARE_LINES = 1000


class Watermarks:
    """The watermarks of a workspace, compared with today's version of reading. Build it with `load`."""

    def __init__(self, root: Path, today: ReadingVersion, secret: bytes = b"") -> None:
        self.today = today
        self.mixed = replace(today, redaction=RedactionVersion("mixed"), anew=False)
        """The way of a source that was read as today, with text kept that was redacted otherwise."""
        self.moved: dict[str, str] = {}
        """Keys of files found elsewhere than they were read at, with the earlier key."""
        self.path = root / FILE
        self.versions: dict[str, ReadingVersion] = {}
        self._secret = secret
        self._marks: dict[str, list[SourceRecord]] = {}
        self._roots: dict[str, tuple[str, ...]] = {}
        self._alike: dict[str, str] = {}
        self._by_stamp: dict[SourceStamp, str] = {}
        self._present: frozenset[str] = frozenset()
        self.lines = 0

    @classmethod
    def load(
        cls, root: Path, today: ReadingVersion, secret: bytes = b"", text: Text = "redacted"
    ) -> "Watermarks":
        """Load the watermarks of the workspace at `root`; none if it does not exist yet.

        `secret` keys the hashes of addresses, `text` is the kind of text the workspace holds.
        """
        made = cls(root.expanduser(), today, secret)
        for value in read_jsonl_log(made.path):
            made.lines += 1
            with suppress(KeyError, TypeError, ValueError, AttributeError):
                made._apply(value)
        if made._marks:
            made._present = _traces_in(Workspace(root.expanduser(), text))
        made._by_stamp = {m.stamp: key for key, marks in made._marks.items() for m in marks if m.ends}
        return made

    def _apply(self, value: dict[str, Any]) -> None:
        if "reading" in value:
            version = ReadingVersion.from_json(value["reading"])
            self.versions[version.id] = version
        elif "drop" in value:
            self._marks.pop(value["drop"], None)
        else:
            self._put(SourceRecord.from_json(value["mark"]))

    def _put(self, mark: SourceRecord) -> None:
        others = [m for m in self._marks.get(mark.key, ()) if m.stamp == mark.stamp and m.part != mark.part]
        self._marks[mark.key] = [m for m in others if m.part and mark.part] + [mark]

    def __iter__(self) -> Iterator[SourceRecord]:
        for marks in self._marks.values():
            yield from marks

    def key_of(self, source: SourceFile) -> str:
        """Return the key of a source's records."""
        return self.hash(source_address(source))

    def roots_of(self, source: SourceFile) -> tuple[str, ...]:
        """Return the keys of a source's parent folders."""
        address = source_address(source)
        folder = address.rpartition("/")[0]
        if folder not in self._roots:
            self._roots[folder] = tuple(map(self.hash, source_roots(address)))
        return self._roots[folder]

    def hash(self, address: str) -> str:
        """Return a keyed hash of an address."""
        data = address.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(data, key=self._secret[:64], digest_size=8).hexdigest()

    def of(self, source: SourceFile) -> list[SourceRecord]:
        """Return the records of a source, current or not."""
        key = self.key_of(source)
        return list(self._marks.get(self.moved.get(key, key), ()))

    def current(self, source: SourceFile) -> list[SourceRecord]:
        """Return the records of a source that make a second reading unnecessary.

        The source and its companion files are unchanged, today's version and settings of reading are the
        same, and its traces are in the workspace.
        """
        alike = [mark for mark in self.of(source) if mark.stamp == source.stamp and self.holds(mark)]
        if not alike:
            return []
        around = companion_digest(source)
        return [mark for mark in alike if mark.beside == around]

    def holds(self, mark: SourceRecord) -> bool:
        """Return whether a record's result equals that of reading today, and is still in the workspace."""
        here = (item.trace_id in self._present for item in mark.seen if item.entry is not None)
        return self._is_todays(mark) and all(here)

    def _is_todays(self, mark: SourceRecord) -> bool:
        version = self.versions.get(mark.reading)
        return version is not None and version.covers(self.today, mark.dialect)

    def recall(self, path: Path, stamp: SourceStamp) -> KnownDialect | None:
        """Return the recorded dialect of an unchanged file, moved or not; None if it must be opened.

        Raises OSError if it is gone.
        """
        key = self.hash(resolve_source_path(path))
        for mark in self._marks.get(key) or self._like(key, path, stamp):
            if mark.stamp == stamp and self.holds(mark):
                return KnownDialect(mark.dialect)
        return None

    def _like(self, key: str, path: Path, stamp: SourceStamp) -> Sequence[SourceRecord]:
        """Return the records with the same stamp, beginning and end as this unknown file."""
        old = self._by_stamp.get(stamp) if stamp.bytes else None
        if old is None or digest_file_ends(path, stamp.bytes) != self._marks[old][0].ends:
            return ()
        self._alike[key] = old
        return self._marks[old]

    def find_moves(self, there: Collection[str]) -> None:
        """Find files that were moved: unknown files equal to recorded ones that no longer exist.

        `there` holds the keys of everything that exists.
        """
        for key, old in self._alike.items():
            if old not in there and old not in self.moved.values():
                self.moved[key] = old
        self._alike.clear()

    def change(self, source: SourceFile) -> str:
        """Return the change of a source since it was read."""
        marks = self.of(source)
        if not marks:
            return "new"
        if current := self.current(source):
            return MORE_WANTED if any(mark.rows or not mark.whole for mark in current) else TAKEN_UP
        before = marks[0].stamp
        if before == source.stamp and marks[0].beside == companion_digest(source):
            return READ_OTHERWISE if not self._is_todays(marks[0]) else NOT_HELD
        if before == source.stamp:
            return "changed"
        with suppress(OSError):
            if source.stamp.bytes > before.bytes and not source.url:
                grew = not marks[0].ends or digest_file_ends(source.path, before.bytes) == marks[0].ends
                return "grew" if grew else "changed"
        return "changed"

    def add(self, marks: Sequence[SourceRecord]) -> None:
        """Add records; they are on disk when this returns."""
        if not marks:
            return
        ids = {mark.reading for mark in marks}
        new = [v for v in (self.today, self.mixed) if v.id in ids and v.id not in self.versions]
        self.versions |= {version.id: version for version in new}
        for mark in marks:
            self._put(mark)
        self._append({"reading": version.to_json()} for version in new)
        self._append({"mark": mark.to_json()} for mark in marks)

    def settle_moves(self, files: Iterable[SourceFile]) -> None:
        """Record the new addresses of moved files."""
        for file in files:
            old = self.moved.pop(self.key_of(file), None)
            if old is not None:
                marks = self._marks.pop(old, [])
                self._append([{"drop": old}])
                self.add([replace(m, key=self.key_of(file), roots=self.roots_of(file)) for m in marks])

    def compact(self) -> None:
        """Rewrite the file if most of its lines are outdated."""
        if self.lines > 2 * sum(map(len, self._marks.values())) + _SPARE_LINES:
            _rewrite(self.path, self.versions.values(), self)

    def _append(self, lines: Iterable[dict[str, Any]]) -> None:
        self.lines += append_lines(self.path, lines)


def forget_marks(root: Path, traces: frozenset[str], holds: Callable[[str], bool]) -> int:
    """Drop every record with one of the traces or with forgotten text; return their number.

    `holds` returns whether a text must be removed. The source of a dropped record is read again by the next
    run.
    """
    marks = Watermarks.load(root, ReadingVersion("", RedactionVersion("")))
    if not marks.lines:
        return 0
    kept = [mark for mark in marks if not _names(mark, traces) and not holds(canonical_json(mark.to_json()))]
    _rewrite(marks.path, marks.versions.values(), kept)  # also where none is dropped: replaced lines go
    return sum(1 for _ in marks) - len(kept)


def _names(mark: SourceRecord, traces: frozenset[str]) -> bool:
    return any(item.trace_id in traces or item.parent in traces for item in mark.seen)


def _rewrite(path: Path, versions: Iterable[ReadingVersion], marks: Iterable[SourceRecord]) -> None:
    read = ({"reading": version.to_json()} for version in versions)
    rewrite_lines(path, chain(read, ({"mark": mark.to_json()} for mark in marks)))


def _traces_in(work: Workspace) -> frozenset[str]:
    """Return the traces of the workspace, without those of unreadable shards."""
    found: set[str] = set()
    for shard in work.live("traces"):
        with suppress(WorkspaceError):
            found |= work.covers("traces", shard)
    return frozenset(found)
