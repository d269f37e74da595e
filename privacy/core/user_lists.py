"""Match the user's lists: values and patterns to redact or to allow."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tracemill.privacy.core.rule import Span, TextView
from tracemill.records.errors import ConfigError

PATTERN_PREFIX = "re:"


@dataclass(frozen=True, slots=True)
class UserList:
    """Exact values and patterns; its `repr` shows none of them."""

    values: tuple[str, ...] = field(default=(), repr=False)
    patterns: tuple[re.Pattern[str], ...] = field(default=(), repr=False)

    def __bool__(self) -> bool:
        return bool(self.values or self.patterns)

    def places(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where a listed value or pattern matches."""
        for value in self.values:
            at = text.find(value)
            while at >= 0:
                yield at, at + len(value)
                at = text.find(value, at + 1)
        for pattern in self.patterns:
            yield from (match.span() for match in pattern.finditer(text) if match.end() > match.start())

    def find(self, view: TextView) -> Iterator[Span]:
        """Yield the matches as findings of type LISTED."""
        return (Span(start, end, "LISTED") for start, end in self.places(view.text))


def make_listed(entries: Iterable[str], purpose: str) -> UserList:
    """Build a list of exact values and, after `re:`, regular expressions.

    `purpose` names the list in errors. Raises ConfigError for an empty entry, an invalid pattern and one that
    matches the empty text.
    """
    values: list[str] = []
    patterns: list[re.Pattern[str]] = []
    for entry in entries:
        if entry.startswith(PATTERN_PREFIX):
            patterns.append(_compile(entry, purpose))
        elif entry.strip():
            values.append(entry)
        else:
            raise ConfigError(
                f"the {purpose} list holds an empty entry", "a value or re:PATTERN", "remove it"
            )
    return UserList(tuple(sorted(set(values), key=lambda v: (-len(v), v))), tuple(patterns))


def _compile(entry: str, purpose: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(entry.removeprefix(PATTERN_PREFIX))
    except re.error as error:
        raise ConfigError(
            f"the {purpose} list holds an invalid pattern {entry!r}: {error}",
            "a Python regular expression behind re:",
            "correct it",
        ) from None
    if pattern.search(""):
        raise ConfigError(
            f"the pattern {entry!r} of the {purpose} list matches the empty text",
            "one that needs at least a character",
            "correct it",
        )
    return pattern
