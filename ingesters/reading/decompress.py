"""Files opened as what they hold, unpacked where they are compressed: told by content, never by name.

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
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

SUFFIXES = (".gz", ".zst", ".bz2", ".xz")
"""The suffixes compressed files usually bear."""

_BUFFER = 1 << 20
_GLANCE = 1 << 15
_CHUNK = 1 << 16
_FAULTS = (OSError, EOFError, zlib.error, lzma.LZMAError)


Stream: TypeAlias = "io.BufferedReader[Any]"
"""The plain bytes of a file."""


class DamagedData(EOFError):
    """Compressed data that ends early or does not unpack."""


@contextmanager
def open_bytes(path: Path | str, glance: bool = False) -> Iterator[Stream]:
    """A file opened for reading its plain bytes; `glance` where only its beginning is wanted.

    Raises OSError where it cannot be opened. Reading raises DamagedData where compressed data is broken.
    """
    file = io.FileIO(path)
    size = _GLANCE if glance else min(_BUFFER, max(_GLANCE, os.fstat(file.fileno()).st_size + 1))
    with io.BufferedReader(file, size) as raw:
        unpack = _unpacker(raw.peek(6))
        if unpack is None:
            yield raw
        else:
            with io.BufferedReader(
                cast(Any, _Unpacked(raw, unpack)), _GLANCE if glance else _BUFFER
            ) as stream:
                yield stream


def read_bytes(path: Path | str) -> bytes:
    """All plain bytes of a file. Raises OSError where it cannot be opened, DamagedData where compressed
    data is broken."""
    with io.FileIO(path) as raw:
        data = raw.readall()
    if _unpacker(data[:6]) is None:
        return data
    with open_bytes(path) as stream:
        return stream.read()


def strip_compression_suffix(name: str) -> str:
    """A file name without the suffix of a compression."""
    return name.rpartition(".")[0] if name.endswith(SUFFIXES) else name


def packed(data: bytes) -> bool:
    """Whether a file that begins so holds compressed data."""
    return _unpacker(data[:6]) is not None


def is_compressed(path: Path) -> bool:
    """Whether a file holds compressed data. Raises OSError where it cannot be opened."""
    with io.FileIO(path) as raw:
        return _unpacker(raw.read(6)) is not None


class _Unpacked(io.RawIOBase):
    """Plain bytes of a compressed stream; whatever breaks in it is DamagedData."""

    def __init__(self, raw: IO[bytes], unpack: Callable[[IO[bytes]], Any]) -> None:
        with _damage():
            stream = unpack(raw)
        self._read = getattr(stream, "read1", stream.read)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with _damage():  # little at a time: what was unpacked before the damage is not lost
            data = self._read(min(len(buffer), _CHUNK))
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def _damage() -> Iterator[None]:
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
