"""Find sources among files, folders, URLs and datasets of the Hub, each once."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from tracemill.flows.sources.source_spec import SourceOptions
from tracemill.flows.sources.watermark_records import source_address
from tracemill.flows.sources.watermarks import Watermarks
from tracemill.ingesters.discover import (
    FETCHED,
    LINKED_FOLDER,
    NO_FORMAT,
    UNREADABLE,
    WORKSPACE,
    discover,
    why_unread,
)
from tracemill.ingesters.idle_sessions import is_session_not_idle
from tracemill.ingesters.looks_like import looks_like
from tracemill.ingesters.read_source import SourceReading, ingest_source
from tracemill.ingesters.reading.source_file import SourceFile, SourceStamp
from tracemill.ingesters.registry import FORMATS, dialects, source_of
from tracemill.records.errors import SourceError

_FLAGS = {name: f"`--{name.replace('_', '-')}`" for name in ("claude_code", "codex", "openhands", "swe_gym")}
"""Option of `tracemill run` for each format that has one."""
_LOOKED_AT = 20
"""Number of unknown files of which an ingest tells what they look like."""


class UnreadFile(NamedTuple):
    """A file that is not read, and why; for an unknown format also a description of its content."""

    path: str
    reason: str
    looks_like: str = ""
    of_format: str | None = None
    """Format of a session that is none of the wanted format."""


@dataclass(slots=True)
class FoundSources:
    """The sources by their address.

    `there` holds the addresses of all files found, sources or not; `alone` are those skipped this time,
    because they are still being written or cannot be read now; `strangers` are files without a session;
    `datasets` names each dataset with its commit.
    """

    files: dict[str, SourceFile] = field(default_factory=dict)
    there: set[str] = field(default_factory=set)
    unread: list[UnreadFile] = field(default_factory=list)
    alone: list[SourceFile] = field(default_factory=list)
    strangers: list[SourceFile] = field(default_factory=list)
    still_written: int = 0
    datasets: list[str] = field(default_factory=list)


def find_sources(order: SourceOptions, marks: Watermarks | None) -> FoundSources:
    """Find all selected sources. Files that are unchanged by `marks` are not opened.

    Raises SourceError if a path is missing, if a file that the user named is not a session or not of the
    requested format, if a URL or dataset cannot be read, and if nothing was found.
    """
    if not order:
        raise SourceError(
            "no sources are given", "at least one folder of sessions", "see tracemill run --help"
        )
    if order.format is not None and order.format not in dialects():
        raise SourceError(f"there is no format {order.format!r}", " | ".join(dialects()))
    found = FoundSources()
    for path, wanted in order.given:
        for address, file in _below(path, wanted, order, marks, found):
            found.files.setdefault(address, file)
    for file in (*_remote_sources(order), *_of_hub(order, found)):
        found.there.add(source_address(file))
        found.files.setdefault(source_address(file), file)
    if not found.files and not found.alone:
        where = ", ".join(order.names())
        if others := sorted({each.of_format for each in found.unread if each.of_format}):
            raise SourceError(
                f"no session of {_wanted(order)} under {where}, but of {', '.join(others)}",
                do=f"name the folder with {', '.join(map(_flag_of, others))}",
            )
        raise SourceError(
            f"no recorded session under {where}",
            f"sessions of {', '.join(FORMATS.names())}",
        )
    return found


def _flag_of(source: str) -> str:
    return _FLAGS.get(source, f"`--path` ({source})")


def _wanted(order: SourceOptions) -> str:
    return " or ".join(sorted({wanted for _, wanted in order.given if wanted is not None})) or "any format"


def _below(
    path: Path, wanted: str | None, order: SourceOptions, marks: Watermarks | None, found: FoundSources
) -> Iterator[tuple[str, SourceFile]]:
    """Yield the sources of a path with their addresses; report other files of a folder as unread."""
    path = path.expanduser()
    forced = order.format if wanted is None else None
    now, idle = datetime.now(UTC), timedelta(minutes=order.min_age_minutes)
    for file in discover([path], marks.recall) if marks else discover([path]):
        address = source_address(file)
        found.there.add(address)
        outright = file.path == path
        if forced and file.dialect not in (UNREADABLE, LINKED_FOLDER, WORKSPACE):
            file = _forced(file, forced, outright)
        source = source_of(file.dialect)
        if source is None or wanted not in (None, source):
            reason = f"{source}, not {wanted}" if source else why_unread(file)
            if outright:
                raise _refused(file, reason, wanted, source)
            unknown = reason == NO_FORMAT and len(found.strangers) < _LOOKED_AT
            like = looks_like(file.path) if unknown else ""
            found.unread.append(UnreadFile(str(file.path), reason, like, source))
            if file.dialect == UNREADABLE or _is_reader_missing(file, marks):
                found.alone.append(file)
            elif source is None and file.dialect not in (LINKED_FOLDER, WORKSPACE):
                found.strangers.append(file)
        elif marks and marks.current(file):
            yield address, file  # unchanged: finished or not, all of it was read
        elif not outright and idle and _being_written(file, now, idle):
            found.alone.append(file)
            found.still_written += 1
        else:
            yield address, file


def _is_reader_missing(file: SourceFile, marks: Watermarks | None) -> bool:
    """Return whether a file was read before and its format's reader cannot be imported now.

    Its traces stay.
    """
    if marks is None or file.dialect is not None or not FORMATS.broken:
        return False
    return any(mark.seen for mark in marks.of(file))


def _being_written(file: SourceFile, now: datetime, idle: timedelta) -> bool:
    try:
        return is_session_not_idle(file, now, idle)
    except OSError:
        return False  # gone meanwhile: whoever reads it says so


def _forced(file: SourceFile, dialect: str, outright: bool) -> SourceFile:
    """Return the file as one of the dialect.

    Raises SourceError if the user named it and it holds no session of the dialect.
    """
    forced = replace(file, dialect=dialect)
    if outright and file.dialect != dialect:
        require_sessions(forced)
    return forced


def require_sessions(forced: SourceFile) -> None:
    """Raise SourceError if a source of a forced format holds no session of it."""
    reading = SourceReading(forced)
    if next(iter(reading), None) is None:
        passed = ", ".join(f"{count} {why}" for why, count in reading.report.skipped.most_common(2))
        reason = reading.report.error or f"{forced.name} holds no session of it ({passed or 'no record'})"
        raise SourceError(f"--format {forced.dialect} was given: {reason}", "the format of the file")


def _refused(file: SourceFile, reason: str, wanted: str | None, source: str | None) -> SourceError:
    error = ingest_source(file)[1].error if file.dialect == UNREADABLE else None
    if error:
        return SourceError(error, "")
    looks = looks_like(file.path) if reason == NO_FORMAT else ""
    said = f"{reason} ({looks})" if looks else reason
    do = f"name the file with {_flag_of(source)}" if source else "see tracemill formats list"
    return SourceError(f"{file.path} is {said}", f"a {wanted or 'recorded'} session", do)


def _remote_sources(order: SourceOptions) -> Iterator[SourceFile]:
    """Yield the files at URLs; their dialect is found when their columns are read."""
    from tracemill.ingesters.reading.remote_files import remote_file_version

    for url in order.urls:
        size, tag = remote_file_version(url)
        yield SourceFile(_file_name(url), order.format or FETCHED, size, SourceStamp(size, tag), url)


def _of_hub(order: SourceOptions, found: FoundSources) -> Iterator[SourceFile]:
    """Yield the files of Hub datasets."""
    if not order.hub:
        return
    from tracemill.ingesters.reading.hub_datasets import HubSpec, resolve_hub_dataset

    for text in order.hub:
        dataset = resolve_hub_dataset(HubSpec.parse(text))
        found.datasets.append(dataset.name)
        for file in dataset.files:
            yield SourceFile(
                _file_name(file.url),
                order.format or FETCHED,
                file.bytes,
                SourceStamp(file.bytes, file.tag),
                file.url,
                licence=dataset.licence,
            )


def _file_name(url: str) -> Path:
    return Path(PurePosixPath(url.partition("?")[0]).name)
