"""Read the traces of files that hold one run a row."""

from collections.abc import Iterator
from pathlib import Path

from tracemill.ingesters.common.report_counts import traces_of_rows
from tracemill.ingesters.format import RowReader
from tracemill.ingesters.reading.row_files import Part, read_row_file_part
from tracemill.ingesters.registry import format_of
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace


def row_reader(dialect: str | None) -> RowReader | None:
    """Return the reader of a dialect's rows, None for a dialect whose files hold no rows."""
    form = format_of(dialect)
    return form.row_reader(dialect) if form is not None and dialect is not None else None


def read_traces_by_row(
    path: Path, part: Part, dialect: str | None, origin: str, report: IngestReport, local: bool
) -> Iterator[Trace]:
    """Yield the traces of one part of a file of rows. Raises SourceError if it cannot be read.

    With `local`, files beside it, such as completion logs, are read too.
    """
    read = row_reader(dialect)
    assert read is not None, dialect
    beside = path if local else None
    rows = read_row_file_part(path, part, report)
    yield from traces_of_rows(rows, lambda row: read(row, origin, report, beside), report)
