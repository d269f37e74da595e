"""Redact JSON text string by string: decode, redact, and put back in place.

Only string literals that change are rewritten. Every other byte stays, so key order, blanks, numbers and
escapes are those of the source.
"""

import codecs
import json
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import orjson

from tracemill.privacy.core.rule import encode_rule_text

_LITERAL = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f]")
_BLANKS = " \t\r\n"  # blanks in JSON
_COLON = re.compile(r"\s*:")
_OBJECT = re.compile(r"\s*:\s*\{")
_PAIR = re.compile(r"\s*:\s*\[[\[\s]*(?P<v>-?\d{1,3}\.\d{4,})\s*,\s*(?P<w>-?\d{1,3}\.\d{4,})")
_NUMBER = re.compile(r"\s*:\s*(?P<v>\d{6,32}|-?\d{1,3}\.\d{3,15})(?=[\s,}\]])")
_NAME_KEYS = frozenset(("name", "Name", "key", "Key", "OutputKey", "ParameterKey", "variable"))
_VALUE_KEYS = frozenset(("value", "Value", "default", "defaultValue", "OutputValue", "ParameterValue"))
_UNICODE = re.compile(rb"\\u([0-9a-fA-F]{4})")
_ESCAPES = (
    (rb"\n", b"\n"), (rb"\"", b'"'), (rb"\t", b"\t"), (rb"\r", b"\r"), (rb"\/", b"/"),
    (rb"\b", b"\b"), (rb"\f", b"\f"),
)  # fmt: skip
Leaf = Callable[[str, str], str]


class _Literal(NamedTuple):
    start: int
    end: int
    value: str
    name: str
    """The value's name by its surroundings: its key, or the flag before it."""


def may_redact_json(text: str) -> bool:
    """Tell whether the text begins as a JSON object or array, or is in quotes."""
    head = text[:1]
    if head.isspace():
        head = text.lstrip()[:1]
    return head == "{" or head == "[" or (head == '"' and text.rstrip()[-1:] == '"')


def unescape_json_for_redaction(raw: bytes, whole: bool = False) -> bytes:
    """Return JSON as Latin-1 bytes with its escapes undone.

    `whole`: the text is surely valid JSON.
    """
    if whole and rb"\/" not in raw:  # the only JSON escape that Python does not know
        return encode_rule_text(codecs.unicode_escape_decode(raw)[0])
    raw = raw.replace(rb"\\", b"\0")  # no JSON holds this byte
    if rb"\u" in raw:
        raw = _UNICODE.sub(_character, raw)
    for escape, character in _ESCAPES:
        raw = raw.replace(escape, character)
    return raw.replace(b"\0", b"\\")


def _character(match: re.Match[bytes]) -> bytes:
    code = int(match[1], 16)
    return bytes((code or 1,)) if code < 256 else encode_rule_text(chr(code))


def is_json(text: str) -> bool:
    """Tell whether the whole text is a JSON object or array."""
    head = text.lstrip()[:1]
    if head not in ("{", "["):
        return False
    try:
        orjson.loads(text)
    except ValueError:
        return _is_lenient_json(text)
    return True


def is_json_string(text: str) -> bool:
    """Tell whether the whole text is one JSON string, with its quotes."""
    text = text.strip(_BLANKS)
    if len(text) < 2 or text[0] != '"' or text[-1] != '"' or _LITERAL.fullmatch(text) is None:
        return False
    return _CONTROL.search(text) is None and ("\\" not in text or _is_lenient_json(text))


def _is_lenient_json(text: str) -> bool:
    """Tell whether Python's reader accepts the text: `NaN`, lone surrogates, escaped control characters."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def redact_json(text: str, leaf: Leaf) -> str:
    """Pass every string of valid JSON through `leaf(value, name)`; same object if none changed."""
    pieces: list[str] = []
    done = 0
    for literal in _literals(text):
        new = leaf(literal.value, literal.name)
        if new != literal.value:
            pieces += (text[done : literal.start], _encode(new, text[literal.start : literal.end]))
            done = literal.end
    if not pieces:
        return text
    return "".join((*pieces, text[done:]))


def _literals(text: str) -> Iterator[_Literal]:
    key = previous = announced = ""
    end = 0
    for match in _LITERAL.finditer(text):
        value = _decode(match[0])
        if _COLON.match(text, match.end()):
            key = value
            yield _Literal(*match.span(), value, "")
            if _OBJECT.match(text, match.end()):
                announced = key
            if number := _NUMBER.match(text, match.end()):
                yield _Literal(*number.span("v"), number["v"], key)
            elif pair := _PAIR.match(text, match.end()):
                yield from (_Literal(*pair.span(each), pair[each], key) for each in "vw")
        elif ":" in text[end : match.start()]:
            if key in _NAME_KEYS:
                announced = value
            name = announced if key in _VALUE_KEYS else key
            yield _Literal(*match.span(), value, name)
        else:
            yield _Literal(*match.span(), value, previous if previous.startswith("--") else "")
        previous, end = value, match.end()


_DECODER = json.JSONDecoder(strict=False)


def _decode(literal: str) -> str:
    return _DECODER.raw_decode(literal)[0] if "\\" in literal else literal[1:-1]


def _encode(value: str, model: str) -> str:
    """Return the value as a literal in the style of the one it replaces."""
    encoded = json.dumps(value, ensure_ascii=model.isascii())
    return encoded.replace("/", "\\/") if "\\/" in model else encoded
