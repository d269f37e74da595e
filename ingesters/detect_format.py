"""Which dialect a file or folder is in, told by its content, never by its name.

Each format of the registry is asked in its order. What no format knows may be one of two things that are no
session: a zip archive, which is not unpacked, or the results of an evaluation, verdicts or patches by
instance, which are read with the runs they lie beside.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import orjson

from tracemill.ingesters.format import Format, Record
from tracemill.ingesters.reading.decompress import Stream, open_bytes
from tracemill.ingesters.reading.json_reading import read_json
from tracemill.ingesters.registry import FORMATS
from tracemill.records.errors import SourceError

EVALUATION = "evaluation"
ARCHIVE = "zip archive"

_LOOKED_AT = 50
_LONGEST_LINE = 1 << 28
_ROW_KEYS = ("instance_id", "traj_id", "trajectory_id")
_HEAD = 1024
_BOM = b"\xef\xbb\xbf"
_PARQUET = b"PAR1"
_ZIP = b"PK\x03\x04"
_INDENTED = re.compile(rb'[\xef\xbb\xbf\s]*(\{\s*"trajectory":\s*)?\[\s*\n([ \t]+)(?=\{\r?\n)')
_FIRST_BYTES = (1 << 16, 1 << 18)
"""Bytes in which the first object of an indented list is looked for, one after the other."""


def detect(path: Path) -> str | None:
    """The dialect of a file or of a session folder, None where it is none that is known.

    Raises SourceError where the path cannot be read.
    """
    return detect_folder(path) if path.is_dir() else detect_file(path)


def folder_signs() -> frozenset[str]:
    """Return the names one of which lies in every folder that is a session."""
    return frozenset().union(*(form.folder_signs for form in FORMATS))


def detect_file(path: Path) -> str | None:
    """The dialect of what is known to be no folder. Raises as `detect` does."""
    with _reading(path):
        return _file(path)


def detect_folder(path: Path) -> str | None:
    """The dialect of a folder. Raises as `detect` does."""
    with _reading(path):
        return _ask(lambda form: form.detect_folder(path))


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


def _lines(stream: Stream) -> str | None:
    """The dialect of the first lines that are JSON objects."""
    for value in _first_objects(stream):
        found = detect_record_format(value)
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
    if told := _ask(lambda form: form.detect_head(head)):
        return told
    if (indented := _INDENTED.match(head)) and (told := _by_first(path, stream, indented)):
        return told
    try:
        value = read_json(path)
    except SourceError:
        return None
    if isinstance(value, Mapping):
        return detect_record_format(value)
    return detect_list_format(value) if isinstance(value, list) else None


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
    return _ask(lambda form: form.detect_item(value)) if indented[1] else detect_record_format(value)


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
        return detect_table_format(pq.read_schema(path))
    except ArrowInvalid as error:
        raise SourceError(f"{path} is broken Parquet: {error}", "a whole file", "fetch it again") from None


def detect_record_format(record: Record) -> str | None:
    """Return the dialect of one JSON object, None where its keys say nothing."""
    found = _ask(lambda form: form.detect(record))
    return found or (EVALUATION if _is_evaluation(record) else None)


def detect_list_format(values: Sequence[Any]) -> str | None:
    """Return the dialect of a JSON list by its first objects, None where they say nothing."""
    items = [item for item in values[:_LOOKED_AT] if isinstance(item, Mapping)]
    found = next((found for item in items if (found := detect_record_format(item))), None)
    return found or _ask(lambda form: form.detect_list(items))


def detect_table_format(schema: Any) -> str | None:
    """Return the dialect by the columns of a table, an Arrow schema."""
    import pyarrow as pa

    record: dict[str, Any] = dict.fromkeys(schema.names)
    for name in ("trajectory", "history"):
        kind = schema.field(name).type if name in record else None
        if kind is not None and pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):
            record[name] = [dict.fromkeys(field.name for field in kind.value_type)]
    found = _ask(lambda form: (form.detect_columns or form.detect)(record))
    return found or (EVALUATION if _is_evaluation(record) else None)


def _ask(tell: Callable[[Format], str | None]) -> str | None:
    """Return what the first format says that knows; a package's is not looked for where one of ours does."""
    return next((found for form in FORMATS if (found := tell(form))), None)


def _is_evaluation(record: Record) -> bool:
    """Whether an object lists instances by verdict, or gives each its verdict or patch."""
    if not record.keys().isdisjoint(_ROW_KEYS):
        return False
    if any(isinstance(record.get(key), list) for key in ("resolved_ids", "resolved")):
        return True
    values = [value for value in list(record.values())[:_LOOKED_AT] if isinstance(value, Mapping)]
    return bool(values) and all("resolved" in value or "model_patch" in value for value in values)
