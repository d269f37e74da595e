"""Counts of what reading one file gave and skipped."""

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache

_TYPE_NAME = re.compile(r"[^\d\s@/\\]{1,40}")


@dataclass(slots=True)
class IngestReport:
    """Counts of records that were read and skipped in one file.

    `records` counts the file's records by type (`record_type`), `skipped` the skipped ones by reason (a
    short fixed phrase, never content), `flags` warnings about records that were kept, and `unknown` record
    types that the reader does not know.
    """

    path: str
    dialect: str | None = None
    traces: int = 0
    contexts: int = 0
    states: int = 0
    steps_main: int = 0
    steps_side: int = 0
    steps_synthetic: int = 0
    tool_calls: int = 0
    tool_errors: int = 0
    compactions: int = 0
    branches_real: int = 0
    bytes: int = 0
    seconds: float = 0.0
    records: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    flags: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    error: str | None = None


def record_type(value: object) -> str:
    """Return the type a record names, `untyped` if it names none.

    A value that is not a plain type name gives `other`: it may be content, and reports are not redacted.
    """
    return _plain_type(value) if isinstance(value, str) and value else "untyped"


@lru_cache(maxsize=1024)
def _plain_type(value: str) -> str:
    return value if value.isascii() and _TYPE_NAME.fullmatch(value) else "other"
