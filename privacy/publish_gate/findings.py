"""Findings without their values: place, rule, masked excerpt, fingerprint."""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from tracemill.privacy.core.placeholder_keys import find_keyed_placeholders
from tracemill.privacy.core.rule import Span
from tracemill.privacy.publish_gate.decoded_texts import DecodedText, TextLocation, Trail, decoded_text_column

FINGERPRINT = re.compile(r"[0-9a-f]{12}")
_BEFORE, _AFTER, _MARGIN = 32, 20, 200  # characters shown, and read around them so that no word is cut
_RUN = re.compile(r"[A-Za-z0-9_+.~-]{12,}")
_BLANK = re.compile(r"\s+")
_REMAINDER = 8  # letters and digits beside a placeholder that may be private themselves


@dataclass(frozen=True, slots=True)
class Finding:
    """A private value in one text.

    `times` counts the places that hold the same text, `row` counts from 0, `line` from 1, `opinions` names
    the scanners that found it.
    """

    file: str
    row: int | None
    line: int | None
    column: str
    rule: str
    opinions: tuple[str, ...]
    excerpt: str
    fingerprint: str
    times: int

    def where(self) -> str:
        """Return the place, as in `data/dpo/train.parquet row 3 prompt[0].content`."""
        parts = [self.file]
        if self.row is not None:
            parts.append(f"row {self.row}")
        if self.line is not None:
            parts.append(f"line {self.line}")
        return " ".join([*parts, self.column]).rstrip()

    def text(self) -> str:
        """Return one line: fingerprint, place, rule, excerpt."""
        times = f" ({self.times:,} places)" if self.times > 1 else ""
        return f"{self.fingerprint}  {self.where()}{times}: {self.rule}: {self.excerpt}"

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return asdict(self)


def summarize_findings(findings: Collection[Finding]) -> str:
    """Return a count, as in `2 private values in 17 places`."""
    values = len({found.fingerprint for found in findings})
    places = sum(found.times for found in findings)
    plural = ("value" if values == 1 else "values", "place" if places == 1 else "places")
    return f"{values:,} private {plural[0]} in {places:,} {plural[1]}"


def fingerprint_finding(key: bytes, rule: str, value: str) -> str:
    """Return twelve hex digits for a rule and a value; computing them needs the key."""
    state = hashlib.blake2b(key=key[:64], digest_size=6, person=b"gate")
    state.update(rule.encode() + b"\0" + value.encode("utf-8", "surrogatepass"))
    return state.hexdigest()


class FoundValue(NamedTuple):
    """A finding with its value: never shown or stored, only turned into a `Finding`."""

    leaf: DecodedText
    place: TextLocation
    span: Span
    value: str
    opinions: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Found({self.span.kind})"

    def told(
        self, key: bytes, others: Iterable[Span], times: int, shown: Callable[[str], str] = str
    ) -> Finding:
        """Return the finding without its value.

        `others` are spans of the text that its excerpt must hide too, and `shown` masks private parts of
        names of files and columns.
        """
        column, line = _column_name(_shown_trail(self.leaf.trail, shown)), self.place.line
        if line is not None and not column:
            line += self.leaf.text.count("\n", 0, self.span.start)
        return Finding(
            file=shown(self.place.file),
            row=self.place.row,
            line=line,
            column=column,
            rule=self.span.kind,
            opinions=self.opinions,
            excerpt=mask_finding_excerpt(self.leaf.text, self.span, others),
            fingerprint=fingerprint_finding(key, self.span.kind, self.value),
            times=times,
        )


def mask_finding_excerpt(text: str, span: Span, others: Iterable[Span] = ()) -> str:
    """Return the surroundings of a span as one line, with it, `others` and long words masked."""
    low, high = max(0, span.start - _BEFORE), min(len(text), span.end + _AFTER)
    pieces, at, bound = ["..." if low else ""], low, max(0, low - _MARGIN)
    for start, end, kind in _apart([*others, span]):
        if end <= low or start >= high:
            bound = max(bound, end) if end <= low else bound
            continue
        pieces += (_without_runs(text, at, start, bound, start), f"[{kind}, {end - start} characters]")
        at = bound = max(at, end)
    pieces += (_without_runs(text, at, high, bound, high + _MARGIN), "..." if high < len(text) else "")
    return _BLANK.sub(" ", "".join(pieces)).strip()


def _apart(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for span in sorted(spans):
        if joined and span.start < joined[-1].end:
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, span.end), joined[-1].kind)
        else:
            joined.append(span)
    return joined


def _without_runs(text: str, low: int, high: int, first: int, last: int) -> str:
    """Return `text[low:high]` with long words masked; a word may reach from `first` to `last`."""
    part = text[first:last]
    fixed = find_keyed_placeholders(part)

    def masked(run: re.Match[str]) -> str:
        plain = any(s < run.end() and run.start() < e for s, e in fixed)
        return run[0] if plain or not any(c.isdigit() for c in run[0]) else "*" * len(run[0])

    return _RUN.sub(masked, part)[low - first : max(low, high) - first]


def finding_value_spans(text: str, rule: str, value: str) -> list[Span]:
    """Return where a value stands in a text, except in one of our placeholders."""
    fixed = find_keyed_placeholders(text)
    found: list[Span] = []
    at = text.find(value) if value else -1
    while at >= 0:
        end = at + len(value)
        rest = "".join(
            text[i] for i in range(at, min(end, at + 4096)) if not any(s <= i < e for s, e in fixed)
        )
        touched = any(s < end and at < e for s, e in fixed)
        if not touched or sum(c.isalnum() for c in rest) >= _REMAINDER:
            found.append(Span(at, end, rule))
        at = text.find(value, end)
    return found


def is_same(ours: str, theirs: str) -> bool:
    """Tell whether kingfisher's value is the one our rules found: inside it, or not much longer."""
    return theirs in ours or (ours in theirs and 2 * len(ours) >= len(theirs))


def _shown_trail(trail: Trail, shown: Callable[[str], str]) -> Trail:
    keys: list[str | int] = []
    while trail is not None:
        trail, key = trail
        keys.append(shown(key) if isinstance(key, str) else key)
    for key in reversed(keys):
        trail = (trail, key)
    return trail


def _column_name(trail: Trail) -> str:
    """Return the column as text; a long one is cut."""
    name = decoded_text_column(trail)
    return name if len(name) <= 120 else f"{name[:117]}..."
