"""List the forms of a known value: Unicode forms, JSON escapes, URL encoding, Base64."""

import base64
import html
import json
import math
import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

_MIN_ENCODED = 10  # characters of a piece of Base64
_PERCENT = re.compile("%[0-9A-F]{2}")
_UNCHANGED = re.compile(r"[A-Za-z0-9]+")  # no encoding escapes these
_UNSAFE = frozenset("<>&'")  # JSON inside HTML escapes these
_SHELL_SIGNS = re.compile(r"[^\w@%+=:,./-]", re.ASCII)
_SIGNS = re.compile(r"[^A-Za-z0-9]")
_SHELL_QUOTED = re.compile(r"[$`\"\\!]")


def list_spellings(value: str) -> set[str]:
    """Return every form of a value, itself included."""
    forms = {value, *(unicodedata.normalize(form, value) for form in ("NFC", "NFD"))}
    if not value.isascii():
        forms |= {form.lower() for form in forms} | {form.upper() for form in forms}
    found = set(forms)
    for form in forms:
        for ascii_only in (True, False):
            once = json.dumps(form, ensure_ascii=ascii_only)[1:-1]
            found |= {once, once.replace("/", "\\/"), json.dumps(once, ensure_ascii=ascii_only)[1:-1]}
        data = form.encode("utf-8", "surrogatepass")
        found |= {quote(data, safe=""), quote(data, safe="/"), quote_plus(data), *base64_spellings(data)}
        found.add(form.replace("\n", "\\n"))
    return found


def list_echo_spellings(value: str) -> set[str]:
    """Return every form of a value that a session may print: itself, escaped, URL-encoded, in hex.

    Base64 is left out; `base64_spellings` gives it.
    """
    data = value.encode("utf-8", "surrogatepass")
    coded = set(_list_code_spellings(data))
    if _UNCHANGED.fullmatch(value):
        return {value} | coded
    found = {value, *(unicodedata.normalize(form, value) for form in ("NFC", "NFD"))}
    for ascii_only in (True, False):
        once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        safe = "".join(f"\\u{ord(each):04x}" if each in _UNSAFE else each for each in once)
        found |= {once, safe, once.replace("/", "\\/"), json.dumps(once, ensure_ascii=ascii_only)[1:-1]}
    for quoted in (quote(data, safe=""), quote(data, safe="/"), quote_plus(data)):
        found |= {quoted, _PERCENT.sub(lambda code: code[0].lower(), quoted)}
    found |= {html.escape(value), html.escape(value, quote=False), repr(value)[1:-1]}
    in_shell = {_SHELL_SIGNS.sub(r"\\\g<0>", value), _SHELL_QUOTED.sub(r"\\\g<0>", value)}
    in_shell |= {value.replace("'", "'\\''"), value.replace("'", "'\"'\"'")}
    found |= in_shell | {json.dumps(each, ensure_ascii=False)[1:-1] for each in in_shell}
    found |= {
        re.escape(value),
        _SIGNS.sub(r"\\\g<0>", value),
        _SIGNS.sub(lambda sign: f"\\u{ord(sign[0]):04x}", value),
    }
    return found | {value.replace("'", "''")} | coded


def _list_code_spellings(data: bytes) -> Iterator[str]:
    """Yield the bytes as numbers: in hex, percent-encoded and in escapes."""
    yield from (data.hex(), data.hex().upper(), data.hex(" "), data.hex(":"))
    for pattern in ("\\%03o", "\\x%02x", "\\x%02X", "%%%02x", "%%%02X", "\\u%04x", "&#%d;"):
        yield "".join(pattern % byte for byte in data)


def base64_spellings(data: bytes, least: int = _MIN_ENCODED) -> Iterator[str]:
    """Yield the Base64 text that the bytes determine, at each of three alignments."""
    for shift in range(3):
        first, last = math.ceil(shift * 8 / 6), (shift + len(data)) * 8 // 6
        for encode in (base64.standard_b64encode, base64.urlsafe_b64encode):
            piece = encode(bytes(shift) + data).decode("ascii")[first:last]
            if len(piece) >= least:
                yield piece
