"""Read files of rows, one run each: Parquet, JSON Lines, a JSON list or one object.

The layout is recognised by content. A large file is read in parts: row groups of a table, spans of bytes of a
file of lines.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import orjson

from tracemill.ingesters.reading.decompress import is_compressed, open_bytes, strip_compression_suffix
from tracemill.ingesters.reading.json_reading import iter_json_lines, read_json
from tracemill.ingesters.reading.parquet_rows import (
    RowGroup,
    TableSlice,
    read_parquet_layout,
    read_parquet_rows,
    read_parquet_slice,
)
from tracemill.records.ingest_report import IngestReport

_PARQUET = b"PAR1"
_BOM = b"\xef\xbb\xbf"
_LINE_SUFFIXES = (".jsonl", ".ndjson")
_MIN_SPAN_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class LineSpan:
    """The lines of a file that begin at a byte from `first` on and before `last`."""

    first: int
    last: int


Part = TableSlice | LineSpan
"""A part of a file that can be read on its own."""

Layout = Literal["table", "lines", "value"]
"""Parquet, JSON Lines, or one JSON value, which may be a list of rows."""


def is_table(path: Path) -> bool:
    """Return whether a file is Parquet. Raises OSError if it cannot be read."""
    with path.open("rb") as stream:
        return stream.read(len(_PARQUET)) == _PARQUET


class RowFile(NamedTuple):
    """A file with its layout."""

    path: Path
    layout: Layout

    def rows(self, report: IngestReport) -> Iterator[Any]:
        """Yield the rows in their order; a value that is not a list is the only row.

        Broken lines are counted in the report. Raises SourceError if the file cannot be read.
        """
        if self.layout == "table":
            yield from read_parquet_rows(self.path)
        elif self.layout == "lines":
            for _, row in iter_json_lines(self.path, report, kind=None):
                yield row
        else:
            value = self.value(report)
            yield from value if isinstance(value, list) else [value]

    def value(self, report: IngestReport) -> Any:
        """Return the file as one JSON value. Raises SourceError if it is not one."""
        return read_json(self.path, report)


def row_file(path: Path) -> RowFile:
    """Find the layout of a file by its content. Raises OSError and EOFError if it cannot be read."""
    if is_table(path):
        return RowFile(path, "table")
    return RowFile(path, "lines" if is_row_file_lines(path) else "value")


def iter_rows(path: Path, report: IngestReport) -> Iterator[Any]:
    """Yield the rows of a file. Raises OSError, EOFError and SourceError if it cannot be read."""
    return row_file(path).rows(report)


def read_row_file_part(path: Path, part: Part, report: IngestReport) -> Iterator[Any]:
    """Yield the rows of one part of a file. Raises SourceError if it cannot be read."""
    if isinstance(part, TableSlice):
        yield from read_parquet_slice(part)
    else:
        for _, row in iter_json_lines(path, report, kind=None, span=(part.first, part.last)):
            yield row


def split_row_file(path: Path, limit: float) -> list[tuple[Part, int]]:
    """Return the parts a file of rows is read in, with their bytes; none if it must be read whole.

    A part is row groups of about `limit` uncompressed bytes, or a span of lines of that size, at least 1 MiB.
    Raises SourceError and OSError.
    """
    if is_table(path):
        return list(split_table_row_file(path, read_parquet_layout(path).groups, limit))
    size, limit = path.stat().st_size, max(limit, _MIN_SPAN_BYTES)
    if size <= limit or is_compressed(path) or not is_row_file_lines(path):
        return []
    count = int(-(-size // limit))
    edges = [size * at // count for at in range(count + 1)]
    return [(LineSpan(first, last), last - first) for first, last in pairwise(edges)]


def split_table_row_file(
    place: Path | str, groups: tuple[RowGroup, ...], limit: float
) -> Iterator[tuple[TableSlice, int]]:
    """Yield consecutive row groups of about `limit` uncompressed bytes together, with their bytes."""
    first, size = 0, 0
    for at, group in enumerate(groups):
        if at > first and size + group.bytes > limit:
            yield TableSlice(place, first, at, len(groups)), size
            first, size = at, 0
        size += group.bytes
    if groups:
        yield TableSlice(place, first, len(groups), len(groups)), size


def is_row_file_lines(path: Path) -> bool:
    """Return whether a file holds JSON Lines.

    A file of several lines does where its first line is a JSON value; else the name decides. Raises OSError
    and EOFError if it cannot be read.
    """
    named = strip_compression_suffix(path.name).endswith(_LINE_SUFFIXES)
    with open_bytes(path) as stream:
        if named and stream.peek(64).lstrip().removeprefix(_BOM)[:1] == b"{":
            return True
        lines = (line for raw in stream if (line := raw.strip().removeprefix(_BOM)))
        first, more = next(lines, b""), next(lines, None) is not None
    if not more:
        return named and bool(first) and not first.startswith(b"[")
    try:
        orjson.loads(first)
    except orjson.JSONDecodeError:
        return named
    return True
