"""Read one file with the reader of a format, so that its errors are raised."""

from collections.abc import Callable, Iterator
from pathlib import Path

from tracemill.ingesters.reading.json_reading import new_report
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace

Read = Callable[[Path, IngestReport], Iterator[Trace]]


def file_reader(dialect: str, read: Read) -> Callable[[Path], tuple[list[Trace], IngestReport]]:
    """Return a function that gives the traces of a file and the report on it."""

    def read_file(path: Path) -> tuple[list[Trace], IngestReport]:
        report = new_report(path, dialect)
        return list(read(path, report)), report

    return read_file
