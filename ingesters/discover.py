"""Paths → sources of known dialects."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from stat import S_ISLNK, S_ISREG
from typing import NamedTuple

from tracemill.ingesters.detect_format import detect_file, detect_folder, folder_signs
from tracemill.ingesters.reading.decompress import SUFFIXES
from tracemill.ingesters.reading.source_file import UNSEEN, SourceFile, Stamp
from tracemill.ingesters.registry import FORMATS
from tracemill.records.errors import SourceError
from tracemill.records.storage.workspace_marker import MARKER, is_workspace

UNREADABLE = "unreadable"
LINKED_FOLDER = "linked folder"
WORKSPACE = "workspace"
FETCHED = "fetched when it is read"
AGENT_FOLDERS = (
    ".claude/projects",
    ".config/claude/projects",
    ".openhands/conversations",
    ".openhands/sessions",
)
"""Hidden folders in which agents keep their sessions; other hidden ones are left out."""
_SUFFIXES = (".jsonl", ".ndjson", ".json", ".parquet", ".pq", ".traj", ".zip", *SUFFIXES)


Recall = Callable[[Path, Stamp], "Remembered | None"]
"""What is known of a file that looks as it did, None where it does not."""


class Remembered(NamedTuple):
    """The dialect a source was found to be of."""

    dialect: str | None


def discover(paths: Iterable[Path | str], recall: Recall = lambda path, stamp: None) -> list[SourceFile]:
    """Every source below the paths, each once, sorted by path.

    Folders are walked to their depths, hidden ones left out but for those of agents; a conversation folder
    is one source and is not walked further, and a completion log that is read with its session is no source
    of its own. A file that `recall` knows is not opened. Raises SourceError for a given path that does not
    exist.
    """
    found: dict[str, SourceFile] = {}
    for given in paths:
        path = Path(given).expanduser()
        if not path.exists():
            raise SourceError(f"{path} does not exist", "a file or folder of sessions", "check the path")
        for source in _walk(path, recall) if path.is_dir() else [_source(path, recall)]:
            found.setdefault(resolve_source_path(source.path), source)
    sources = sorted(found.values(), key=lambda source: str(source.path))
    for form in FORMATS:
        sources = form.without_claimed(sources)
    return sources


def _walk(folder: Path, recall: Recall) -> Iterator[SourceFile]:
    """The sources of a folder; one that may not be opened is a source that cannot be read."""
    signs = folder_signs()
    try:
        with os.scandir(folder) as entries:
            every = sorted(entries, key=_name)
        children = [entry for entry in every if entry.name[0] != "."]
        told = any(child.name in signs for child in children)
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
    for place in _agent_folders(folder, {entry.name for entry in every if entry.name[0] == "."}):
        yield from _walk(place, recall)
    for child in children:
        if _is_folder(child):
            if child.is_symlink():  # may lead in a circle
                yield SourceFile(Path(child.path), LINKED_FOLDER, 0)
            else:
                yield from _walk(Path(child.path), recall)
        elif child.name.endswith(_SUFFIXES):
            yield _source(Path(child.path), recall)


def _agent_folders(folder: Path, hidden: set[str]) -> Iterator[Path]:
    """The folders of agents among the hidden ones of a folder; not those behind a link."""
    for name in AGENT_FOLDERS if hidden else ():
        first, _, rest = name.partition("/")
        if first in hidden and not (folder / first).is_symlink():
            place = folder / first / rest
            if place.is_dir() and place.resolve() == folder.resolve() / first / rest:
                yield place


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


def resolve_source_path(path: Path) -> str:
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
    found = [entry.stat() for entry in walk_files_below(str(folder))]
    latest = max((status.st_mtime_ns for status in found), default=0)
    return Stamp(sum(status.st_size for status in found), f"{latest} {len(found)}")


def walk_files_below(folder: str) -> Iterator[os.DirEntry[str]]:
    """Every file below a folder, at any depth; one that may not be listed has none."""
    with suppress(PermissionError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from walk_files_below(entry.path)
            elif entry.is_file():
                yield entry
