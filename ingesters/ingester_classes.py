"""Ingesters for use as a library, one class per source."""

import time
from collections.abc import Iterator
from pathlib import Path

from tracemill.ingesters.claude_code import ingest_session as claude_code
from tracemill.ingesters.discover import UNREADABLE, discover, why_unread
from tracemill.ingesters.openhands import ingest_files as openhands
from tracemill.ingesters.read_source import ingest_source
from tracemill.ingesters.reading.decompress import strip_compression_suffix
from tracemill.ingesters.reading.json_reading import new_report
from tracemill.ingesters.reading.source_file import SourceFile
from tracemill.ingesters.registry import format_of
from tracemill.ingesters.swe_gym import ingest_rows as swe_gym
from tracemill.records.errors import SourceError, TracemillError
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace


class _Ingester:
    """Base of the ingesters: `reports` holds one IngestReport for each source read so far."""

    def __init__(self) -> None:
        self.reports: list[IngestReport] = []


class ClaudeCodeIngester(_Ingester):
    """Reader of a session file of Claude Code, or of all of them below a folder.

    In a folder, a file that is not a session or cannot be read sets `error` of its report and stops nothing.
    """

    def ingest(self, path: Path | str) -> Iterator[Trace]:
        """Yield the traces of a file or folder, files in the order of their paths.

        Raises SourceError where the path does not exist, or is a single file that is not a session.
        """
        root = Path(path).expanduser()
        if root.is_dir():
            for source in discover([root]):
                yield from self._ingest(source)
        else:
            traces, report = claude_code.ingest_file(root)
            self.reports.append(report)
            yield from traces

    def _ingest(self, source: SourceFile) -> list[Trace]:
        """Return the traces of one file of a folder; a file that is not a session gives an error report."""
        if source.dialect in (claude_code.DIALECT, UNREADABLE):
            traces, report = ingest_source(source)
        else:
            what = source.dialect if format_of(source.dialect) else why_unread(source)
            error = f"{source.path} is {what}; expected a session file of Claude Code"
            traces, report = [], _error_report(source, error)
        self.reports.append(report)
        return traces


class OpenHandsIngester(_Ingester):
    """Reader of a file or session folder of OpenHands, or of all of them below a folder.

    In a folder, a source of another format or one that cannot be read sets `error` of its report and stops
    nothing.
    """

    def ingest(self, path: Path | str) -> Iterator[Trace]:
        """Yield the traces of a file or folder, sources in the order of their paths.

        Raises SourceError where the path does not exist, or is a single file that is not a session.
        """
        root = Path(path).expanduser()
        for source in discover([root]):
            try:
                traces, report = openhands.ingest_file(source.path, _dialect(source))
            except (TracemillError, OSError) as error:
                if isinstance(error, OSError):
                    reason = f"{source.path} cannot be read: {error.strerror or error}"
                    error = SourceError(reason, "a readable file or folder", "check its permissions")
                if not root.is_dir():
                    raise error from None
                traces, report = [], _error_report(source, str(error))
            self.reports.append(report)
            yield from traces


class SWEGymIngester(_Ingester):
    """Reader of a table of runs, or of all tables below a folder.

    In a folder, a file that cannot be read sets `error` of its report and stops nothing.
    """

    def ingest(self, path: Path | str) -> Iterator[Trace]:
        """Yield the traces of a file or folder, files in the order of their paths, rows in file order.

        Raises SourceError where the path does not exist, or is a single file that cannot be read.
        """
        root = Path(path).expanduser()
        if not root.is_dir():
            yield from self._file(root)
            return
        for file in sorted(
            p
            for p in root.rglob("*")
            if p.is_file() and strip_compression_suffix(p.name).endswith(swe_gym.SUFFIXES)
        ):
            try:
                yield from self._file(file)
            except TracemillError as error:
                self.reports[-1].error = str(error)

    def _file(self, path: Path) -> Iterator[Trace]:
        self.reports.append(IngestReport(str(path), swe_gym.DIALECT))
        report = self.reports[-1] = new_report(path, swe_gym.DIALECT)
        began = time.monotonic()
        yield from swe_gym.iter_traces(path, report)
        report.seconds = time.monotonic() - began


def _error_report(source: SourceFile, error: str) -> IngestReport:
    return IngestReport(str(source.path), source.dialect, bytes=source.bytes, error=error)


def _dialect(source: SourceFile) -> str:
    if source.dialect in openhands.READERS:
        return str(source.dialect)
    is_known = format_of(source.dialect) is not None
    problem = f"{source.path} is {f'of the format {source.dialect}' if is_known else why_unread(source)}"
    raise SourceError(problem, "a session of OpenHands", "leave it out, or use another ingester")
