"""Lines of a file of other people's, packed or not."""

import gzip
from collections.abc import Iterator
from pathlib import Path

_GZIP = b"\x1f\x8b"
_MARK = b"\xef\xbb\xbf"


def lines_of(path: Path) -> Iterator[bytes]:
    """The lines of a file, with their ends. What begins as gzip does is unpacked, whatever its name, and a
    byte order mark of UTF-8 is left out. Raises OSError, EOFError or zlib.error where it cannot be read."""
    with path.open("rb") as file:
        packed = file.read(len(_GZIP)) == _GZIP
        file.seek(0)
        with gzip.open(file) if packed else file as lines:
            for number, line in enumerate(lines):
                yield line if number else line.removeprefix(_MARK)
