"""The forms in which a known value turns up: composed and decomposed, escaped in JSON, in an address, in
Base64."""

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
_UNCHANGED = re.compile(r"[\w.-]+", re.ASCII)  # which nothing escapes
_UNSAFE = frozenset("<>&'")  # which JSON inside a page escapes
_SHELL_SIGNS = re.compile(r"[^\w@%+=:,./-]", re.ASCII)
_SHELL_QUOTED = re.compile(r"[$`\"\\!]")


def list_spellings(value: str) -> set[str]:
    """Every form of a value, itself among them."""
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
    """Every form of a value that a session gives back: itself, escaped, in an address or a page, in hex; that
    in Base64 apart (`base64_spellings`)."""
    data = value.encode("utf-8", "surrogatepass")
    if _UNCHANGED.fullmatch(value):
        return {value, data.hex(), data.hex().upper()}
    found = {value, *(unicodedata.normalize(form, value) for form in ("NFC", "NFD"))}
    for ascii_only in (True, False):
        once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        safe = "".join(f"\\u{ord(each):04x}" if each in _UNSAFE else each for each in once)
        found |= {once, safe, once.replace("/", "\\/"), json.dumps(once, ensure_ascii=ascii_only)[1:-1]}
    for quoted in (quote(data, safe=""), quote(data, safe="/"), quote_plus(data)):
        found |= {quoted, _PERCENT.sub(lambda code: code[0].lower(), quoted)}
    found |= {html.escape(value), html.escape(value, quote=False), value.replace("'", "'\\''")}
    found |= {_SHELL_SIGNS.sub(r"\\\g<0>", value), _SHELL_QUOTED.sub(r"\\\g<0>", value)}
    return found | {data.hex(), data.hex().upper()}


def base64_spellings(data: bytes, least: int = _MIN_ENCODED) -> Iterator[str]:
    """What the bytes alone decide of Base64 text that holds them, at each of three alignments."""
    for shift in range(3):
        first, last = math.ceil(shift * 8 / 6), (shift + len(data)) * 8 // 6
        for encode in (base64.standard_b64encode, base64.urlsafe_b64encode):
            piece = encode(bytes(shift) + data).decode("ascii")[first:last]
            if len(piece) >= least:
                yield piece
