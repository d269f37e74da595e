"""Which dialect a file or folder is in, told by its content, never by its name."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import orjson

from tracemill.ingesters.format_by_keys import (
    ARCHIVE,
    dialect_of,
    dialect_of_list,
    dialect_of_table,
    event_dialect,
)
from tracemill.ingesters.reading.decompress import Stream, open_bytes
from tracemill.ingesters.reading.json_reading import read_json
from tracemill.records.errors import SourceError

FOLDER_SIGNS = frozenset(("base_state.json", "events", "event_cache"))
"""What one of which lies in every conversation folder."""

_LOOKED_AT = 50
_LONGEST_LINE = 1 << 28
_V0_EVENT_FILE = re.compile(r"\d+(?:-\d+)?\.json")
_HEAD = 1024
_BOM = b"\xef\xbb\xbf"
_PARQUET = b"PAR1"
_ZIP = b"PK\x03\x04"
_TRAJ_HEAD = re.compile(
    rb'\{\s*(?:"environment":\s*"[^"]{0,200}",\s*)?"trajectory":\s*\[\s*\{\s*"action":\s*"'
)  # enough to know a .traj, also a cut one, without reading what may be many MB
_INDENTED = re.compile(rb'[\xef\xbb\xbf\s]*(\{\s*"trajectory":\s*)?\[\s*\n([ \t]+)(?=\{\r?\n)')
_FIRST_BYTES = (1 << 16, 1 << 18)
"""Bytes in which the first object of an indented list is looked for, one after the other."""


def detect(path: Path) -> str | None:
    """The dialect of a file or of a session folder, None where it is none that is known.

    Raises SourceError where the path cannot be read.
    """
    return detect_folder(path) if path.is_dir() else detect_file(path)


def detect_file(path: Path) -> str | None:
    """The dialect of what is known to be no folder. Raises as `detect` does."""
    with _reading(path):
        return _file(path)


def detect_folder(path: Path) -> str | None:
    """The dialect of a folder. Raises as `detect` does."""
    with _reading(path):
        return _folder(path)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SourceError(f"{path} cannot be read: {reason}", "a readable file", "check it") from None


def _file(path: Path) -> str | None:
    """The dialect of a file, which is opened once where its beginning tells."""
    with open_bytes(path, glance=True) as stream:
        head = stream.peek(_HEAD)[:_HEAD]
        if len(head) < _HEAD:  # all of a short file, or as much as was unpacked
            head = _head(path)
        if head.startswith(_ZIP):
            return ARCHIVE
        if not head.startswith(_PARQUET):
            return _lines(stream) or _whole(path, stream, head)
    return _parquet(path)


def _head(path: Path) -> bytes:
    with open_bytes(path, glance=True) as stream:
        return stream.read(_HEAD)


def _folder(path: Path) -> str | None:
    """A conversation folder of OpenHands: V1 with named events, V0 with numbered ones."""
    if (path / "base_state.json").is_file():
        return "openhands_sdk_v1"
    names = _listed(f"{path}/events")
    if any(name.startswith("event-") and name.endswith(".json") for name in names):
        return "openhands_sdk_v1"
    names += _listed(f"{path}/event_cache")
    return "openhands_events_v0" if any(map(_V0_EVENT_FILE.fullmatch, names)) else None


def _listed(folder: str) -> list[str]:
    """The names in a folder; none where there is no such folder. Raises OSError."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _lines(stream: Stream) -> str | None:
    """The dialect of the first lines that are JSON objects."""
    for value in _first_objects(stream):
        found = dialect_of(value)
        if found is not None:
            return found
    return None


def _first_objects(stream: Stream) -> Iterator[dict[str, Any]]:
    """Objects among the first lines; a single line may hold a list of them."""
    left = _LOOKED_AT
    while left and (line := stream.readline(_LONGEST_LINE)):
        line = line.strip().removeprefix(_BOM)
        if not line:
            continue
        left -= 1
        if line[:1] != b"{" or line[-1:] != b"}":
            if left == _LOOKED_AT - 1 and line[:1] == b"[":
                return
            continue
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict):
            yield value


def _whole(path: Path, stream: Stream, head: bytes) -> str | None:
    """The dialect of a file that is one JSON value over many lines, or a list."""
    head = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if head[:1] not in (b"[", b"{"):
        return None
    if _TRAJ_HEAD.match(head):
        return "swe_agent"
    if (indented := _INDENTED.match(head)) and (told := _by_first(path, stream, indented)):
        return told
    try:
        value = read_json(path)
    except SourceError:
        return None
    if isinstance(value, Mapping):
        return dialect_of(value)
    return dialect_of_list(value) if isinstance(value, list) else None


def _by_first(path: Path, stream: Stream, indented: re.Match[bytes]) -> str | None:
    """The dialect by the first object of an indented list, which ends at the first brace with its own
    indentation, since no string holds a line break. None where that does not tell."""
    data, start, end = b"", 0, -1
    with _from_the_start(path, stream) as again:
        for size in _FIRST_BYTES:
            data += again.read(size - len(data))
            start = data.find(b"{", data.find(b"["))
            end = data.find(b"\n" + indented[2] + b"}", start)
            if end >= 0:
                break
    try:
        value = orjson.loads(data[start : end + len(indented[2]) + 2])
    except orjson.JSONDecodeError:
        return None
    return event_dialect(value) if indented[1] else dialect_of(value)


def _from_the_start(path: Path, stream: Stream) -> AbstractContextManager[Stream]:
    if not stream.seekable():
        return open_bytes(path, glance=True)
    stream.seek(0)
    return nullcontext(stream)


def _parquet(path: Path) -> str | None:
    """The dialect of a Parquet file."""
    import pyarrow.parquet as pq
    from pyarrow.lib import ArrowInvalid

    try:
        return dialect_of_table(pq.read_schema(path))
    except ArrowInvalid as error:
        raise SourceError(f"{path} is broken Parquet: {error}", "a whole file", "fetch it again") from None
