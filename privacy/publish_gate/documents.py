"""Open files as documents: read pipes, unpack archives and compressed files, decode UTF-16.

Unpacked data lies in unnamed files, which end with the process. Files that cannot be read are named, so
that they do not count as clean.
"""

import bz2
import codecs
import gzip
import lzma
import os
import select
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from tracemill.records.errors import SourceError

_HEAD = 8192  # bytes that show the kind of a file
_MOST = 2_000_000_000  # bytes unpacked from one file, or taken from a pipe
_DEPTH = 4  # archives in archives
_WRITER_S = 10  # seconds to wait for a writer of a pipe
_COPIED = 1 << 20
_PACKED = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\0": lzma.LZMAFile,
}
_ENCODED = (  # the longer mark first: that of UTF-32 begins as that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)
_MEDIA = (
    *(b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"BM", b"\0\0\1\0", b"II*\0", b"MM\0*"),
    *(
        b"ID3",
        b"\xff\xfb",
        b"OggS",
        b"fLaC",
        b"\x1aE\xdf\xa3",
        b"wOFF",
        b"wOF2",
        b"RIFF",
        b"\0\1\0\0\0",
        b"OTTO",
    ),
)
_BROKEN = (OSError, EOFError, lzma.LZMAError, zlib.error, zipfile.BadZipFile, tarfile.TarError)
_TEXTUAL = frozenset(b"\t\n\r\f\b\x1b")


@dataclass(slots=True)
class SkippedFiles:
    """Files that were not read.

    `passed_over` counts files without text, by reason; `not_read` names files that may have text, by reason.
    """

    passed_over: Counter[str] = field(default_factory=Counter)
    not_read: dict[str, list[str]] = field(default_factory=dict)

    def cannot(self, reason: str, shown: str) -> None:
        """Note that a file was not read, or not to its end."""
        files = self.not_read.setdefault(reason, [])
        if shown not in files:
            files.append(shown)


class Document(NamedTuple):
    """A seekable file or member of an archive; `path` only for a file."""

    handle: IO[bytes]
    shown: str
    suffix: str
    path: Path | None

    def head(self) -> bytes:
        """Return its first bytes, and rewind the handle."""
        self.handle.seek(0)
        head = self.handle.read(_HEAD)
        self.handle.seek(0)
        return head


def read_documents(path: Path, shown: str, skipped: SkippedFiles) -> Iterator[Document]:
    """Yield the documents of a file, unpacked.

    `shown` is the file's name in places, `shown/member` that of a member. Raises SourceError for a socket, a
    device, and a pipe without a writer.
    """
    try:
        handle = _opened(path)
    except OSError as error:
        skipped.cannot(f"unreadable ({error.strerror})", shown)
        return
    with handle:
        regular = path.is_file()
        made = Document(handle, shown, path.suffix, path if regular else None)
        yield from _unpacked(made, _Room(skipped), 0)


def _opened(path: Path) -> IO[bytes]:
    mode = path.stat().st_mode
    if stat.S_ISREG(mode):
        return path.open("rb")
    if not stat.S_ISFIFO(mode):
        raise SourceError(f"{path} is a socket, a terminal or a device", "a file, a folder or a pipe")
    pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    copy = tempfile.TemporaryFile()  # noqa: SIM115
    try:
        _drain(pipe, copy, path)
    except BaseException:
        copy.close()
        raise
    finally:
        os.close(pipe)
    return copy


def _drain(pipe: int, copy: IO[bytes], path: Path) -> None:
    """Copy a pipe until its last writer closes it; before the first writer a pipe seems at its end."""
    ready = select.poll()
    ready.register(pipe, select.POLLIN | select.POLLHUP)
    while True:
        came = ready.poll(int(_WRITER_S * 1000))
        with suppress(BlockingIOError):
            data = os.read(pipe, _COPIED)
            copy.write(data)
            if not data and came:
                return
            if not data:
                raise SourceError(f"{path} is a pipe that nobody writes to", "one that is written")
            if copy.tell() > _MOST:
                raise SourceError(f"{path} gives more than {_MOST:,} bytes", "a shorter pipe, or a file")


@dataclass(slots=True)
class _Room:
    """The bytes of one file that may still be unpacked."""

    skipped: SkippedFiles
    left: int = _MOST

    def copied(self, source: IO[bytes], shown: str) -> IO[bytes]:
        """Return a seekable copy; a damaged source gives a short one and is noted."""
        copy = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            while data := source.read(_COPIED):
                self.left -= len(data)
                if self.left < 0:
                    self.skipped.cannot(f"more than {_MOST:,} bytes unpacked", shown)
                    break
                copy.write(data)
        except (*_BROKEN, RuntimeError, NotImplementedError):
            self.skipped.cannot("a broken or encrypted archive", shown)
        return copy


def _unpacked(made: Document, room: _Room, depth: int) -> Iterator[Document]:
    head = made.head()
    packed = next((reader for mark, reader in _PACKED.items() if head.startswith(mark)), None)
    archive = head[:4] in (b"PK\3\4", b"PK\5\6") or head[257:262] == b"ustar"
    if (packed or archive) and depth == _DEPTH:
        room.skipped.cannot(f"archives {_DEPTH} deep", made.shown)
    elif packed:
        with room.copied(packed(made.handle), made.shown) as copy:
            suffix = PurePosixPath(PurePosixPath(made.shown).stem).suffix
            yield from _unpacked(Document(copy, made.shown, suffix, None), room, depth + 1)
    elif archive:
        members = _zipped if head.startswith(b"PK") else _tarred
        try:
            for source, name in members(made.handle, room.skipped):
                shown = f"{made.shown}/{name}"
                with source, room.copied(source, shown) as copy:
                    part = Document(copy, shown, PurePosixPath(name).suffix, None)
                    yield from _unpacked(part, room, depth + 1)
        except (*_BROKEN, RuntimeError, NotImplementedError):
            room.skipped.cannot("a broken or encrypted archive", made.shown)
    elif coding := next((name for mark, name in _ENCODED if head.startswith(mark)), None):
        with tempfile.TemporaryFile() as copy:
            shutil.copyfileobj(codecs.EncodedFile(made.handle, "utf-8", coding, "replace"), copy)
            yield made._replace(handle=copy, path=None)
    elif not is_text(head) and (head.startswith(_MEDIA) or head[4:8] == b"ftyp"):
        room.skipped.passed_over["a picture, film, sound or font"] += 1
    else:
        yield made


def _zipped(handle: IO[bytes], _skipped: SkippedFiles) -> Iterator[tuple[IO[bytes], str]]:
    with zipfile.ZipFile(handle) as archive:
        for member in archive.infolist():
            if not member.is_dir():
                yield archive.open(member), member.filename


def _tarred(handle: IO[bytes], skipped: SkippedFiles) -> Iterator[tuple[IO[bytes], str]]:
    with tarfile.open(fileobj=handle, mode="r:") as archive:
        for member in archive:
            source = archive.extractfile(member) if member.isreg() else None
            if source is not None:
                yield source, member.name
            elif not member.isdir():
                skipped.passed_over["a link"] += 1


def is_text(head: bytes) -> bool:
    """Tell whether bytes are UTF-8 with few control characters, or have no NUL."""
    if b"\0" not in head:
        return True
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    controls = sum(byte < 32 and byte not in _TEXTUAL for byte in head)
    return controls * 20 <= len(head)
