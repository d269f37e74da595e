"""Open files and unpack compressed ones, recognised by their first bytes, never by name.

| compression | first bytes |
|---|---|
| gzip | `1f 8b` |
| Zstandard | `28 b5 2f fd` |
| bzip2 | `BZh` |
| xz | `fd 37 7a 58 5a 00` |
"""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

SUFFIXES = (".gz", ".zst", ".bz2", ".xz")
"""Usual suffixes of compressed files."""

_BUFFER = 1 << 16
_FAULTS = (OSError, EOFError, zlib.error, lzma.LZMAError)


Stream: TypeAlias = "io.BufferedReader[Any]"
"""The uncompressed bytes of a file."""


class DamagedData(EOFError):
    """Compressed data that ends early or does not unpack."""


@contextmanager
def open_bytes(path: Path | str) -> Iterator[Stream]:
    """Open a file and yield its uncompressed bytes.

    Raises OSError if it cannot be opened. Reading raises DamagedData if compressed data is broken.
    """
    with io.BufferedReader(io.FileIO(path), _BUFFER) as raw:
        unpack = _unpacker(raw.peek(6))
        if unpack is None:
            yield raw
        else:
            with io.BufferedReader(cast(Any, _Unpacked(raw, unpack)), _BUFFER) as stream:
                yield stream


def strip_compression_suffix(name: str) -> str:
    """Return a file name without the suffix of a compression."""
    return name.rpartition(".")[0] if name.endswith(SUFFIXES) else name


def is_compressed(path: Path) -> bool:
    """Return whether a file holds compressed data. Raises OSError if it cannot be opened."""
    with io.FileIO(path) as raw:
        return _unpacker(raw.read(6)) is not None


class _Unpacked(io.RawIOBase):
    """Uncompressed bytes of a compressed stream; every error in it becomes DamagedData."""

    def __init__(self, raw: IO[bytes], unpack: Callable[[IO[bytes]], Any]) -> None:
        with _raise_damaged():
            stream = unpack(raw)
        self._read = getattr(stream, "read1", stream.read)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with _raise_damaged():  # small reads, so that the data before a damage is not lost
            data = self._read(min(len(buffer), _BUFFER))
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def _raise_damaged() -> Iterator[None]:
    try:
        yield
    except _FAULTS as error:
        raise DamagedData(str(error) or type(error).__name__) from None


def _zstandard(raw: IO[bytes]) -> Any:
    import pyarrow as pa

    return pa.CompressedInputStream(pa.PythonFile(raw, "r"), "zstd")


def _unpacker(head: bytes) -> Callable[[IO[bytes]], Any] | None:
    if head.startswith(b"\x1f\x8b"):
        return lambda raw: gzip.GzipFile(fileobj=raw)
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return _zstandard
    if head.startswith(b"BZh"):
        return lambda raw: bz2.BZ2File(raw)
    if head.startswith(b"\xfd7zXZ\0"):
        return lambda raw: cast(Any, lzma.LZMAFile(raw))
    return None
