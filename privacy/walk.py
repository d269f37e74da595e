"""JSON text, redacted leaf by leaf: strings are decoded, judged, and put back in place.

Only the string literals that change are rewritten; every other byte of the text stays, so key order,
blanks, numbers and escapes are those of the source.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import orjson

_LITERAL = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_COLON = re.compile(r"\s*:")
_NUMBER = re.compile(r"\s*:\s*(?P<v>\d{6,32})(?=[\s,}\]])")
_NAME_KEYS = frozenset(("name", "Name", "key", "Key"))
_VALUE_KEYS = frozenset(("value", "Value"))
Leaf = Callable[[str, str], str]


class _Literal(NamedTuple):
    start: int
    end: int
    value: str
    name: str
    """What the value is called, where its surroundings say: its key, the flag before it."""


def is_json(text: str) -> bool:
    """The text is a JSON object or array as a whole."""
    head = text.lstrip()[:1]
    if head not in ("{", "["):
        return False
    try:
        orjson.loads(text)
    except ValueError:
        return _is_lenient_json(text)
    return True


def _is_lenient_json(text: str) -> bool:
    """What the standard reader takes besides: `NaN`, lone surrogates, control characters' escapes."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def redact_json(text: str, leaf: Leaf, ready: Callable[[Sequence[str]], None] = lambda values: None) -> str:
    """Valid JSON with every string passed through `leaf(value, name)`; the same object if none changed.

    `ready` is told of all strings beforehand.
    """
    pieces: list[str] = []
    done = 0
    literals = list(_literals(text))
    ready([literal.value for literal in literals])
    for literal in literals:
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
            if number := _NUMBER.match(text, match.end()):
                yield _Literal(*number.span("v"), number["v"], key)
        elif ":" in text[end : match.start()]:
            if key in _NAME_KEYS:
                announced = value
            name = announced if key in _VALUE_KEYS else key
            yield _Literal(*match.span(), value, name)
        else:
            yield _Literal(*match.span(), value, previous if previous.startswith("--") else "")
        previous, end = value, match.end()


def _decode(literal: str) -> str:
    return json.loads(literal, strict=False) if "\\" in literal else literal[1:-1]


def _encode(value: str, model: str) -> str:
    """The value as a literal in the style of the one it replaces."""
    encoded = json.dumps(value, ensure_ascii=model.isascii())
    return encoded.replace("/", "\\/") if "\\/" in model else encoded
