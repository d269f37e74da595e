"""Preview the rows of a table by its small columns, without reading the messages.

A row is made of these columns with empty messages of the recorded roles and read as any row. So its facts
equal those of the whole row.
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
class RowPreview:
    """One row of a table by its number, with a key that identifies the run and a trace without texts.

    `steps` is None if the table stores its messages as one text.
    """

    number: int
    key: str
    trace: Trace
    steps: int | None


def preview_rows(part: TableSlice, dialect: str | None) -> Iterator[RowPreview]:
    """Yield the rows of a slice that are runs. Raises SourceError if it cannot be read.

    Rows of a format without preview columns are read whole.
    """
    read = row_reader(dialect)
    assert read is not None, dialect
    report = IngestReport("")
    for number, row, steps_known in _rows(part, dialect):
        trace = next(iter(read(row, "", report, None)), None)
        if trace is not None:
            small = {name: value for name, value in row.items() if name in FACT_COLUMNS}
            key = digest(repr(sorted(small.items())), size=10)
            yield RowPreview(number, key, trace, trace.step_count if steps_known else None)


def _rows(part: TableSlice, dialect: str | None) -> Iterator[tuple[int, dict[str, Any], bool]]:
    form = format_of(dialect)
    columns = form.preview_columns(find_parquet_leaves(part.place)) if form else None
    if columns is None:
        for number, row in read_parquet_columns(part, None):
            yield number, row, True
        return
    for number, row in read_parquet_columns(part, list(columns.leaves)):
        preview = {key: _mark_previewed(value) for key, value in (row | dict(columns.rest)).items()}
        yield number, preview, columns.steps_known


def _mark_previewed(value: Any) -> Any:
    """Mark messages of which only the role was read, since they are not empty."""
    if not isinstance(value, list) or not all(
        isinstance(item, dict) and item.keys() == {"role"} for item in value
    ):
        return value
    return [{**item, PREVIEWED: True} for item in value]
