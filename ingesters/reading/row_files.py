"""Files of rows, one run each: Parquet, JSON Lines, a JSON list or one object, told by content.

A large file is read in parts: row groups of a table, spans of bytes of a file of lines.
"""

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import orjson

from tracemill.ingesters.reading.decompress import is_compressed, open_bytes, packed, strip_compression_suffix
from tracemill.ingesters.reading.json_reading import iter_json_lines, read_json
from tracemill.ingesters.reading.parquet_rows import (
    RowGroup,
    TableSlice,
    read_parquet_layout,
    read_parquet_rows,
    read_parquet_slice,
)
from tracemill.records.ingest_report import IngestReport

_SMALL_BYTES = 1 << 20
_HEAD_BYTES = 8
_PARQUET = b"PAR1"
_BOM = b"\xef\xbb\xbf"
_LINES = (".jsonl", ".ndjson")
_LEAST_SPAN_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class LineSpan:
    """The lines of a file that begin at a byte from `first` on and before `last`."""

    first: int
    last: int


Part = TableSlice | LineSpan
"""A part of a file that is read on its own."""

Layout = Literal["table", "lines", "value"]
"""Parquet, JSON Lines, or one JSON value, which may be a list of rows."""


def is_table(path: Path) -> bool:
    """Whether a file is Parquet. Raises OSError where it cannot be read."""
    with io.FileIO(path) as stream:
        return stream.read(4) == _PARQUET


class RowFile(NamedTuple):
    """A file, opened once to see how it is laid out. `data` is all of a small one."""

    path: Path
    layout: Layout
    data: bytes | None = None

    def rows(self, report: IngestReport) -> Iterator[Any]:
        """The rows in their order, a value that is no list as the only one; what is none is counted in the
        report or left to the caller. Raises SourceError where the file cannot be read."""
        if self.layout == "table":
            yield from read_parquet_rows(self.path)
        elif self.layout == "lines":
            for _, row in iter_json_lines(self.path, report, kind=None, data=self.data):
                yield row
        else:
            value = self.value(report)
            yield from value if isinstance(value, list) else [value]

    def value(self, report: IngestReport) -> Any:
        """The JSON value that all of the file is. Raises SourceError where it is none."""
        return read_json(self.path, report, self.data)


def row_file(path: Path) -> RowFile:
    """How a file is laid out, told by its content. Raises OSError and EOFError where it cannot be read."""
    with io.FileIO(path) as stream:
        small = os.fstat(stream.fileno()).st_size <= _SMALL_BYTES
        data = stream.readall() if small else stream.read(_HEAD_BYTES)
    if data.startswith(_PARQUET):
        return RowFile(path, "table")
    if not small or packed(data):
        return RowFile(path, "lines" if is_row_file_lines(path) else "value")
    named = strip_compression_suffix(path.name).endswith(_LINES)
    return RowFile(path, "lines" if _holds_lines(data, named) else "value", data)


def iter_rows(path: Path, report: IngestReport) -> Iterator[Any]:
    """The rows of a file, as `RowFile.rows` gives them. Raises OSError, EOFError and SourceError where it
    cannot be read."""
    return row_file(path).rows(report)


def read_row_file_part(path: Path, part: Part, report: IngestReport) -> Iterator[Any]:
    """The rows of one part of a file. Raises SourceError where it cannot be read."""
    if isinstance(part, TableSlice):
        yield from read_parquet_slice(part)
    else:
        for _, row in iter_json_lines(path, report, kind=None, span=(part.first, part.last)):
            yield row


def split_row_file(path: Path, limit: float) -> list[tuple[Part, int]]:
    """The parts a file of rows is read in, with their bytes: row groups in runs of about `limit` bytes
    unpacked, spans of lines of that size or a MiB; none where it can only be read whole. Raises
    SourceError and OSError."""
    if is_table(path):
        return list(split_table_row_file(path, read_parquet_layout(path).groups, limit))
    size, limit = path.stat().st_size, max(limit, _LEAST_SPAN_BYTES)
    if size <= limit or is_compressed(path) or not is_row_file_lines(path):
        return []
    count = int(-(-size // limit))
    edges = [size * at // count for at in range(count + 1)]
    return [(LineSpan(first, last), last - first) for first, last in pairwise(edges)]


def split_table_row_file(
    place: Path | str, groups: tuple[RowGroup, ...], limit: float
) -> Iterator[tuple[TableSlice, int]]:
    """The row groups of a table in runs of about `limit` bytes unpacked, with these bytes."""
    first, size = 0, 0
    for at, group in enumerate(groups):
        if at > first and size + group.bytes > limit:
            yield TableSlice(place, first, at, len(groups)), size
            first, size = at, 0
        size += group.bytes
    if groups:
        yield TableSlice(place, first, len(groups), len(groups)), size


def is_row_file_lines(path: Path) -> bool:
    """Whether a file holds JSON Lines: by its content where it has several lines (the first is a value by
    itself), else by its name. Raises OSError and EOFError where it cannot be read."""
    named = strip_compression_suffix(path.name).endswith(_LINES)
    if named:
        with open_bytes(path, glance=True) as stream:
            if stream.read(64).lstrip().removeprefix(_BOM)[:1] == b"{":
                return True
    with open_bytes(path, glance=True) as stream:
        lines = (line for raw in stream if (line := raw.strip().removeprefix(_BOM)))
        first, more = next(lines, b""), next(lines, None) is not None
    if not more:
        return named and not first.startswith(b"[")
    try:
        orjson.loads(first)
    except orjson.JSONDecodeError:
        return named
    return True


def _holds_lines(data: bytes, named: bool) -> bool:
    """As `is_row_file_lines`, of all that a file holds."""
    data = data.removeprefix(_BOM).strip()
    if named and data.startswith(b"{"):
        return True
    end = data.find(b"\n")
    if end < 0:
        return named and bool(data) and not data.startswith(b"[")
    try:
        orjson.loads(data[:end])
    except orjson.JSONDecodeError:
        return named
    return True
