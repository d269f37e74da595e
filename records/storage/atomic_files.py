"""Files written to a temporary name and renamed, so that a reader never sees half of one."""

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
"""Modes of what its owner alone may read."""


@dataclass(slots=True)
class Pending:
    """A file that is not there yet: write to `temporary`; it will be called `name`, which may be set as
    late as the content is known."""

    temporary: Path
    name: str = ""


@contextmanager
def pending(folder: Path) -> Iterator[Pending]:
    """A temporary name in `folder`, made where it is missing; renamed to what `name` then says where the
    block ends well, removed where not.

    Raises WorkspaceError where the folder cannot be written or the disk is full.
    """
    file = Pending(folder / f".{uuid.uuid4().hex[:16]}.tmp")
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
def writing(path: Path, private: bool = False) -> Iterator[Path]:
    """A temporary name beside `path`, renamed to it where the block ends well, removed where not.

    With `private` the file is readable by its owner alone; one that was so stays so. Raises
    WorkspaceError where the folder cannot be written.
    """
    with pending(path.parent) as file:
        file.name = path.name
        if private or _is_private(path):
            make_private_file(file.temporary)
        yield file.temporary


def make_private_folder(folder: Path) -> None:
    """Make a folder that its owner alone may enter; one that is there stays as it is.

    Raises WorkspaceError where it cannot be made.
    """
    try:
        folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from error


def make_files_private() -> None:
    """Have this process, and those that it starts, make files and folders for their owner alone."""
    os.umask(os.umask(0o077) | 0o077)


def make_tree_private(folder: Path) -> None:
    """Take from others what they may do with the files and folders below a folder; links stay, and so does
    what belongs to another user."""
    for path in folder.rglob("*"):
        if path.is_symlink():
            continue
        with suppress(OSError):
            path.chmod(PRIVATE_FOLDER if path.is_dir() else PRIVATE_FILE)


def make_private_file(path: Path) -> None:
    """Make an empty file that its owner alone may read; one that is there stays as it is. Raises OSError."""
    path.touch(mode=PRIVATE_FILE)


def append_private_line(path: Path, text: str) -> None:
    """Append whole lines in one write to a file that its owner alone may read; several processes may do so.

    Raises WorkspaceError where it cannot be written.
    """
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, PRIVATE_FILE)
        try:
            os.write(handle, text.encode("utf-8"))
        finally:
            os.close(handle)
    except OSError as error:
        raise _unwritable(path.parent, error) from error


def _is_private(path: Path) -> bool:
    return path.exists() and not path.stat().st_mode & 0o077


def _unwritable(folder: Path, error: OSError) -> WorkspaceError:
    return WorkspaceError(
        f"{folder} cannot be written ({error.strerror or error})",
        "a folder with write permission and room",
        "choose another, or make room",
    )


def write_json(path: Path, value: object, private: bool = False) -> None:
    """`value` as indented JSON with sorted keys, atomically; with `private` readable by its owner alone."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    try:
        data = orjson.dumps(value, option=options)
    except orjson.JSONEncodeError:
        data = orjson.dumps(encodable_json(value), option=options)
    with writing(path, private) as temporary:
        temporary.write_bytes(data)


def encodable_json(value: Any) -> Any:
    """The JSON value with `?` where a text holds bytes that are not UTF-8, as names of files may."""
    text = json.dumps(value, ensure_ascii=False)
    clean = text.encode("utf-8", "replace").decode()
    return value if clean == text else json.loads(clean)


def last_log_file_line(log: Path) -> str:
    """The last line of a log that says anything, cut and in parentheses behind a blank; empty where none
    does."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    said = [line for line in lines if line]
    return f" ({said[-1][:200]})" if said else ""


def read_json_file(path: Path) -> object:
    """The JSON value in a file of ours. Raises WorkspaceError where it is missing or broken."""
    try:
        return orjson.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise WorkspaceError(
            f"{path} cannot be read ({error})",
            "a JSON file of this workspace",
            "restore it, or start a new workspace with --workspace",
        ) from error
