"""Decode stored strings: rows of Parquet, JSON, JSON Lines and SQLite, and plain text.

A key in `"export KEY=...\\n..."` is found only once the escapes are undone. So a string is judged decoded,
and a string that is itself JSON is opened in turn, down to `MAX_DEPTH`.
"""

import html
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

MAX_DEPTH = 6
_NAME_KEYS = ("name", "Name", "key", "Key")
_VALUE_KEYS = ("value", "Value")
_OUR_NAMES = frozenset(("request_key",))  # identifiers of our own tables that sound like secrets
_REFERENCE = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]\w{1,31});")
Trail = tuple[Any, str | int] | None


class TextLocation(NamedTuple):
    """The place of a text; `row` counts from 0, as `datasets` does, `line` from 1."""

    file: str
    row: int | None = None
    line: int | None = None


class StoredText(NamedTuple):
    """A string of a file, as it was stored.

    `name` is its name by its surroundings, "" without one; `trail` leads to it inside its row.
    """

    text: str
    name: str
    place: TextLocation
    trail: Trail


class DecodedText(NamedTuple):
    """A string with every JSON layer opened; `opened` where it was JSON and its parts follow."""

    text: str
    name: str
    trail: Trail
    opened: bool


def decoded_text_column(trail: Trail) -> str:
    """Return a trail as text, as in `prompt[3].content`; "" for a whole text."""
    parts: list[str] = []
    while trail is not None:
        trail, key = trail
        parts.append(f"[{key}]" if isinstance(key, int) else f".{key}")
    return "".join(reversed(parts)).removeprefix(".")


def list_decoded_texts(
    value: Any, place: TextLocation, name: str = "", trail: Trail = None
) -> Iterator[StoredText]:
    """Yield every string of a decoded value, keys too, each with its name and trail."""
    if isinstance(value, str):
        if value:
            yield StoredText(value, name, place, trail)
    elif isinstance(value, dict):
        announced = next((v for k in _NAME_KEYS if isinstance(v := value.get(k), str)), "")
        for key, item in value.items():
            if len(key) >= 8:
                yield StoredText(key, "", place, (trail, "(key)"))
            called = announced if announced and key in _VALUE_KEYS else key
            yield from list_decoded_texts(item, place, "" if called in _OUR_NAMES else called, (trail, key))
    elif isinstance(value, list | tuple):
        previous = ""
        for index, item in enumerate(value):
            yield from list_decoded_texts(
                item, place, previous if previous.startswith("--") else "", (trail, index)
            )
            previous = item if isinstance(item, str) else ""


def open_decoded_text(text: StoredText, depth: int = 0) -> Iterator[DecodedText]:
    """Yield a string, and the strings that it holds where it is JSON or JSON Lines."""
    values = parse_decoded_text(text.text) if depth < MAX_DEPTH else None
    yield DecodedText(text.text, text.name, text.trail, values is not None)
    for value in values or ():
        if isinstance(value, str):  # an invalid line of JSON Lines
            yield DecodedText(value, "", text.trail, False)
            continue
        for inner in list_decoded_texts(value, text.place, "", text.trail):
            yield from open_decoded_text(inner, depth + 1)


def parse_decoded_text(text: str) -> list[Any] | None:
    """Return the values of a JSON object, array or string, or of JSON Lines; None for other text."""
    if text[:1] not in ("{", "[", " ", "\n", '"') or text.lstrip()[:1] not in ("{", "[", '"'):
        return None
    value = load_decoded_json(text)
    if value is not None:
        return [[value]] if isinstance(value, str) else [value]
    first, newline, _ = text.partition("\n")
    if not newline or not isinstance(load_decoded_json(first), dict):
        return None
    lines = text.splitlines()
    return [value if isinstance(value := load_decoded_json(line), dict | list) else line for line in lines]


def load_decoded_json(text: str | bytes) -> Any:
    """Return an object, array or string of JSON; None for anything else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list | str) else None


def resolve_references(markup: str) -> str:
    """Return markup with its character references (`&lt;`) resolved."""
    return _REFERENCE.sub(lambda found: html.unescape(found[0]), markup)
