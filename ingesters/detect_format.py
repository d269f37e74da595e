"""Detect the dialect of a file or folder by its content, never by its name.

The formats of the registry are asked in order. Five kinds of files are recognised that are not sessions: tar
archives and zip archives of no format, which are not unpacked, databases of no format, evaluation results
(verdicts or patches by instance), which are read with the runs they lie beside, and outcomes of sessions,
which a setting names.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from tracemill.ingesters.format import Record, SessionFormat
from tracemill.ingesters.reading.decompress import Stream, open_bytes
from tracemill.ingesters.reading.json_reading import raise_source_errors, read_json
from tracemill.ingesters.reading.sqlite_files import MAGIC
from tracemill.ingesters.registry import FORMATS
from tracemill.records.errors import SourceError

EVALUATION = "evaluation"
OUTCOMES = "outcomes"
ARCHIVE = "zip archive"
TAR = "tar archive"
DATABASE = "database"

_MAX_OBJECTS = 50
_SHORT = 24
_MAX_LINE_BYTES = 1 << 28
_ROW_KEYS = ("instance_id", "traj_id", "trajectory_id")
_HEAD_BYTES = 4096
_BOM = b"\xef\xbb\xbf"
_PARQUET = b"PAR1"
_ZIP = b"PK\x03\x04"
_TAR = b"ustar"
_TAR_AT = 257
"""Place of the mark in the first header of a tar archive, in bytes."""
_BEFORE_VALUE = b"\xef\xbb\xbf \t\r\n"
_LIST = re.compile(rb'(\{\s*"trajectory":\s*)?\[\s*\{')
_NEXT_OBJECT = re.compile(r"[\s,]*(?=\{)")
_OPENING_BYTES = (1 << 12, 1 << 16, 1 << 18)
_BEGINNING_BYTES = 1 << 16
"""Limits within which the first objects of a list are searched, tried in order."""


def detect(path: Path) -> str | None:
    """Return the dialect of a file or session folder, None if no format recognises it.

    Raises SourceError if the path cannot be read.
    """
    return detect_folder(path) if path.is_dir() else detect_file(path)


def folder_signs() -> frozenset[str]:
    """Return names of files and folders; every session folder holds at least one of them."""
    return frozenset().union(*(form.folder_signs for form in FORMATS))


def detect_file(path: Path) -> str | None:
    """Return the dialect of a file. Raises SourceError if it cannot be read."""
    with raise_source_errors(path):
        with open_bytes(path) as stream:
            head = stream.read(_HEAD_BYTES)
        if head.startswith(_ZIP):
            return _detect_archive(path)
        if head[_TAR_AT:].startswith(_TAR):
            return TAR
        if head.startswith(_PARQUET):
            return _detect_parquet(path)
        if head.startswith(MAGIC):
            return _detect_database(path)
        first = head.removeprefix(_BOM).lstrip()[:1]
        if first not in (b"{", b"[") and (dialect := _ask_formats(lambda form: form.detect_text(head))):
            return dialect
        if b"\n" not in head and (dialect := _detect_by_head(head, FORMATS.own())):
            return dialect
        if first != b"[":  # what begins with a list has no lines of objects
            with open_bytes(path) as stream:
                if dialect := _detect_lines(stream):
                    return dialect
        return _detect_value(path, head)


def detect_folder(path: Path) -> str | None:
    """Return the dialect of a folder. Raises SourceError if it cannot be read."""
    with raise_source_errors(path):
        return _ask_formats(lambda form: form.detect_folder(path))


def _detect_lines(stream: Stream) -> str | None:
    """Return the dialect of the first lines that are JSON objects."""
    return next(
        (dialect for value in _first_objects(stream) if (dialect := detect_record_format(value))), None
    )


def _first_objects(stream: Stream) -> Iterator[dict[str, Any]]:
    """Yield the objects among the first lines, none if the first line begins a list or an indented object."""
    remaining = _MAX_OBJECTS
    while remaining and (line := stream.readline(_MAX_LINE_BYTES)):
        line = line.strip().removeprefix(_BOM)
        if not line:
            continue
        remaining -= 1
        if line[:1] != b"{" or line[-1:] != b"}":
            if remaining == _MAX_OBJECTS - 1 and (line[:1] == b"[" or line == b"{"):
                return
            continue
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict):
            yield value


def _detect_value(path: Path, head: bytes) -> str | None:
    """Return the dialect of a file that is one JSON value; its first bytes may be enough."""
    if dialect := _detect_by_head(head, FORMATS):
        return dialect
    head = head.lstrip(_BEFORE_VALUE)
    if head[:1] not in (b"[", b"{"):
        return None
    if (begun := _LIST.match(head)) and (dialect := _detect_first_objects(path, bool(begun[1]))):
        return dialect
    if head[:1] == b"{" and (dialect := _detect_beginning(path)):
        return dialect
    try:
        value = read_json(path)
    except SourceError:
        return None
    if isinstance(value, Mapping):
        return detect_record_format(value)
    return detect_list_format(value) if isinstance(value, list) else None


def _detect_by_head(head: bytes, formats: Iterable[SessionFormat]) -> str | None:
    """Return the dialect of a JSON value by its first bytes, None if they are not enough."""
    head = head.lstrip(_BEFORE_VALUE)
    return _ask_formats(lambda form: form.detect_head(head), formats) if head[:1] == b"{" else None


def _detect_beginning(path: Path) -> str | None:
    with open_bytes(path) as stream:
        beginning = stream.read(_BEGINNING_BYTES)
    return _ask_formats(lambda form: form.detect_beginning(beginning))


def _detect_first_objects(path: Path, in_trajectory: bool) -> str | None:
    """Return the dialect of the first objects of a list, None if they are not enough."""
    items = _whole_objects(path)
    if not items:
        return None
    if in_trajectory:
        return _ask_formats(lambda form: form.detect_item(items[0]))
    dialect = _ask_formats(lambda form: form.detect(items[0]), FORMATS.own())
    return dialect or _ask_formats(lambda form: form.detect_opening(items), FORMATS.own())


def _whole_objects(path: Path) -> list[Record]:
    """Return the objects that are whole in the first bytes of a list, at least one where that is possible."""
    data, items, read = b"", list[Record](), json.JSONDecoder().raw_decode
    with open_bytes(path) as stream:
        for size in _OPENING_BYTES:
            data += stream.read(size - len(data))
            text = data.decode("utf-8", "ignore")
            at = text.find("[") + 1
            with suppress(ValueError, RecursionError):
                while begun := _NEXT_OBJECT.match(text, at):
                    item, at = read(text, begun.end())
                    items.append(item)
            if items:
                break
    return items


def _detect_archive(path: Path) -> str:
    from tracemill.ingesters.reading.zip_entries import zip_names

    names = zip_names(path)
    return _ask_formats(lambda form: form.detect_archive(names)) or ARCHIVE


def _detect_database(path: Path) -> str:
    """Return the dialect of a database; one that cannot be opened is of no format."""
    with suppress(SourceError):
        return _ask_formats(lambda form: form.detect_database(path)) or DATABASE
    return DATABASE


def _detect_parquet(path: Path) -> str | None:
    import pyarrow.parquet as pq
    from pyarrow.lib import ArrowInvalid

    try:
        return detect_table_format(pq.read_schema(path))
    except ArrowInvalid as error:
        raise SourceError(
            f"{path} is broken Parquet: {error}", "a complete file", "download it again"
        ) from None


def detect_record_format(record: Record) -> str | None:
    """Return the dialect of one JSON object, None if no format recognises it."""
    return _ask_formats(lambda form: form.detect(record)) or _detect_results(record)


def detect_list_format(values: Sequence[Any]) -> str | None:
    """Return the dialect of a JSON list by its first objects, None if no format recognises them."""
    items = [item for item in values[:_MAX_OBJECTS] if isinstance(item, Mapping)]
    unlike: dict[tuple[Any, ...], Record] = {}
    for item in items:
        unlike.setdefault(_signature(item), item)
    dialect = next((dialect for item in unlike.values() if (dialect := detect_record_format(item))), None)
    return dialect or _ask_formats(lambda form: form.detect_list(items))


def _signature(item: Record) -> tuple[Any, ...]:
    """Return a signature of the kind of an object: its keys, short texts, types of other values."""
    return tuple(
        (key, value if isinstance(value, str) and len(value) <= _SHORT else type(value))
        for key, value in item.items()
    )


def detect_table_format(schema: Any) -> str | None:
    """Return the dialect of a table by its columns, given as an Arrow schema."""
    import pyarrow as pa

    record: dict[str, Any] = dict.fromkeys(schema.names)
    for name in ("trajectory", "history"):
        kind = schema.field(name).type if name in record else None
        if kind is not None and pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):
            record[name] = [dict.fromkeys(field.name for field in kind.value_type)]
    dialect = _ask_formats(lambda form: (form.detect_columns or form.detect)(record))
    return dialect or _detect_results(record)


def _detect_results(record: Record) -> str | None:
    """Return the kind of results that an object holds, None for any other."""
    if isinstance(record.get("session"), str) and isinstance(record.get("resolved"), bool):
        return OUTCOMES
    return EVALUATION if _is_evaluation(record) else None


def _ask_formats(
    detect: Callable[[SessionFormat], str | None], formats: Iterable[SessionFormat] = FORMATS
) -> str | None:
    """Return the first dialect that a format detects; packages are searched after tracemill's formats."""
    return next((dialect for form in formats if (dialect := detect(form))), None)


def _is_evaluation(record: Record) -> bool:
    """Return whether an object lists instances by verdict, or maps each to its verdict or patch."""
    if not record.keys().isdisjoint(_ROW_KEYS):
        return False
    if any(isinstance(record.get(key), list) for key in ("resolved_ids", "resolved")):
        return True
    values = [value for value in list(record.values())[:_MAX_OBJECTS] if isinstance(value, Mapping)]
    return bool(values) and all("resolved" in value or "model_patch" in value for value in values)
