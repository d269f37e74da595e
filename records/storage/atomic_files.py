"""Write files to a temporary name and rename them, so that a reader never sees half of one."""

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from tracemill.records.errors import WorkspaceError

PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
"""Modes of files and folders that only their owner may read."""


@dataclass(slots=True)
class PendingFile:
    """A file that is being written: write to `temporary`; it is renamed to `name` in the end.

    `name` may be set as late as the content is known.
    """

    temporary: Path
    name: str = ""


@contextmanager
def open_pending_file(folder: Path) -> Iterator[PendingFile]:
    """Yield a temporary file in `folder`; rename it to its `name` on success, else remove it.

    Raises WorkspaceError if the folder cannot be written or the disk is full.
    """
    file = PendingFile(folder / f".{uuid.uuid4().hex[:16]}.tmp")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield file
        with file.temporary.open("rb+") as handle:
            os.fsync(handle.fileno())
        file.temporary.replace(folder / file.name)
    except OSError as error:
        raise _unwritable(folder, error) from error
    finally:
        with suppress(OSError):
            file.temporary.unlink(missing_ok=True)


@contextmanager
def write_atomically(path: Path, private: bool = False) -> Iterator[Path]:
    """Yield a temporary file beside `path`; rename it to `path` on success, else remove it.

    With `private` only the owner may read the file; a file that was private stays so. Raises WorkspaceError
    if the folder cannot be written.
    """
    with open_pending_file(path.parent) as file:
        file.name = path.name
        was_private = path.exists() and not path.stat().st_mode & 0o077
        if private or was_private:
            make_private_file(file.temporary)
        yield file.temporary


def make_private_folder(folder: Path) -> None:
    """Make a folder that only its owner may enter; an existing one keeps its mode.

    Raises WorkspaceError if it cannot be made.
    """
    try:
        folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from error


def make_files_private() -> None:
    """Set the umask so that only the owner may use files made by this process and its children."""
    os.umask(os.umask(0o077) | 0o077)


def make_tree_private(folder: Path) -> None:
    """Make files and folders below a folder accessible to their owner alone.

    Links, and files of other users, stay as they are.
    """
    for path in folder.rglob("*"):
        if path.is_symlink():
            continue
        with suppress(OSError):
            path.chmod(PRIVATE_FOLDER if path.is_dir() else PRIVATE_FILE)


def make_private_file(path: Path) -> None:
    """Make an empty file that only its owner may read; an existing one stays. Raises OSError."""
    path.touch(mode=PRIVATE_FILE)


def append_private_line(path: Path, text: str) -> None:
    """Append lines in one write to a private file, so that several processes may do so at once.

    Raises WorkspaceError if it cannot be written.
    """
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, PRIVATE_FILE)
        try:
            os.write(handle, text.encode("utf-8"))
        finally:
            os.close(handle)
    except OSError as error:
        raise _unwritable(path.parent, error) from error


def _unwritable(folder: Path, error: OSError) -> WorkspaceError:
    return WorkspaceError(
        f"{folder} cannot be written ({error.strerror or error})",
        "a folder with write permission and room",
        "choose another, or make room",
    )


def write_json(path: Path, value: object, private: bool = False) -> None:
    """Write a value atomically as indented JSON with sorted keys; with `private` for the owner alone."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    try:
        data = orjson.dumps(value, option=options)
    except orjson.JSONEncodeError:
        data = orjson.dumps(encodable_json(value), option=options)
    with write_atomically(path, private) as temporary:
        temporary.write_bytes(data)


def encodable_json(value: Any) -> Any:
    """Return the JSON value with `?` in place of text that is not UTF-8, which file names may have."""
    text = json.dumps(value, ensure_ascii=False)
    clean = text.encode("utf-8", "replace").decode()
    return value if clean == text else json.loads(clean)


def last_log_file_line(log: Path) -> str:
    """Return the last line of a log that is not blank as ` (<line>)`, cut to 200 characters, or ""."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    filled = [line for line in lines if line]
    return f" ({filled[-1][:200]})" if filled else ""


def read_json_file(path: Path) -> object:
    """Return the JSON value in a workspace file. Raises WorkspaceError if it is missing or broken."""
    try:
        return orjson.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise WorkspaceError(
            f"{path} cannot be read ({error})",
            "a JSON file of this workspace",
            "restore it, or start a new workspace with --workspace",
        ) from error
