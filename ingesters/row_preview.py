"""What the small columns of a table say of its rows, without reading what was said.

A row is made of them with empty messages of the recorded roles, marked as such, and read as any row is: so
the facts are those the whole row would give.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tracemill.ingesters.common.run_identity import FACT_COLUMNS, PREVIEWED
from tracemill.ingesters.reading.parquet_rows import TableSlice, find_parquet_leaves, read_parquet_columns
from tracemill.ingesters.registry import format_of
from tracemill.ingesters.row_readers import row_reader
from tracemill.records.identity import digest
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace


@dataclass(frozen=True, slots=True)
class Glanced:
    """One row of a table by its number: what tells it from others, and a trace with all its facts but
    no text. `steps` is None where the table keeps its messages as one text."""

    number: int
    key: str
    trace: Trace
    steps: int | None


def preview_rows(part: TableSlice, dialect: str | None) -> Iterator[Glanced]:
    """The rows of a slice that are runs. Raises SourceError where it cannot be read.

    Of a format that names no preview columns every row is read whole.
    """
    read = row_reader(dialect)
    assert read is not None, dialect
    report = IngestReport("")
    for number, row, steps_known in _rows(part, dialect):
        trace = next(iter(read(row, "", report, None)), None)
        if trace is not None:
            small = {name: value for name, value in row.items() if name in FACT_COLUMNS}
            key = digest(repr(sorted(small.items())), size=10)
            yield Glanced(number, key, trace, trace.step_count if steps_known else None)


def _rows(part: TableSlice, dialect: str | None) -> Iterator[tuple[int, dict[str, Any], bool]]:
    form = format_of(dialect)
    columns = form.preview_columns(find_parquet_leaves(part.place)) if form else None
    if columns is None:
        for number, row in read_parquet_columns(part, None):
            yield number, row, True
        return
    for number, row in read_parquet_columns(part, list(columns.leaves)):
        made = {key: _marked(value) for key, value in (row | dict(columns.rest)).items()}
        yield number, made, columns.steps_known


def _marked(value: Any) -> Any:
    """Messages of which only the role is known, each with a mark: what they say is not nothing."""
    if not isinstance(value, list) or not all(
        isinstance(item, dict) and item.keys() == {"role"} for item in value
    ):
        return value
    return [{**item, PREVIEWED: True} for item in value]
