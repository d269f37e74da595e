"""Read JSON that may be broken, and count what is skipped in a report.

A broken line is counted; a file that cannot be opened is a SourceError. What orjson refuses though other
writers emit it (lone surrogates, NaN, bytes that are not UTF-8) is parsed again by the standard library,
repaired and flagged, so that one cut emoji loses no record. So is a line of several objects, as two programs
write it that append to one file.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

import orjson

from tracemill.ingesters.reading.decompress import open_bytes
from tracemill.records.errors import SourceError
from tracemill.records.ingest_report import IngestReport, record_type

_BOM = b"\xef\xbb\xbf"
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")

NOT_JSON = "not json"
NOT_AN_OBJECT = "not an object"
INVALID_UTF8 = "invalid utf-8"
CUT = "compressed data is broken or ends early"
REPAIRED = "repaired json"
JOINED = "line of several objects"
_LINE_FAULTS = (NOT_JSON, NOT_AN_OBJECT, INVALID_UTF8)


def new_report(path: Path, dialect: str | None) -> IngestReport:
    """Return an empty report on a file with its size. Raises SourceError if the file does not exist."""
    with raise_source_errors(path):
        return IngestReport(str(path), dialect, bytes=path.stat().st_size)


class UnreadLines:
    """Watch of the lines that `iter_json_lines` could not read: what follows one is not fully known."""

    def __init__(self, report: IngestReport) -> None:
        self._skipped = report.skipped
        self._seen = self._count()

    def _count(self) -> int:
        return sum(self._skipped[reason] for reason in _LINE_FAULTS if reason in self._skipped)

    def passed(self) -> int:
        """Return the number of lines skipped since the last call."""
        if not self._skipped:  # called for every line
            return 0
        before, self._seen = self._seen, self._count()
        return self._seen - before


def iter_json_lines(
    path: Path, report: IngestReport, kind: str | None = "type", span: tuple[int, int] | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a JSON Lines file (compressed too) with their line numbers, from 1.

    A file that is one JSON list, as `jq -s` writes it, gives its items in the same way. `report.records`
    counts objects by the value of their key `kind` (None: the caller counts), `report.skipped` the lines
    without an object, by reason; empty lines are not counted. `span` limits it to lines that begin between
    two bytes of the file. Damaged data ends the file early and is counted. Raises SourceError if the file
    cannot be read.
    """
    number = 0
    with raise_source_errors(path), open_bytes(path) as stream:
        try:
            lines = _lines_or_items(stream) if span is None else _lines_in_span(stream, *span)
            for number, line in enumerate(lines, 1):
                try:
                    values = (orjson.loads(line) if type(line) is bytes else line,)
                except orjson.JSONDecodeError:
                    values = _parse_refused_line(line, number, report)
                for value in values:
                    if not isinstance(value, dict):
                        report.skipped[NOT_AN_OBJECT] += 1
                        continue
                    if kind is not None:
                        report.records[record_type(value.get(kind))] += 1
                    yield number, value
        except EOFError:
            if not number:
                raise
            report.skipped[CUT] += 1


def read_json(
    path: Path | str, report: IngestReport | None = None, preamble: re.Pattern[bytes] | None = None
) -> Any:
    """Return the JSON value of a file (compressed too).

    What `preamble` matches at the beginning of the file is skipped. Raises
    SourceError if the file cannot be read.
    """
    with raise_source_errors(path), open_bytes(path) as stream:
        data = stream.read().removeprefix(_BOM)
    if preamble is not None and (printed := preamble.match(data)):
        data = data[printed.end() :]
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
    """Parse JSON that orjson refuses leniently; return (value, "") or (None, reason)."""
    text = data.decode("utf-8", "replace")
    reason = INVALID_UTF8 if "\ufffd" in text and not _is_utf8(data) else NOT_JSON
    try:
        value = json.loads(text)
        if "\\u" in text:
            value = json.loads(_LONE_SURROGATE.sub("\ufffd", json.dumps(value, ensure_ascii=False)))
    except (ValueError, RecursionError):
        return None, reason
    return value, ""


def _lines_or_items(stream: BufferedReader) -> Iterable[Any]:
    """Return the lines of a stream, or the items of the one JSON list that it holds."""
    if stream.peek(64).removeprefix(_BOM).lstrip()[:1] != b"[":
        return stream
    data = stream.read()
    try:
        value = orjson.loads(data.removeprefix(_BOM))
    except orjson.JSONDecodeError:
        value = None
    return value if isinstance(value, list) else data.splitlines(keepends=True)


def _lines_in_span(stream: IO[bytes], first: int, last: int) -> Iterator[bytes]:
    """Yield the lines that begin at a byte from `first` on and before `last`."""
    at = 0
    if first:
        stream.seek(first - 1)
        at = first - 1 + len(stream.readline())
    while at < last and (line := stream.readline()):
        yield line
        at += len(line)


def _parse_refused_line(line: bytes, number: int, report: IngestReport) -> Sequence[Any]:
    """Parse a line that orjson refused: without a byte order mark, or repaired and flagged.

    Returns the objects of a line that lacks the breaks between them, which is flagged too; nothing for a
    blank line, and for a broken one, which is counted.
    """
    plain = line.removeprefix(_BOM) if number == 1 else line
    if not plain or plain.isspace():
        return ()
    if len(plain) < len(line):
        with suppress(orjson.JSONDecodeError):
            return (orjson.loads(plain),)
    value, reason = repair_json(plain)
    if not reason:
        report.flags[REPAIRED] += 1
        return (value,)
    if objects := _split_objects(plain):
        report.flags[JOINED] += 1
        return objects
    report.skipped[reason] += 1
    return ()


def _split_objects(line: bytes) -> list[Any]:
    """Return the JSON objects that stand behind each other in a line, none if it holds anything else."""
    text = line.decode("utf-8", "replace").strip()
    decoder, objects, start = json.JSONDecoder(), list[Any](), 0
    while start < len(text):
        try:
            _, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            return []
        value, _ = repair_json(text[start:end].encode("utf-8", "surrogatepass"))
        if not isinstance(value, dict):
            return []
        objects.append(value)
        start = end
    return objects


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


@contextmanager
def raise_source_errors(path: Path | str) -> Iterator[None]:
    """Raise errors of the file system, and of damaged compressed data, as SourceError."""
    try:
        yield
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or error
        problem = f"{path} cannot be read: {reason}"
        do = "check the path" if isinstance(error, FileNotFoundError) else "check its permissions"
        raise SourceError(problem, "a readable file", do) from None
