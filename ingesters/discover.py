"""Find the sources below paths, each with its dialect."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from errno import ELOOP, ENOENT
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import NamedTuple

from tracemill.ingesters.detect_format import (
    ARCHIVE,
    DATABASE,
    EVALUATION,
    OUTCOMES,
    TAR,
    detect_file,
    detect_folder,
    folder_signs,
)
from tracemill.ingesters.reading.decompress import SUFFIXES, open_bytes
from tracemill.ingesters.reading.source_file import UNSEEN, SourceFile, SourceStamp
from tracemill.ingesters.registry import FORMATS
from tracemill.records.errors import SourceError
from tracemill.records.storage.workspace_marker import is_workspace

UNREADABLE = "unreadable"
LINKED_FOLDER = "linked folder"
WORKSPACE = "workspace"
FETCHED = "fetched when it is read"
NO_FORMAT = "of no known format"
AGENT_FOLDERS = (
    ".claude/projects",
    ".cline/data/sessions",
    ".cline/data/tasks",
    ".config/Code/User/globalStorage",
    ".config/Cursor/User/globalStorage",
    ".config/Cursor/User/workspaceStorage",
    ".config/claude/projects",
    ".codex/sessions",
    ".codex/archived_sessions",
    ".gemini/tmp",
    ".openhands/conversations",
    ".openhands/sessions",
    ".pi/agent/sessions",
    ".vscode-server/data/User/globalStorage",
)
"""Hidden folders of agents' sessions; other hidden folders are skipped."""
_BYTE_ORDER_MARKS = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
_ARCHIVES = (".zip", ".eval", ".tar", ".tgz")
_SUFFIXES = (".jsonl", ".ndjson", ".json", ".parquet", ".pq", ".traj", ".vscdb", *_ARCHIVES, *SUFFIXES)
_TEXT_SUFFIXES = (".md",)
"""Suffixes of files that are sources only where a format recognises them."""


Recall = Callable[[Path, SourceStamp], "KnownDialect | None"]
"""Path and stamp → the known dialect of an unchanged file, else None."""


class KnownDialect(NamedTuple):
    """The dialect that a source had when it was read before."""

    dialect: str | None


def discover(paths: Iterable[Path | str], recall: Recall = lambda path, stamp: None) -> list[SourceFile]:
    """Return every source below the paths, each once, sorted by path.

    Folders are walked recursively; hidden folders are skipped except those of agents. A conversation folder
    is one source, and a completion log that is read with its session is not a source of its own. A file that
    `recall` knows is not opened. Raises SourceError for a given path that does not exist.
    """
    by_path: dict[str, SourceFile] = {}
    for given in paths:
        path = Path(given).expanduser()
        if not path.exists():
            raise SourceError(f"{path} does not exist", "a file or folder of sessions", "check the path")
        for source in _walk(path, recall) if path.is_dir() else [_source(path, recall)]:
            by_path.setdefault(resolve_source_path(source.path), source)
    sources = sorted(by_path.values(), key=lambda source: str(source.path))
    for form in FORMATS:
        sources = form.without_claimed(sources)
    return sources


def _walk(folder: Path, recall: Recall) -> Iterator[SourceFile]:
    """Yield the sources of a folder; a folder that cannot be opened is an unreadable source."""
    signs = folder_signs()
    try:
        with os.scandir(folder) as entries:
            every = sorted(entries, key=lambda entry: entry.name)
        children = [entry for entry in every if entry.name[0] != "."]
        maybe_session = any(child.name in signs for child in children)
        dialect = detect_folder(folder) if maybe_session else None
        stamp = UNSEEN if dialect is None else _folder_stamp(folder)
    except (SourceError, OSError):
        yield SourceFile(folder, UNREADABLE, 0)
        return
    if dialect is not None:
        yield SourceFile(folder, dialect, stamp.bytes, stamp)
        return
    if is_workspace(folder):
        yield SourceFile(folder, WORKSPACE, 0)
        return
    for agent_folder in _agent_folders(folder, {entry.name for entry in every if entry.name[0] == "."}):
        yield from _walk(agent_folder, recall)
    for child in children:
        if _is_folder(child):
            if child.is_symlink():  # may lead to a loop
                yield SourceFile(Path(child.path), LINKED_FOLDER, 0)
            else:
                yield from _walk(Path(child.path), recall)
        elif child.name.endswith(_SUFFIXES):
            yield _source(Path(child.path), recall)
        elif child.name.endswith(_TEXT_SUFFIXES):
            source = _source(Path(child.path), recall)
            if source.dialect not in (None, UNREADABLE):
                yield source


def _agent_folders(folder: Path, hidden: set[str]) -> Iterator[Path]:
    """Yield the session folders of agents below a folder; linked folders are skipped."""
    for name in AGENT_FOLDERS:
        if name.partition("/")[0] not in hidden:
            continue
        sessions = folder / name
        if sessions.is_dir() and sessions.resolve() == folder.resolve() / name:
            yield sessions


def _source(path: Path, recall: Recall) -> SourceFile:
    """Build the source of a file; a pipe, a device or a file that cannot be read is `unreadable`."""
    try:
        status = path.stat()
        if not S_ISREG(status.st_mode):  # opening it could block for ever
            return SourceFile(path, UNREADABLE, 0)
        stamp = SourceStamp(status.st_size, str(status.st_mtime_ns))
        known = recall(path, stamp)
        return SourceFile(path, known.dialect if known else detect_file(path), stamp.bytes, stamp)
    except (SourceError, OSError):
        return SourceFile(path, UNREADABLE, 0)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):  # a link to itself
        return entry.is_dir()
    return False


def why_unread(file: SourceFile) -> str:
    """Return why a file or folder is not read, without its name."""
    if file.dialect == LINKED_FOLDER:
        return "a linked folder, not followed"
    if file.dialect == UNREADABLE:
        return _why_unreadable(file.path)
    if file.dialect == WORKSPACE:
        return "a workspace of tracemill"
    if file.dialect == ARCHIVE:
        return "a zip archive, not unpacked"
    if file.dialect == TAR:
        return "a tar archive, not unpacked"
    if file.dialect == DATABASE:
        return "a database without conversations of a known agent"
    if file.dialect == EVALUATION:
        return "results of an evaluation, read with its runs"
    if file.dialect == OUTCOMES:
        return "outcomes of sessions: the setting outcomes names it"
    if not file.bytes:
        return "empty"
    fault = "" if file.url else find_encoding_error(file.path)
    return f"{NO_FORMAT}: {fault}" if fault else NO_FORMAT


def find_encoding_error(path: Path) -> str:
    """Return the encoding error of a file, "" without one or if it cannot be read.

    That is another encoding than UTF-8, or lines that end in a carriage return alone.
    """
    head = b""
    with suppress(OSError, EOFError), open_bytes(path) as stream:
        head = stream.read(4096)
    for mark, name in _BYTE_ORDER_MARKS:
        if head.startswith(mark):
            return f"its encoding is {name}, not UTF-8"
    if 0 in head[:2] and not {*head[:2]}.isdisjoint(b"{["):
        return "its encoding is UTF-16, not UTF-8"
    if b"\r" in head and b"\n" not in head and head.lstrip()[:1] in (b"{", b"["):
        return "its lines end in a carriage return alone"
    return ""


def _why_unreadable(path: Path) -> str:
    """Return why a file or folder could not be opened, without its name."""
    try:
        kind = path.stat().st_mode
        if not S_ISREG(kind) and not S_ISDIR(kind):
            return "not a regular file"
        os.close(os.open(path, os.O_RDONLY))
    except OSError as error:
        broken_link = path.is_symlink() and error.errno in (ENOENT, ELOOP)
        return "a broken link" if broken_link else f"unreadable: {error.strerror}"
    return "damaged: nothing can be read"


def resolve_source_path(path: Path) -> str:
    """Return the absolute path of a file without links; a link to itself keeps its own path."""
    return os.path.realpath(path)


def _folder_stamp(folder: Path) -> SourceStamp:
    """Return the total size of all files below a folder, their number and the latest change."""
    statuses = [entry.stat() for entry in walk_files_below(str(folder))]
    latest = max((status.st_mtime_ns for status in statuses), default=0)
    return SourceStamp(sum(status.st_size for status in statuses), f"{latest} {len(statuses)}")


def walk_files_below(folder: str) -> Iterator[os.DirEntry[str]]:
    """Yield every file below a folder, at any depth; a folder that may not be listed gives none."""
    with suppress(PermissionError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from walk_files_below(entry.path)
            elif entry.is_file():
                yield entry
