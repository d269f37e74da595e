"""What was passed over, and why: nothing is skipped unsaid."""

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache

_LONGEST_TYPE = 40


@dataclass(slots=True)
class IngestReport:
    """What reading one file gave and what it passed over.

    `records` counts the file's records by type (`record_type`); `skipped` those passed over, by reason (a
    reason is a short fixed phrase, never content); `flags` facts worth knowing that lost nothing; `unknown`
    kinds of records that the reader has not heard of, by their names.
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
    """The type that a record says it has, as it may be counted and shown; `untyped` where it says none, and
    `other` where that is no name of a type: content may stand there, and reports are not redacted."""
    return _typed(value) if isinstance(value, str) and value else "untyped"


@lru_cache(maxsize=256)
def _typed(value: str) -> str:
    plain = value.isascii() and not any(c.isdigit() or c.isspace() or c in "@/\\" for c in value)
    return value if plain and len(value) <= _LONGEST_TYPE else "other"
