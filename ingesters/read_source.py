"""Sources → traces."""

from collections.abc import Iterator
from dataclasses import replace

from tracemill.ingesters.detect_format import detect
from tracemill.ingesters.discover import FETCHED, UNREADABLE
from tracemill.ingesters.reading.encoding_errors import find_encoding_error
from tracemill.ingesters.reading.json_reading import new_report
from tracemill.ingesters.reading.remote_files import fetch
from tracemill.ingesters.reading.source_file import SourceFile
from tracemill.ingesters.registry import FORMATS, format_of
from tracemill.ingesters.row_readers import read_traces_by_row
from tracemill.records.errors import SourceError, TracemillError
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace


class Reading:
    """The traces of a source one after the other, so that a table of many runs is never held whole.

    Never raises: a source that defeats its reader is named in `report.error`, by the fault's type
    alone, and stops no other source; what it gave before stays. `report` is whole once the traces have
    all been taken.
    """

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.report = IngestReport(source.name, source.dialect, bytes=source.bytes)

    def __iter__(self) -> Iterator[Trace]:
        path = self.source.name
        try:
            yield from self._elsewhere() if self.source.url or self.source.part else self._traces()
        except TracemillError as error:
            self.report.error = str(error)
        except OSError as error:
            self.report.error = f"{path} cannot be read: {error.strerror or error}"
        except Exception as error:
            self.report.error = (
                f"{path} cannot be read: {type(error).__name__} in its {self.source.dialect} reader"
            )

    def _elsewhere(self) -> Iterator[Trace]:
        """The traces of a part, or of a remote file, which is fetched first."""
        source = self.source
        named = {"origin": source.name} if source.url else {}
        for trace in self._of_part() if source.part is not None else self._of_fetched():
            yield replace(trace, licence=trace.licence or source.licence, **named)

    def _of_part(self) -> Iterator[Trace]:
        path, part = self.source.path, self.source.part
        assert part is not None
        return read_traces_by_row(
            path, part, self.source.dialect, path.name, self.report, not self.source.url
        )

    def _of_fetched(self) -> Iterator[Trace]:
        path = fetch(self.source.url)
        dialect = detect(path) if self.source.dialect == FETCHED else self.source.dialect
        inner = Reading(SourceFile(path, dialect, self.source.bytes))
        yield from inner._traces()
        self.report = replace(inner.report, path=self.source.name)

    def _traces(self) -> Iterator[Trace]:
        path, dialect = self.source.path, self.source.dialect
        form = format_of(dialect)
        if form is None or dialect is None:
            raise _why_not(self.source)
        self.report = new_report(path, dialect)
        yield from form.read(path, dialect, self.report)


def ingest_source(source: SourceFile) -> tuple[list[Trace], IngestReport]:
    """All traces of a source at once, and the report on it. Never raises, as `Reading` does not."""
    reading = Reading(source)
    return list(reading), reading.report


def _why_not(source: SourceFile) -> SourceError:
    """What is wrong with a source of no dialect."""
    if source.dialect == UNREADABLE:
        if not source.path.is_file() and not source.path.is_dir():
            return SourceError(f"{source.path} is no regular file", "a session file", "leave it out")
        detect(source.path)
    fault = find_encoding_error(source.path)
    return SourceError(
        f"{source.path} is of no known format{': ' if fault else ''}{fault}",
        f"a session of {', '.join(FORMATS.names())}",
        "leave it out or check that it is whole",
    )
