"""OpenHands sessions: evaluation outputs, resolver rows, event exports, SDK conversations, logs."""

from collections.abc import Iterator
from pathlib import Path

from tracemill.ingesters.common.report_counts import count_traces_in_report, read_all_with_counts
from tracemill.ingesters.openhands.files import READERS
from tracemill.records.errors import SourceError
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace

DIALECTS = tuple(READERS)
"""The dialects `ingest_file` reads."""


def iter_traces(path: Path, dialect: str, report: IngestReport) -> Iterator[Trace]:
    """The traces of one file or session folder, one after the other; `report` is filled meanwhile.

    Raises SourceError where the path cannot be read at all, or the dialect is none of DIALECTS.
    """
    reader = READERS.get(dialect)
    if reader is None:
        raise SourceError(f"{dialect!r} is no dialect of OpenHands", " | ".join(DIALECTS), "choose one")
    if path.is_dir():
        report.bytes = 0  # the readers add up the files
    elif not report.bytes:
        report.skipped["empty file"] += 1
        return
    yield from count_traces_in_report(reader(path, dialect, report), report)


def ingest_file(path: Path, dialect: str) -> tuple[list[Trace], IngestReport]:
    """The traces of one file or session folder, and what was passed over. Raises SourceError."""
    return read_all_with_counts(path, dialect, lambda path, report: iter_traces(path, dialect, report))
