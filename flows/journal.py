"""Files of JSON objects, one a line, that grow at their end: what was done, so that it is not done again.

A line is on the disk when `append_lines` returns. A writer that was killed leaves at most a cut line at
the end; whoever reads passes over what is no object.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from records.errors import WorkspaceError
from records.files import encodable, writing


def objects_in(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file in their order; none where there is no file."""
    try:
        data = path.read_bytes()
    except OSError:
        return
    for line in data.splitlines():
        with suppress(orjson.JSONDecodeError):
            value = orjson.loads(line)
            if isinstance(value, dict):
                yield value


def append_lines(path: Path, lines: Sequence[dict[str, Any]]) -> None:
    """Add objects at the end. Raises WorkspaceError where the file cannot be written."""
    data = _encoded(lines)
    try:
        with path.open("ab") as stream:
            if stream.tell() and not _ends_whole(path):
                data = b"\n" + data
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise WorkspaceError(f"{path} cannot be written ({error.strerror})", "room on the disk") from error


def rewrite_lines(path: Path, lines: Sequence[dict[str, Any]]) -> None:
    """Put these objects in place of the file, atomically. Raises WorkspaceError."""
    with writing(path) as temporary:
        temporary.write_bytes(_encoded(lines))


def _encoded(lines: Sequence[dict[str, Any]]) -> bytes:
    return b"".join(map(_line, lines))


def _line(value: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:
        return orjson.dumps(encodable(value), option=orjson.OPT_APPEND_NEWLINE)


def _ends_whole(path: Path) -> bool:
    with path.open("rb") as stream:
        stream.seek(-1, os.SEEK_END)
        return stream.read(1) == b"\n"
