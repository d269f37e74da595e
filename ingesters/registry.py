"""Paths → sources of known dialects, and sources → traces: the one table of dialects."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from stat import S_ISLNK, S_ISREG
from typing import NamedTuple

from tracemill.ingesters.detect_format import FOLDER_SIGNS, detect, detect_file, detect_folder
from tracemill.ingesters.reading.decompress import SUFFIXES
from tracemill.ingesters.reading.encoding_errors import encoding_fault
from tracemill.ingesters.reading.json_reading import new_report
from tracemill.ingesters.reading.remote_files import fetch
from tracemill.ingesters.reading.source_file import UNSEEN, SourceFile, Stamp
from tracemill.ingesters.row_readers import part_traces
from tracemill.records.errors import SourceError, TracemillError
from tracemill.records.ingest_report import IngestReport
from tracemill.records.storage.workspace_marker import MARKER, is_workspace
from tracemill.records.trace import Trace

UNREADABLE = "unreadable"
LINKED_FOLDER = "linked folder"
WORKSPACE = "workspace"
FETCHED = "fetched when it is read"
_SUFFIXES = (".jsonl", ".ndjson", ".json", ".parquet", ".pq", ".traj", ".zip", *SUFFIXES)


Recall = Callable[[Path, Stamp], "Remembered | None"]
"""What is known of a file that looks as it did, None where it does not."""


class Remembered(NamedTuple):
    """The dialect a source was found to be of."""

    dialect: str | None


def discover(paths: Iterable[Path | str], recall: Recall = lambda path, stamp: None) -> list[SourceFile]:
    """Every source below the paths, each once, sorted by path.

    Folders are walked to their depths, hidden ones left out; a conversation folder is one source and is
    not walked further, and a completion log that is read with its session is no source of its own. A
    file that `recall` knows is not opened. Raises SourceError for a given path that does not exist.
    """
    found: dict[str, SourceFile] = {}
    for given in paths:
        path = Path(given).expanduser()
        if not path.exists():
            raise SourceError(f"{path} does not exist", "a file or folder of sessions", "check the path")
        for source in _walk(path, recall) if path.is_dir() else [_source(path, recall)]:
            found.setdefault(resolved(source.path), source)
    return _without_read_logs(sorted(found.values(), key=lambda source: str(source.path)))


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
        return part_traces(path, part, self.source.dialect, path.name, self.report, not self.source.url)

    def _of_fetched(self) -> Iterator[Trace]:
        path = fetch(self.source.url)
        dialect = detect(path) if self.source.dialect == FETCHED else self.source.dialect
        inner = Reading(SourceFile(path, dialect, self.source.bytes))
        yield from inner._traces()
        self.report = replace(inner.report, path=self.source.name)

    def _traces(self) -> Iterator[Trace]:
        """Dispatch; the modules of a dialect are imported when the first source of it is read."""
        path, dialect = self.source.path, self.source.dialect
        if dialect == "claude_code":
            from tracemill.ingesters.claude_code.ingest_session import ingest_file

            traces, self.report = ingest_file(path)
            traces.reverse()
            while traces:
                yield traces.pop()
        elif dialect == "swe_gym":
            from tracemill.ingesters.swe_gym.ingest_rows import iter_traces

            self.report = new_report(path, dialect)
            yield from iter_traces(path, self.report)
        elif dialect == "swe_agent":
            from tracemill.ingesters.swe_agent.ingest_trajectory import ingest_file

            traces, self.report = ingest_file(path)
            yield from traces
        elif dialect == "mini_swe_agent":
            from tracemill.ingesters.mini_swe_agent.ingest_trajectory import ingest_file

            traces, self.report = ingest_file(path)
            yield from traces
        elif dialect is not None and dialect.startswith("openhands_"):
            from tracemill.ingesters.openhands.ingest_files import iter_traces

            self.report = new_report(path, dialect)
            yield from iter_traces(path, dialect, self.report)
        else:
            raise _why_not(self.source)


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
    fault = encoding_fault(source.path)
    return SourceError(
        f"{source.path} is of no known format{': ' if fault else ''}{fault}",
        "a session of Claude Code, OpenHands, SWE-Gym, SWE-agent or mini-swe-agent",
        "leave it out or check that it is whole",
    )


def _without_read_logs(sources: list[SourceFile]) -> list[SourceFile]:
    """The sources without the completion logs that are read with another one of them."""
    if not any((source.dialect or "").startswith("openhands_completion") for source in sources):
        return sources
    from tracemill.ingesters.openhands.prompts.completion_log_files import without_read_logs

    return without_read_logs(sources)


def _walk(folder: Path, recall: Recall) -> Iterator[SourceFile]:
    """The sources of a folder; one that may not be opened is a source that cannot be read."""
    try:
        with os.scandir(folder) as entries:
            children = sorted((entry for entry in entries if entry.name[0] != "."), key=_name)
        told = any(child.name in FOLDER_SIGNS for child in children)
        dialect = detect_folder(folder) if told else None
        stamp = UNSEEN if dialect is None else _folder_stamp(folder)
    except (SourceError, OSError):
        yield SourceFile(folder, UNREADABLE, 0)
        return
    if dialect is not None:
        yield SourceFile(folder, dialect, stamp.bytes, stamp)
        return
    if any(child.name == MARKER for child in children) and is_workspace(
        folder
    ):  # it may lie among the sessions it was made of
        yield SourceFile(folder, WORKSPACE, 0)
        return
    for child in children:
        if _is_folder(child):
            if child.is_symlink():  # may lead in a circle
                yield SourceFile(Path(child.path), LINKED_FOLDER, 0)
            else:
                yield from _walk(Path(child.path), recall)
        elif child.name.endswith(_SUFFIXES):
            yield _source(Path(child.path), recall)


def _source(path: Path, recall: Recall) -> SourceFile:
    """A file as a source; one that may not be read, or is a pipe or a device, as one that cannot be."""
    try:
        status = path.stat()
        if not S_ISREG(status.st_mode):  # opening it could wait for ever
            return SourceFile(path, UNREADABLE, 0)
        stamp = _stamp(status)
        known = recall(path, stamp)
        return SourceFile(path, known.dialect if known else detect_file(path), stamp.bytes, stamp)
    except (SourceError, OSError):
        return SourceFile(path, UNREADABLE, 0)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):  # a link in a circle is none
        return entry.is_dir()
    return False


def _name(entry: os.DirEntry[str]) -> str:
    return entry.name


def resolved(path: Path) -> str:
    """The absolute path of a file without links, of a link in a circle its own; folders are looked up
    once."""
    text = str(path)
    with suppress(OSError):
        if S_ISLNK(os.lstat(text).st_mode):
            return os.path.realpath(text)
    folder, slash, name = text.rpartition("/")
    return f"{_folder(folder or slash or '.')}/{name}"


@lru_cache(maxsize=1 << 14)
def _folder(path: str) -> str:
    return os.path.realpath(path).rstrip("/")


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_size, str(status.st_mtime_ns))


def _folder_stamp(folder: Path) -> Stamp:
    """Of all files below a folder together: their sizes, how many there are, the latest change."""
    found = [entry.stat() for entry in files_below(str(folder))]
    latest = max((status.st_mtime_ns for status in found), default=0)
    return Stamp(sum(status.st_size for status in found), f"{latest} {len(found)}")


def files_below(folder: str) -> Iterator[os.DirEntry[str]]:
    """Every file below a folder, at any depth; one that may not be listed has none."""
    with suppress(PermissionError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from files_below(entry.path)
            elif entry.is_file():
                yield entry
