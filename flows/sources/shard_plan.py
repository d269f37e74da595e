"""Plan which sources are read, in shards: the unit of work and of restart."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tracemill.flows.sources.discovery import FoundSources, UnreadFile, find_sources, require_sessions
from tracemill.flows.sources.source_spec import SourceOptions
from tracemill.flows.sources.watermark_records import SourceRecord, source_part_key
from tracemill.flows.sources.watermarks import Watermarks
from tracemill.ingesters.detect_format import detect_table_format
from tracemill.ingesters.discover import FETCHED
from tracemill.ingesters.reading.parquet_rows import TableSlice, read_parquet_layout
from tracemill.ingesters.reading.remote_files import HUB
from tracemill.ingesters.reading.row_files import (
    LineSpan,
    Part,
    is_table,
    split_row_file,
    split_table_row_file,
)
from tracemill.ingesters.reading.source_file import SourceFile
from tracemill.ingesters.registry import source_of
from tracemill.ingesters.row_readers import row_reader
from tracemill.records.errors import SourceError

UNCHANGED = "unchanged since they were read"
STILL_WRITTEN = "still being written, skipped"
GONE = "no longer there, traces kept"
MOVED = "moved since they were read"


class UnchangedSource(NamedTuple):
    """A source that is not read again; its file is None if it no longer exists.

    `stale` is True if it would be read if it could: its traces stay as they were selected and redacted
    then.
    """

    mark: SourceRecord
    file: SourceFile | None = None
    stale: bool = False


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """Sources that a run reads, and those it need not read.

    It also has the files without a session, with the reason; the changes of sources since they were read;
    the datasets, each with its commit.

    If a sample is to be drawn, `tables` holds the parts of every Parquet table, read or not: the rows to
    read are known only after the draw.
    """

    fresh: tuple[SourceFile, ...]
    unread: tuple[UnreadFile, ...] = ()
    kept: tuple[UnchangedSource, ...] = ()
    changes: Counter[str] = field(default_factory=Counter)
    datasets: tuple[str, ...] = ()
    tables: tuple[tuple[SourceFile, ...], ...] = ()
    strangers: tuple[SourceFile, ...] = ()
    """Files that are no session and were not known to be none."""
    shard_bytes: float = 16e6

    @property
    def shards(self) -> tuple[tuple[SourceFile, ...], ...]:
        """Return the sources to read, in shards of about `shard_bytes`, each of one format."""
        return tuple(_cut(self.fresh, self.shard_bytes))

    @property
    def files(self) -> int:
        """Return the number of files to read, each counted once whatever its parts."""
        return len({file.name for file in self.fresh})

    def unread_reasons(self) -> Counter[str]:
        """Count the files that are not read, by reason."""
        return Counter(item.reason for item in self.unread)


def plan_sources(
    order: SourceOptions, shard_mb: float, marks: Watermarks | None = None, sampled: bool = False
) -> SourcePlan:
    """Find the sources and plan which of them are read.

    Sources that are unchanged by `marks` are set apart, and files of rows are cut into parts of about
    `shard_mb`. Raises SourceError as `find_sources`, before anything is read.
    """
    found = find_sources(order, marks)
    if marks is not None:
        marks.find_moves({marks.hash(address) for address in found.there})
    limit = shard_mb * 1e6
    fresh: list[SourceFile] = []
    kept: list[UnchangedSource] = []
    tables: list[tuple[SourceFile, ...]] = []
    changes: Counter[str] = Counter()
    for source in found.files.values():
        if sampled and _holds_a_table(source):
            tables.append(tuple(_parts(source, limit)))
            continue
        current, parts = _split_known(source, marks, limit, sampled)
        fresh += parts
        kept += [UnchangedSource(mark, _as_read(source, mark)) for mark in current]
        if marks is not None:
            changes[marks.change(source) if parts else UNCHANGED] += 1
    if marks is not None:
        kept += _untouched(found, order, marks, changes)
    changes[STILL_WRITTEN] = found.still_written
    return SourcePlan(
        tuple(fresh),
        tuple(found.unread),
        tuple(kept),
        +changes,
        tuple(found.datasets),
        tuple(tables),
        tuple(file for file in found.strangers if marks is None or not marks.current(file)),
        limit,
    )


def _holds_a_table(source: SourceFile) -> bool:
    if source.url:
        return is_remote_table(source)
    try:
        return source.path.is_file() and is_table(source.path)
    except OSError:
        return False


def _split_known(
    source: SourceFile, marks: Watermarks | None, limit: float, sampled: bool
) -> tuple[list[SourceRecord], list[SourceFile]]:
    """Return the records of a source that are current, and its parts that must be read.

    For a sample, records of all its traces are enough, taken or not.
    """
    known = marks.current(source) if marks else ()
    current = [mark for mark in known if not mark.rows and (sampled or mark.whole)]
    if _is_whole(current):
        return current, []
    by_part = {mark.part: mark for mark in current if mark.part is not None}
    parts = [(source_part_key(part), part) for part in _parts(source, limit)]
    return (
        [by_part[key] for key, _ in parts if key is not None and key in by_part],
        [part for key, part in parts if key not in by_part],
    )


def _as_read(source: SourceFile, mark: SourceRecord) -> SourceFile:
    """Return the source, or its part, that a record describes."""
    part = None
    if mark.part is not None:
        kind, first, last, total = mark.part
        place = source.url or source.path
        part = LineSpan(first, last) if kind == "bytes" else TableSlice(place, first, last, total)
    return replace(source, dialect=mark.dialect, part=part)


def _is_whole(marks: Sequence[SourceRecord]) -> bool:
    """Return whether the records cover a whole file."""
    if any(mark.part is None for mark in marks):
        return True
    end = 0
    for part in sorted(mark.part for mark in marks if mark.part is not None):
        if part.first > end:
            return False
        end = max(end, part.last)
        if end >= part.total:
            return True
    return False


def _parts(source: SourceFile, limit: float) -> Iterator[SourceFile]:
    """Yield a source in parts, or whole if it has none.

    Raises SourceError for a remote file that cannot be read or is of no known format.
    """
    if source.url:
        if is_remote_table(source):
            yield from _remote_parts(source, limit)
        else:
            yield source
        return
    try:
        parts = split_row_file(source.path, limit) if row_reader(source.dialect) else []
    except (OSError, SourceError):
        parts = []  # whoever reads it says so
    yield from (_part(source, part, size) for part, size in parts) if parts else [source]


def is_remote_table(source: SourceFile) -> bool:
    """Return whether a remote file is read by row group: any URL, and Parquet files of the Hub by name."""
    return not source.url.startswith(HUB) or source.path.suffix in (".parquet", ".pq")


def _remote_parts(source: SourceFile, limit: float) -> Iterator[SourceFile]:
    layout = read_parquet_layout(source.url)
    told = detect_table_format(layout.schema)
    dialect = told if source.dialect == FETCHED else source.dialect
    if row_reader(dialect) is None:
        columns = ", ".join(layout.schema.names[:8])
        raise SourceError(f"{source.name} holds no sessions (columns: {columns})", "rows of a known format")
    parts = [
        _part(replace(source, dialect=dialect), part, size)
        for part, size in split_table_row_file(source.url, layout.groups, limit)
    ]
    if dialect != told and parts:
        require_sessions(parts[0])
    yield from parts


def _part(source: SourceFile, part: Part, size: int) -> SourceFile:
    return replace(source, part=part, bytes=size)


def _untouched(
    found: FoundSources, order: SourceOptions, marks: Watermarks, changes: Counter[str]
) -> Iterator[UnchangedSource]:
    """Yield sources that were read before and cannot be read now: skipped, or gone."""
    alone = {marks.key_of(source) for source in found.alone}
    there = {marks.hash(address) for address in found.there} | set(marks.moved.values())
    roots = [(marks.hash(str(path.expanduser().resolve())), wanted) for path, wanted in order.given]
    if order.hub:
        from tracemill.ingesters.reading.hub_datasets import HubSpec

        roots += [(marks.hash(HUB + HubSpec.parse(name).repo), None) for name in order.hub]
    gone: set[str] = set()
    for mark in marks:
        if mark.key in alone:
            yield UnchangedSource(mark, stale=not marks.holds(mark))
        elif mark.key not in there and mark.seen and _is_below(mark, roots):
            gone.add(mark.key)
            yield UnchangedSource(mark, stale=not marks.holds(mark))
    changes[GONE] = len(gone)
    changes[MOVED] = len(marks.moved)


def _is_below(mark: SourceRecord, roots: Sequence[tuple[str, str | None]]) -> bool:
    source = source_of(mark.dialect)
    return any(root in mark.roots and wanted in (None, source) for root, wanted in roots)


def _cut(files: Iterable[SourceFile], limit: float) -> Iterator[tuple[SourceFile, ...]]:
    """Yield files of one format, in order of name, in groups of about `limit` bytes."""
    by_source: dict[str | None, list[SourceFile]] = {}
    for file in files:
        by_source.setdefault(source_of(file.dialect), []).append(file)
    for group in by_source.values():
        shard: list[SourceFile] = []
        size = 0.0
        for file in sorted(group, key=_place):
            if shard and size + file.bytes > limit:
                yield tuple(shard)
                shard, size = [], 0.0
            shard.append(file)
            size += file.bytes
        yield tuple(shard)


def _place(file: SourceFile) -> tuple[str, int]:
    return file.name, file.part.first if file.part else 0
