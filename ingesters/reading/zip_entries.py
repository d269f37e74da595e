"""Read entries of zip archives, those compressed with Zstandard too."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from tracemill.ingesters.reading.json_reading import repair_json
from tracemill.records.errors import SourceError

_ZSTANDARD = 93
_LOCAL_HEADER_BYTES = 30
_FAULTS = (zipfile.BadZipFile, EOFError, NotImplementedError, ValueError)


@contextmanager
def open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open an archive. Raises SourceError if it or an entry is broken."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except _FAULTS as error:
        raise SourceError(
            f"{path} is a broken zip archive: {error}", "a complete file", "copy it again"
        ) from None


def zip_names(path: Path) -> list[str]:
    """Return the names of the entries of an archive, none if it is broken."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except _FAULTS:
        return []


def read_zip_json(archive: zipfile.ZipFile, name: str) -> Any:
    """Return the JSON value of an entry, the last one of its name. Raises ValueError if it is broken."""
    data = _read_entry(archive, archive.getinfo(name))
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        value, reason = repair_json(data)
    if reason:
        raise ValueError(f"an entry does not parse: {reason}")
    return value


def _read_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    if entry.compress_type != _ZSTANDARD:
        return archive.read(entry)
    import pyarrow as pa

    stream = archive.fp
    assert stream is not None
    stream.seek(entry.header_offset)
    head = stream.read(_LOCAL_HEADER_BYTES)
    stream.seek(int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little"), 1)
    packed = pa.BufferReader(stream.read(entry.compress_size))
    try:
        return pa.CompressedInputStream(packed, "zstd").read()
    except OSError as error:
        raise zipfile.BadZipFile(str(error)) from None
