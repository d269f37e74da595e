"""Which dialects have a row a run, and how a row of theirs is read."""

from collections.abc import Iterator
from pathlib import Path

from tracemill.ingesters.common.report_counts import count_traces_in_report, read_rows_counting_faults
from tracemill.ingesters.format import RowReader
from tracemill.ingesters.reading.row_files import Part, read_row_file_part
from tracemill.ingesters.registry import format_of
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace


def row_reader(dialect: str | None) -> RowReader | None:
    """The reader of a dialect's rows; None for a dialect whose files hold no rows."""
    form = format_of(dialect)
    return form.row_reader(dialect) if form is not None and dialect is not None else None


def read_traces_by_row(
    path: Path, part: Part, dialect: str | None, origin: str, report: IngestReport, here: bool
) -> Iterator[Trace]:
    """The traces of one part of a file of rows; `here` says that the file is on this machine. Raises
    SourceError where it cannot be read."""
    read = row_reader(dialect)
    assert read is not None, dialect
    beside = path if here else None
    rows = read_row_file_part(path, part, report)
    traces = read_rows_counting_faults(rows, lambda row: read(row, origin, report, beside), report)
    yield from count_traces_in_report(traces, report)
