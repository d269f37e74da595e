"""Read lines of text files, gzipped or not."""

import gzip
from collections.abc import Iterator
from pathlib import Path

_GZIP = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def lines_of(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file with their line ends, without a byte order mark.

    Gzip is recognised by its first bytes. Raises OSError, EOFError or zlib.error where the file cannot be
    read.
    """
    with path.open("rb") as file:
        gzipped = file.read(len(_GZIP)) == _GZIP
        file.seek(0)
        with gzip.open(file) if gzipped else file as lines:
            for number, line in enumerate(lines):
                yield line if number else line.removeprefix(_BYTE_ORDER_MARK)
