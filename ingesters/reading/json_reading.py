"""What every dialect shares: reading JSON that may be broken, and the report that says so.

A broken line is a counted one; a file that cannot be opened is a SourceError. orjson parses; what it
refuses though other writers emit it (lone surrogates, NaN, bytes that are not UTF-8) is parsed a
second time by the standard library, repaired and flagged, so that one cut emoji loses no record.
"""

import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import orjson

from tracemill.ingesters.reading.decompress import open_bytes, read_bytes
from tracemill.records.errors import SourceError
from tracemill.records.ingest_report import IngestReport, record_type

_BOM = b"\xef\xbb\xbf"
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")

NOT_JSON = "not json"
NOT_AN_OBJECT = "not an object"
INVALID_UTF8 = "invalid utf-8"
CUT = "compressed data is broken or ends early"
REPAIRED = "repaired json"


def new_report(path: Path, dialect: str | None) -> IngestReport:
    """An empty report on a file, its size filled in. Raises SourceError where there is no such file."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise _unreadable(path, error) from None
    return IngestReport(str(path), dialect, bytes=size)


def iter_json_lines(
    path: Path,
    report: IngestReport,
    kind: str | None = "type",
    span: tuple[int, int] | None = None,
    data: bytes | None = None,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON Lines file (compressed too) with their line numbers, from 1.

    `report.records` counts them by the value of their key `kind` (None: the caller counts);
    `report.skipped` counts lines that hold no object, by reason. Empty lines are not counted.
    `span` limits it to lines that begin between two bytes of the file; `data` is what it holds, where that
    is known.
    Damaged data ends it early, counted. Raises SourceError where the file cannot be read.
    """
    records, loads, number = report.records, orjson.loads, 0
    with _reading(path), open_bytes(path) if data is None else io.BytesIO(data) as stream:
        try:
            for number, line in enumerate(stream if span is None else _spanned(stream, *span), 1):
                try:
                    value = loads(line)
                except orjson.JSONDecodeError:
                    value = _second_try(line, number, report)
                    if value is None:
                        continue
                if not isinstance(value, dict):
                    report.skipped[NOT_AN_OBJECT] += 1
                    continue
                if kind is not None:
                    records[record_type(value.get(kind))] += 1
                yield number, value
        except EOFError:
            if not number:
                raise
            report.skipped[CUT] += 1


def read_json(path: Path | str, report: IngestReport | None = None, data: bytes | None = None) -> Any:
    """The JSON value a file holds (compressed too); `data` is what it holds, where that is known. Raises
    SourceError where it is unreadable or none."""
    if data is None:
        try:
            data = read_bytes(path)
        except (OSError, EOFError) as error:
            raise _unreadable(path, error) from None
    data = data.removeprefix(_BOM)
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        value, reason = repair_json(data)
    if reason:
        raise SourceError(f"{path} does not parse: {reason}", "one JSON value", "check that it is whole")
    if report is not None:
        report.flags[REPAIRED] += 1
    return value


def repair_json(data: bytes) -> tuple[Any, str]:
    """JSON that orjson refuses, parsed leniently: (value, "") or (None, reason)."""
    text = data.decode("utf-8", "replace")
    reason = INVALID_UTF8 if "\ufffd" in text and not _is_utf8(data) else NOT_JSON
    try:
        value = json.loads(text)
        if "\\u" in text:
            value = json.loads(_LONE_SURROGATE.sub("\ufffd", json.dumps(value, ensure_ascii=False)))
    except (ValueError, RecursionError):
        return None, reason
    return value, ""


def _spanned(stream: IO[bytes], first: int, last: int) -> Iterator[bytes]:
    """The lines that begin between two bytes."""
    at = 0
    if first:
        stream.seek(first - 1)
        at = first - 1 + len(stream.readline())
    while at < last and (line := stream.readline()):
        yield line
        at += len(line)


def _second_try(line: bytes, number: int, report: IngestReport) -> Any:
    """A refused line without its byte order mark, or repaired and flagged; None where it is blank, and,
    counted, where that fails."""
    plain = line.removeprefix(_BOM) if number == 1 else line
    if not plain or plain.isspace():
        return None
    if len(plain) < len(line):
        with suppress(orjson.JSONDecodeError):
            return orjson.loads(plain)
    value, reason = repair_json(plain)
    if reason:
        report.skipped[reason] += 1
        return None
    report.flags[REPAIRED] += 1
    return value


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Faults of the file system as SourceError."""
    try:
        yield
    except (OSError, EOFError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path | str, error: Exception) -> SourceError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return SourceError(f"{path} cannot be read: {reason}", "a readable file", "check its permissions")
