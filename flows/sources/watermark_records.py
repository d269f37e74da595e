"""Record how a source looked when it was read, and which traces it gave."""

import hashlib
import io
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from tracemill.flows.admission.list_scope import ListScope
from tracemill.flows.admission.trace_inventory import TraceEntry
from tracemill.ingesters.companion_files import digest_companion_files
from tracemill.ingesters.discover import resolve_source_path
from tracemill.ingesters.reading.parquet_rows import TableSlice
from tracemill.ingesters.reading.remote_files import HUB
from tracemill.ingesters.reading.row_files import Part
from tracemill.ingesters.reading.source_file import SourceFile, SourceStamp
from tracemill.records.identity import digest
from tracemill.records.ingest_report import IngestReport
from tracemill.records.project import Project
from tracemill.records.trace import Trace

_END_BYTES = 1 << 13
_PLAIN = ("key", "ends", "dialect", "reading", "beside", "rows", "whole")
_COUNTED = tuple(item.name for item in fields(IngestReport) if item.name not in ("path", "error"))


class StratumFields(NamedTuple):
    """Fields that a sample is stratified by; an empty text and None stand for unknown values."""

    repository: str
    outcome: str
    model: str
    steps: int | None

    @classmethod
    def of(cls, trace: Trace) -> "StratumFields":
        """Return the fields of a trace.

        Its project replaces a missing repository, and the model is the one with most steps.
        """
        models = Counter([s.model for c in trace.contexts for s in c.steps if s.model])
        most = min(models, key=lambda model: (-models[model], model), default="")
        return cls(trace.repository or trace.project or "", trace.outcome, most, trace.step_count)


@dataclass(frozen=True, slots=True)
class SeenTrace:
    """One trace of a source; `entry` is None if this source's copy was not written to the workspace."""

    trace_id: str
    parent: str | None
    facts: StratumFields
    entry: TraceEntry | None = None

    def to_json(self) -> list[Any]:
        """Return the trace as JSON values."""
        e = self.entry
        row = None
        if e is not None:
            projects = [list(project) for project in e.projects]
            row = [
                e.session,
                projects,
                e.contexts,
                e.states,
                e.text_bytes,
                e.fullness,
                dict(e.findings),
                e.lists.to_json(),
            ]
        return [self.trace_id, self.parent, list(self.facts), row]

    @classmethod
    def from_json(cls, value: list[Any]) -> "SeenTrace":
        """Parse a trace that `to_json` returned."""
        trace_id, parent, facts, row = value
        entry = None
        if row is not None:
            session, projects, contexts, states, text_bytes, fullness, findings, lists = row
            figures = contexts, states, text_bytes, fullness, findings
            projects = tuple(Project(*each) for each in projects)
            entry = TraceEntry(trace_id, session, projects, *figures, lists=ListScope.from_json(lists))
        return cls(trace_id, parent, StratumFields(*facts), entry)


class PartKey(NamedTuple):
    """A part of a file of rows: row groups or bytes from `first` to `last` (exclusive), of `total`."""

    kind: str
    first: int
    last: int
    total: int


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """The watermark of a source, or of a part of one: its state when it was read by version `reading`.

    `key` and `roots` are keyed hashes of its address and of its parent folders, so that no path is stored.
    `ends` is a digest of its first and last 8 KiB, empty for a folder or a remote file,
    `digest_companion_files` one of the companion files read with it. `rows` is a digest of its selected
    rows, empty for all; `whole` says whether all its other traces were selected. `left_out` counts traces
    that the lists left out, by reason; `matched` are the indices of list entries that match any trace.
    """

    key: str
    stamp: SourceStamp
    ends: str
    dialect: str | None
    reading: str
    roots: tuple[str, ...] = ()
    part: PartKey | None = None
    beside: str = ""
    rows: str = ""
    whole: bool = True
    seen: tuple[SeenTrace, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    matched: tuple[int, ...] = ()
    report: IngestReport = field(default_factory=lambda: IngestReport(""))

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        value = {name: getattr(self, name) for name in _PLAIN}
        return value | {
            "stamp": list(self.stamp),
            "roots": list(self.roots),
            "part": list(self.part) if self.part else None,
            "seen": [item.to_json() for item in self.seen],
            "left_out": dict(self.left_out),
            "matched": list(self.matched),
            "report": {name: one for name in _COUNTED if (one := getattr(self.report, name))},
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "SourceRecord":
        """Parse a record that `to_json` returned.

        Raises KeyError, TypeError or ValueError for anything else.
        """
        report = value["report"]
        counters = {
            name: Counter(report.get(name, {})) for name in ("records", "skipped", "flags", "unknown")
        }
        made = {
            "stamp": SourceStamp(*value["stamp"]),
            "part": PartKey(*value["part"]) if value["part"] else None,
            "seen": tuple(SeenTrace.from_json(item) for item in value["seen"]),
            "report": IngestReport("", **(report | counters)),
            "roots": tuple(value["roots"]),
            "matched": tuple(value["matched"]),
        }
        return cls(**(value | made))


def source_address(source: SourceFile) -> str:
    """Return the address of a source: its resolved path, or its URL.

    A dataset's address is without the commit, since most files of the next commit are the same.
    """
    if not source.url:
        return resolve_source_path(source.path)
    if not source.url.startswith(HUB):
        return source.name
    repo, _, rest = source.name.partition("@")
    return f"{repo}/{rest.partition('/')[2]}"


def source_roots(address: str) -> list[str]:
    """Return the parent folders, or the dataset, of an address."""
    found = []
    while (above := address.rpartition("/")[0]) and not above.endswith("/"):
        found.append(above)
        address = above
    return found


def source_part_key(source: SourceFile) -> PartKey | None:
    """Return the key of a source's part of its file; None for a whole file."""
    part = source.part
    if isinstance(part, TableSlice):
        return PartKey("groups", part.first, part.last, part.groups)
    return None if part is None else PartKey("bytes", part.first, part.last, source.stamp.bytes)


def companion_digest(source: SourceFile) -> str:
    """Return a digest of the companion files of a source that are read with it."""
    return "" if source.url else digest_companion_files(source.path, source.dialect)


def wanted_rows_digest(part: Part | None) -> str:
    """Return a digest of the rows wanted of a part, empty for all."""
    if not isinstance(part, TableSlice) or part.rows is None:
        return ""
    return digest(",".join(map(str, part.rows)), size=8)


def digest_file_ends(path: Path, size: int) -> str:
    """Return a digest of the first and last 8 KiB of the first `size` bytes of a file; empty for a folder.

    Raises OSError if it cannot be read.
    """
    try:
        stream = io.FileIO(path)
    except IsADirectoryError:
        return ""
    with stream:
        head = stream.read(min(size, _END_BYTES))
        stream.seek(max(0, size - _END_BYTES))
        tail = stream.read(min(size, _END_BYTES))
    return hashlib.blake2b(head + b"\0" + tail, digest_size=16).hexdigest()
