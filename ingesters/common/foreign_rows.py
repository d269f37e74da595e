"""Name what rows and files look like that no reader takes, by the keys of an object. Never by its texts."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

_MAX_KEYS = 8
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z_.-]{0,29}")
_TYPES: Mapping[type, str] = {
    str: "text",
    bool: "flag",
    int: "number",
    float: "number",
    list: "list",
    dict: "object",
    type(None): "null",
}
_SHAPES = (
    ("preferences (chosen and rejected)", ("chosen", "rejected")),
    ("prompts with completions", ("prompt", "completion")),
    ("prompts with responses", ("prompt", "response")),
    ("Alpaca instructions", ("instruction", "output")),
    ("questions with answers", ("question", "answer")),
    ("requests of a batch", ("custom_id", "body")),
    ("tasks of SWE-bench, not runs", ("problem_statement", "patch")),
    ("turns of SWE-chat: read the files of its folder transcripts/", ("turn_id", "turn_type", "session_id")),
    ("OpenTelemetry spans", ("resourceSpans",)),
    ("plain texts", ("text",)),
)
"""Shapes that hold no session, each with the keys that tell it."""


def name_foreign_row(row: Mapping[str, Any]) -> str:
    """Return a description of a row without a session, "" if its shape is not well known."""
    return next((name for name, keys in _SHAPES if all(key in row for key in keys)), "")


def keys_of_row(row: Mapping[str, Any]) -> str:
    """Return the first keys of a row, each with the type of its value; `other` for one that is no word."""
    shown = [f"{plain_key(key)} ({_TYPES.get(type(row[key]), 'value')})" for key in list(row)[:_MAX_KEYS]]
    return ", ".join([*shown, *([f"and {len(row) - _MAX_KEYS} more"] if len(row) > _MAX_KEYS else [])])


def plain_keys(keys: Iterable[object]) -> str:
    """Return the first of some keys in order, without repetition."""
    return ", ".join(list(dict.fromkeys(map(plain_key, keys)))[:_MAX_KEYS])


def plain_key(key: object) -> str:
    """Return a key that is a plain word, and so reveals no content, else `other`."""
    return key if isinstance(key, str) and _PLAIN_KEY.fullmatch(key) else "other"
