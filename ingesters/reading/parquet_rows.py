"""Rows of Parquet tables, here or elsewhere, one row group in memory at a time.

A row group is the smallest part that is read on its own: in a remote file it is one request for just
its bytes. Columns of JSON text (the logical type JSON, as `datasets` writes `Json()`) are decoded.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tracemill.ingesters.reading.remote_files import open_remote, printable_url
from tracemill.records.errors import SourceError

_BATCH = 16  # rows decoded at a time: memory stays small whatever the size of a row group


class RowGroup(NamedTuple):
    """One row group of a table; `bytes` unpacked."""

    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns (an Arrow schema) and row groups of a table."""

    schema: Any
    groups: tuple[RowGroup, ...]


@dataclass(frozen=True, slots=True)
class TableSlice:
    """Row groups `first` to `last` (exclusive) of the `groups` of a table at a path or URL.

    `rows` are those that are wanted, counted from the first row of the table and sorted; None for all.
    """

    place: Path | str
    first: int
    last: int
    groups: int
    rows: tuple[int, ...] | None = None


def read_parquet_layout(place: Path | str) -> Layout:
    """Columns and row groups of a table, from its footer alone. Raises SourceError."""
    with _open_table(place) as table:
        meta = table.metadata
        groups = (meta.row_group(at) for at in range(meta.num_row_groups))
        return Layout(
            table.schema_arrow,
            tuple(RowGroup(group.num_rows, group.total_byte_size) for group in groups),
        )


def read_parquet_slice(part: TableSlice) -> Iterator[dict[str, Any]]:
    """The wanted rows of a slice in their order. Raises SourceError."""
    for _, row in _numbered(part, None):
        yield row


def read_parquet_rows(place: Path | str) -> Iterator[dict[str, Any]]:
    """All rows of a table. Raises SourceError."""
    with _open_table(place) as table:
        last = table.metadata.num_row_groups
    yield from read_parquet_slice(TableSlice(place, 0, last, last))


def read_parquet_columns(
    part: TableSlice, leaves: Sequence[str] | None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a slice with their numbers, of these columns alone (None: of all). A leaf inside a
    column is named by its dotted path, as `find_parquet_leaves` gives it. Raises SourceError."""
    yield from _numbered(part, leaves)


def find_parquet_leaves(place: Path | str) -> tuple[str, ...]:
    """The dotted paths of all leaf columns of a table. Raises SourceError."""
    with _open_table(place) as table:
        schema = table.schema
        return tuple(schema.column(at).path for at in range(len(schema)))


def _numbered(part: TableSlice, leaves: Sequence[str] | None) -> Iterator[tuple[int, dict[str, Any]]]:
    import pyarrow as pa

    with _open_table(part.place) as table:
        sizes = [table.metadata.row_group(at).num_rows for at in range(table.metadata.num_row_groups)]
        wanted = None if part.rows is None else set(part.rows)
        number = sum(sizes[: part.first])
        decode = _decoder(table.schema_arrow)
        for group in range(part.first, min(part.last, len(sizes))):
            if wanted is None or not wanted.isdisjoint(range(number, number + sizes[group])):
                yield from _of_group(table, group, number, wanted, leaves, decode, pa)
            number += sizes[group]


def _of_group(
    table: Any,
    group: int,
    number: int,
    wanted: set[int] | None,
    leaves: Sequence[str] | None,
    decode: Callable[[dict[str, Any]], dict[str, Any]],
    pa: Any,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of one row group; `number` is that of its first."""
    for batch in table.iter_batches(_BATCH, row_groups=[group], columns=leaves):
        numbers = list(range(number, number + batch.num_rows))
        number += batch.num_rows
        if wanted is not None:
            places = [at for at, one in enumerate(numbers) if one in wanted]
            batch, numbers = batch.take(pa.array(places, pa.int64())), [numbers[at] for at in places]
        for one, row in zip(numbers, batch.to_pylist(), strict=True):
            yield one, decode(row)


@contextmanager
def _open_table(place: Path | str) -> Iterator[Any]:
    """A table opened; faults of the file, also while it is read, are SourceError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    name = printable_url(place) if isinstance(place, str) else str(place)
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open_remote(place)) if isinstance(place, str) else place
            yield stack.enter_context(pq.ParquetFile(file, pre_buffer=True))
        except (pa.ArrowException, OSError) as error:
            if isinstance(place, str) and not isinstance(error, pa.ArrowException):
                raise  # told by `open_remote`
            reason = getattr(error, "strerror", None) or type(error).__name__
            found = f"{name} cannot be read: {reason}"
            raise SourceError(found, "a Parquet file", "check that it is whole") from None


def _decoder(schema: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A function that decodes the JSON texts of a row; the row itself where its table holds none."""
    found = {field.name: walk for field in schema if (walk := _json_inside(field.type)) is not None}
    if not found:
        return lambda row: row
    return lambda row: {name: found[name](value) if name in found else value for name, value in row.items()}


def _json_inside(kind: Any) -> Callable[[Any], Any] | None:
    """What decodes a value of an Arrow type; None where there is no JSON in it."""
    import pyarrow as pa

    if isinstance(kind, pa.JsonType):
        return _parsed
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = _json_inside(kind.value_type)
        return None if inner is None else lambda value: value and [inner(item) for item in value]
    if pa.types.is_struct(kind):
        fields = {f.name: walk for f in kind if (walk := _json_inside(f.type)) is not None}
        if fields:
            return lambda value: value and {k: fields[k](v) if k in fields else v for k, v in value.items()}
    return None


def _parsed(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return text
