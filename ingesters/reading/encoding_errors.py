"""Why a file is of no known format, where its encoding says so."""

from contextlib import suppress
from pathlib import Path

from tracemill.ingesters.reading.decompress import open_bytes

_LOOKED_AT = 4096
_MARKS = ((b"\xff\xfe\x00\x00", "UTF-32"), (b"\x00\x00\xfe\xff", "UTF-32"))
_MARKS += ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"))
_OPENERS = (ord("{"), ord("["))


def find_encoding_error(path: Path) -> str:
    """What is wrong with how a file is written: another encoding than UTF-8, or lines that end in a carriage
    return alone; "" where nothing is, or the file cannot be read."""
    head = b""
    with suppress(OSError, EOFError), open_bytes(path, glance=True) as stream:
        head = stream.read(_LOOKED_AT)
    for mark, name in _MARKS:
        if head.startswith(mark):
            return f"its encoding is {name}, not UTF-8"
    if 0 in head[:2] and not {*head[:2]}.isdisjoint(_OPENERS):
        return "its encoding is UTF-16, not UTF-8"
    if b"\r" in head and b"\n" not in head and head.lstrip()[:1] in (b"{", b"["):
        return "its lines end in a carriage return alone"
    return ""
