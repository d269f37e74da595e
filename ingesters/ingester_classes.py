"""The ingesters of the library, a class a source."""

import time
from collections.abc import Iterator
from pathlib import Path

from tracemill.ingesters.claude_code import ingest_session as claude_code
from tracemill.ingesters.discover import UNREADABLE, discover
from tracemill.ingesters.openhands import ingest_files as openhands
from tracemill.ingesters.read_source import ingest_source
from tracemill.ingesters.reading.decompress import strip_compression_suffix
from tracemill.ingesters.reading.json_reading import new_report
from tracemill.ingesters.reading.source_file import SourceFile
from tracemill.ingesters.swe_gym import ingest_rows as swe_gym
from tracemill.records.errors import SourceError, TracemillError
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace


class ClaudeCodeIngester:
    """Reads a session file, or every session file below a folder.

    `reports` holds one IngestReport for each file read so far, with `error` set for a file that is no
    Claude Code session or cannot be read: in a folder it stops nothing.
    """

    def __init__(self) -> None:
        self.reports: list[IngestReport] = []

    def ingest(self, path: Path | str) -> Iterator[Trace]:
        """The traces of a file or folder, files in the order of their paths.

        Raises SourceError where the path does not exist, or is a single file that is no session.
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
        """One file of a folder; what is no session is a report."""
        if source.dialect in (claude_code.DIALECT, UNREADABLE):
            traces, report = ingest_source(source)
        else:
            what = source.dialect or "of no known format"
            error = f"{source.path} is {what}; wanted a session file of Claude Code"
            traces, report = (
                [],
                IngestReport(str(source.path), source.dialect, bytes=source.bytes, error=error),
            )
        self.reports.append(report)
        return traces


class OpenHandsIngester:
    """Reads a file or session folder of OpenHands, or all of them below a folder.

    `reports` holds one IngestReport for each source read so far, with `error` set for one that is of
    another format or cannot be read: in a folder it stops nothing.
    """

    def __init__(self) -> None:
        self.reports: list[IngestReport] = []

    def ingest(self, path: Path | str) -> Iterator[Trace]:
        """The traces of a file or folder, sources in the order of their paths.

        Raises SourceError where the path does not exist, or is a single file that is no session.
        """
        root = Path(path).expanduser()
        for source in discover([root]):
            try:
                traces, report = openhands.ingest_file(source.path, _dialect(source))
            except (TracemillError, OSError) as error:
                reason = _reason(source, error)
                if not root.is_dir():
                    raise reason from None
                traces = []
                report = IngestReport(str(source.path), source.dialect, bytes=source.bytes, error=str(reason))
            self.reports.append(report)
            yield from traces


class SWEGymIngester:
    """Reads a table of runs, or every table below a folder.

    `reports` holds one IngestReport for each file read so far, with `error` set for a file that cannot
    be read: in a folder it stops nothing.
    """

    def __init__(self) -> None:
        self.reports: list[IngestReport] = []

    def ingest(self, path: Path | str) -> Iterator[Trace]:
        """The traces of a file or folder, files in the order of their paths, rows in theirs.

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


def _reason(source: SourceFile, error: TracemillError | OSError) -> TracemillError:
    """The error as one line of ours."""
    if isinstance(error, TracemillError):
        return error
    found = f"{source.path} cannot be read: {error.strerror or error}"
    return SourceError(found, "a readable file or folder", "check its permissions")


def _dialect(source: SourceFile) -> str:
    if source.dialect in openhands.READERS:
        return str(source.dialect)
    found = f"{source.path} is " + (
        f"of the format {source.dialect}" if source.dialect else "of no known format"
    )
    raise SourceError(found, "a session of OpenHands", "leave it out, or read it as what it is")
