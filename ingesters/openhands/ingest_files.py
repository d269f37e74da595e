"""Read OpenHands sources: evaluation outputs, resolver rows, event exports, SDK conversations, logs."""

import time
from collections.abc import Iterator
from pathlib import Path

from tracemill.ingesters.common.report_counts import count_traces_in_report
from tracemill.ingesters.openhands.files import READERS
from tracemill.ingesters.reading.json_reading import new_report
from tracemill.records.errors import SourceError
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace


def iter_traces(path: Path, report: IngestReport) -> Iterator[Trace]:
    """Yield the traces of one file or session folder and fill the report, which names the dialect.

    Raises SourceError if the path cannot be read, or the dialect is not of OpenHands.
    """
    dialect = report.dialect or ""
    reader = READERS.get(dialect)
    if reader is None:
        raise SourceError(f"{dialect!r} is not a dialect of OpenHands", " | ".join(READERS), "choose one")
    if path.is_dir():
        report.bytes = 0  # the readers add up the files
    elif not report.bytes:
        report.skipped["empty file"] += 1
        return
    yield from count_traces_in_report(reader(path, dialect, report), report)


def ingest_file(path: Path, dialect: str) -> tuple[list[Trace], IngestReport]:
    """Return the traces of one file or session folder, and the report on it. Raises SourceError."""
    began = time.monotonic()
    report = new_report(path, dialect)
    traces = list(iter_traces(path, report))
    report.seconds = time.monotonic() - began
    return traces, report
