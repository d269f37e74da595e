"""Read the traces of a source."""

from collections.abc import Iterator
from dataclasses import replace

from tracemill.ingesters.detect_format import detect
from tracemill.ingesters.discover import FETCHED, UNREADABLE, why_unread
from tracemill.ingesters.reading.json_reading import new_report
from tracemill.ingesters.reading.remote_files import fetch
from tracemill.ingesters.reading.source_file import SourceFile
from tracemill.ingesters.registry import FORMATS, format_of
from tracemill.ingesters.row_readers import read_traces_by_row
from tracemill.records.errors import SourceError, TracemillError
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace


class SourceReading:
    """Iterator over the traces of a source, so that a large table is never in memory as a whole.

    Never raises: an error of the reader is named in `report.error`, by its type alone, and earlier traces
    stay. `report` is complete once all traces have been taken.
    """

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.report = IngestReport(source.name, source.dialect, bytes=source.bytes)

    def __iter__(self) -> Iterator[Trace]:
        path = self.source.name
        try:
            yield from self._part_or_remote() if self.source.url or self.source.part else self._traces()
        except TracemillError as error:
            self.report.error = str(error)
        except OSError as error:
            self.report.error = f"{path} cannot be read: {error.strerror or error}"
        except Exception as error:
            self.report.error = (
                f"{path} cannot be read: {type(error).__name__} in its {self.source.dialect} reader"
            )

    def _part_or_remote(self) -> Iterator[Trace]:
        """Yield the traces of a part, or of a remote file, which is downloaded first."""
        source = self.source
        origin = {"origin": source.name} if source.url else {}
        if source.part is None:
            traces = self._downloaded_traces()
        else:
            path, local = source.path, not source.url
            traces = read_traces_by_row(path, source.part, source.dialect, path.name, self.report, local)
        for trace in traces:
            yield replace(trace, licence=trace.licence or source.licence, **origin)

    def _downloaded_traces(self) -> Iterator[Trace]:
        path = fetch(self.source.url)
        dialect = detect(path) if self.source.dialect == FETCHED else self.source.dialect
        inner = SourceReading(SourceFile(path, dialect, self.source.bytes))
        yield from inner._traces()
        self.report = replace(inner.report, path=self.source.name)

    def _traces(self) -> Iterator[Trace]:
        path, dialect = self.source.path, self.source.dialect
        form = format_of(dialect)
        if form is None or dialect is None:
            raise _unread_error(self.source)
        self.report = new_report(path, dialect)
        yield from form.read(path, self.report)


def ingest_source(source: SourceFile) -> tuple[list[Trace], IngestReport]:
    """Return all traces of a source and the report on it. Never raises, like `SourceReading`."""
    reading = SourceReading(source)
    return list(reading), reading.report


def _unread_error(source: SourceFile) -> SourceError:
    """Return the error for a source without a dialect."""
    if source.dialect == UNREADABLE:
        if not source.path.is_file() and not source.path.is_dir():
            return SourceError(f"{source.path} is not a regular file", "a session file", "leave it out")
        detect(source.path)
    return SourceError(
        f"{source.path} is {why_unread(source)}",
        f"a session of {', '.join(FORMATS.names())}",
        "leave it out or check that it is whole",
    )
