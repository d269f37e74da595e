"""Read and append files of JSON objects, one a line.

A line is on the disk when `append_lines` returns. A writer that was killed leaves at most a cut line at
the end; whoever reads passes over what is no object.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from tracemill.records.errors import WorkspaceError
from tracemill.records.storage.atomic_files import encodable_json, write_atomically


def read_jsonl_log(path: Path) -> Iterator[dict[str, Any]]:
    """Read the objects of a file in order; none if it does not exist."""
    try:
        data = path.read_bytes()
    except OSError:
        return
    for line in data.splitlines():
        with suppress(orjson.JSONDecodeError):
            value = orjson.loads(line)
            if isinstance(value, dict):
                yield value


def append_lines(path: Path, lines: Iterable[dict[str, Any]]) -> int:
    """Append objects to the file and return their number. Raises WorkspaceError if it cannot be written."""
    data, count = _encoded(lines)
    if not count:
        return 0
    try:
        with path.open("ab") as stream:
            if stream.tell() and not _ends_whole(path):
                data = b"\n" + data
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise WorkspaceError(f"{path} cannot be written ({error.strerror})", "room on the disk") from error
    return count


def rewrite_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Replace the file by these objects, atomically. Raises WorkspaceError."""
    with write_atomically(path) as temporary:
        temporary.write_bytes(_encoded(lines)[0])


def _encoded(lines: Iterable[dict[str, Any]]) -> tuple[bytearray, int]:
    """Encode lines into one buffer, and count them; separate results of orjson take several kB each."""
    data, count = bytearray(), 0
    for value in lines:
        data += _line(value)
        count += 1
    return data, count


def _line(value: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:
        return orjson.dumps(encodable_json(value), option=orjson.OPT_APPEND_NEWLINE)


def _ends_whole(path: Path) -> bool:
    with path.open("rb") as stream:
        stream.seek(-1, os.SEEK_END)
        return stream.read(1) == b"\n"
