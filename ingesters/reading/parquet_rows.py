"""Read rows of local and remote Parquet tables, one row group in memory at a time.

A row group is the smallest part that is read on its own: of a remote file it is one request for its bytes.
Columns of JSON text (the logical type JSON, as `datasets` writes `Json()`) are decoded.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tracemill.ingesters.reading.remote_files import open_remote, printable_url
from tracemill.records.errors import SourceError

_BATCH_ROWS = 16  # rows decoded at a time: memory stays small whatever the size of a row group


class RowGroup(NamedTuple):
    """Rows and uncompressed bytes of one row group."""

    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The columns (an Arrow schema) and row groups of a table."""

    schema: Any
    groups: tuple[RowGroup, ...]


@dataclass(frozen=True, slots=True)
class TableSlice:
    """Row groups `first` to `last` (exclusive) of the `groups` of a table at a path or URL.

    `rows` are the numbers of the wanted rows, sorted and counted from the first row of the table; None for
    all.
    """

    place: Path | str
    first: int
    last: int
    groups: int
    rows: tuple[int, ...] | None = None


def read_parquet_layout(place: Path | str) -> TableLayout:
    """Return columns and row groups of a table from its footer. Raises SourceError."""
    with _open_table(place) as table:
        meta = table.metadata
        groups = (meta.row_group(at) for at in range(meta.num_row_groups))
        return TableLayout(
            table.schema_arrow,
            tuple(RowGroup(group.num_rows, group.total_byte_size) for group in groups),
        )


def read_parquet_slice(part: TableSlice) -> Iterator[dict[str, Any]]:
    """Yield the wanted rows of a slice in their order. Raises SourceError."""
    for _, row in read_parquet_columns(part, None):
        yield row


def read_parquet_rows(place: Path | str) -> Iterator[dict[str, Any]]:
    """Yield all rows of a table. Raises SourceError."""
    with _open_table(place) as table:
        last = table.metadata.num_row_groups
    yield from read_parquet_slice(TableSlice(place, 0, last, last))


def find_parquet_leaves(place: Path | str) -> tuple[str, ...]:
    """Return the dotted paths of all leaf columns of a table. Raises SourceError."""
    with _open_table(place) as table:
        schema = table.schema
        return tuple(schema.column(at).path for at in range(len(schema)))


def read_parquet_columns(
    part: TableSlice, leaves: Sequence[str] | None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the wanted rows of a slice with their numbers, limited to some leaf columns (None: all).

    A leaf is named by its dotted path, as in `find_parquet_leaves`. Raises SourceError.
    """
    with _open_table(part.place) as table:
        sizes = [table.metadata.row_group(at).num_rows for at in range(table.metadata.num_row_groups)]
        wanted = None if part.rows is None else set(part.rows)
        number = sum(sizes[: part.first])
        decode = _decoder(table.schema_arrow)
        for group in range(part.first, min(part.last, len(sizes))):
            if wanted is None or not wanted.isdisjoint(range(number, number + sizes[group])):
                first = number
                for batch in table.iter_batches(_BATCH_ROWS, row_groups=[group], columns=leaves):
                    for at in range(batch.num_rows):
                        if wanted is None or first + at in wanted:
                            yield first + at, decode(batch.slice(at, 1).to_pylist()[0])
                    first += batch.num_rows
            number += sizes[group]


@contextmanager
def _open_table(place: Path | str) -> Iterator[Any]:
    """Open a table; errors of the file, also while it is read, become SourceError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    name = printable_url(place) if isinstance(place, str) else str(place)
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open_remote(place)) if isinstance(place, str) else place
            yield stack.enter_context(pq.ParquetFile(file, pre_buffer=True))
        except (pa.ArrowException, OSError) as error:
            if isinstance(place, str) and not isinstance(error, pa.ArrowException):
                raise  # `open_remote` makes it a SourceError
            reason = getattr(error, "strerror", None) or type(error).__name__
            problem = f"{name} cannot be read: {reason}"
            raise SourceError(problem, "a Parquet file", "check that it is whole") from None


def _decoder(schema: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a function that decodes the JSON texts of a row."""
    decoders = {field.name: decode for field in schema if (decode := _value_decoder(field.type)) is not None}
    return lambda row: {k: decoders[k](v) if k in decoders else v for k, v in row.items()}


def _value_decoder(kind: Any) -> Callable[[Any], Any] | None:
    """Return a function that decodes values of an Arrow type, None if it holds no JSON."""
    import pyarrow as pa

    if isinstance(kind, pa.JsonType):
        return _parse_json
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = _value_decoder(kind.value_type)
        return None if inner is None else lambda value: value and [inner(item) for item in value]
    if pa.types.is_struct(kind):
        fields = {f.name: decode for f in kind if (decode := _value_decoder(f.type)) is not None}
        if fields:
            return lambda value: value and {k: fields[k](v) if k in fields else v for k, v in value.items()}
    return None


def _parse_json(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return text
