"""Files written to a temporary name and renamed, so that a reader never sees half of one."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import orjson

from records.errors import WorkspaceError


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A temporary name beside `path`, renamed to it where the block ends well, removed where not.

    Raises WorkspaceError where the folder cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with temporary.open("rb+") as handle:
            os.fsync(handle.fileno())
        temporary.replace(path)
    except OSError as error:
        raise WorkspaceError(
            f"{path.parent} cannot be written ({error.strerror or error})",
            "a folder with write permission",
            "choose another with --workspace",
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_json(path: Path, value: object) -> None:
    """`value` as indented JSON with sorted keys, atomically."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    with writing(path) as temporary:
        temporary.write_bytes(orjson.dumps(value, option=options))


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
