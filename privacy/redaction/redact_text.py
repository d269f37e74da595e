"""Replace findings in a text by placeholders, until nothing more is found."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tracemill.privacy.core.placeholder_keys import (
    build_keyed_placeholder,
    find_keyed_placeholders,
    hash_with_placeholder_key,
    keyed_user_placeholder,
)
from tracemill.privacy.core.rule import Span
from tracemill.privacy.core.secret_names import secret_name_kind
from tracemill.privacy.redaction.detectors import EVERYTHING, DetectorNeeds
from tracemill.privacy.redaction.python_safe import are_python_safe_spans, is_python
from tracemill.privacy.redaction.redact_json import is_json, is_json_string, may_redact_json, redact_json

_MAX_PASSES = 5
_MAX_DEPTH = 6
_MAX_CACHED = 100_000  # characters of a text whose result is cached: keys, paths, commands and files recur
_MAX_PARSED = 300_000  # characters of a text that is parsed as Python
_PERSONAL = frozenset(("EMAIL", "IP", "MAC", "PHONE", "HOST"))
NO_SECRETS = frozenset(
    (
        *("USER", "EMAIL", "IP", "MAC", "PHONE", "HOST", "PERSON", "CARD", "IBAN", "SSN", "BLOB", "LISTED"),
        *("NATIONAL_ID", "PASSPORT", "BIRTH_DATE", "ADDRESS", "LOCATION"),
        *("PATIENT_ID", "BANK_ACCOUNT", "DEVICE_ID", "VEHICLE"),
    )
)
"""Types of findings that are no secrets."""
_MODULUS = re.compile(r"[\w-]{256,1024}")
"""The public half of an RSA key in JSON (RFC 7517)."""
_ESCAPES = re.compile(r"\\+[nrt]|\s|[\"'+,→]")


class Finder(Protocol):
    """A finder of private spans in a text: `Detectors` or `TakenValues`."""

    def needs(self, text: str) -> DetectorNeeds:
        """Return the detectors that a text needs."""
        ...

    def spans(self, text: str, needs: DetectorNeeds) -> list[Span]:
        """Return all findings, the surest kind first."""
        ...

    def declared(self, text: str, needs: DetectorNeeds) -> Mapping[str, str]:
        """Return the values that names in a JSON text declare private, each with its type."""
        ...

    def is_allowed(self, text: str) -> bool:
        """Tell whether the user allows this whole text."""
        ...


@dataclass(slots=True)
class ScopedTextRedactor:
    """A redactor of the texts of one scope (a trace): same key, same detectors, same placeholders.

    `needs` holds the known needs of some texts. `thorough` runs every detector on every text, which gives the
    same result slowly.
    """

    detectors: Finder
    key: bytes = field(repr=False)
    scope: str
    needs: dict[str, DetectorNeeds] = field(default_factory=dict, repr=False)
    thorough: bool = False
    taken: dict[str, str] = field(default_factory=dict, repr=False)
    """Replaced values except user names, each with the type of its first finding."""
    same: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Texts that are a form of another value, with that value; they get its placeholder."""
    _log: list[str] = field(default_factory=list, repr=False)
    _cache: dict[str, tuple[str, list[str]]] = field(default_factory=dict, repr=False)

    @property
    def findings(self) -> Counter[str]:
        """Count the replaced values by type."""
        return Counter(self._log) if self._log else Counter()

    def digits(self, value: str) -> str:
        """Return the hash digits of a value in this scope."""
        return hash_with_placeholder_key(self.key, self.scope, value)

    def redact(self, text: str, depth: int = 0, within: DetectorNeeds | None = None) -> str:
        """Return the redacted text; the same object where nothing was found.

        `within` is the needs of the text that this is part of, where they suffice.
        """
        if len(text) > _MAX_CACHED:
            return self._redact(text, depth, within)
        if text not in self._cache:
            before = len(self._log)
            new = self._redact(text, depth, within)
            self._cache[text] = new, self._log[before:]
            return new
        new, findings = self._cache[text]
        self._log += findings
        return new

    def needs_of(self, text: str) -> DetectorNeeds:
        """Return the detectors that a text needs."""
        if self.thorough:
            return EVERYTHING
        needs = self.needs.get(text)
        return self.detectors.needs(text) if needs is None else needs

    def _redact(self, text: str, depth: int, within: DetectorNeeds | None) -> str:
        needs = self.needs_of(text) if within is None else within
        if not needs.bits:
            return text
        if depth < _MAX_DEPTH and may_redact_json(text):
            if is_json(text) or is_json_string(text):
                return self.redact_strings(text, depth + 1, needs)
            if text[:1] == "{" and "\n" in text and is_json(text[: text.index("\n")]):
                return self._redact_lines(text, depth + 1)
            if end := _end_of_document(text):
                return self.redact(text[:end], depth) + self.redact(text[end:], depth)
        return self._redact_plain(text, needs)

    def redact_strings(self, text: str, depth: int, needs: DetectorNeeds) -> str:
        """Redact the strings of valid JSON that has these needs."""
        within = needs.of_part()
        declared = self.detectors.declared(text, needs)

        def redact(value: str, name: str) -> str:
            for private, kind in declared.items():
                if private in value and not find_keyed_placeholders(private):
                    value = value.replace(private, self.take(kind, private))
            return self._redact_value(value, name, depth, within)

        return redact_json(text, redact)

    def redact_value(self, value: str, name: str) -> str:
        """Redact a decoded JSON string; `name` is its name by its surroundings, "" without one."""
        return self._redact_value(value, name, 0, None)

    def _redact_value(self, value: str, name: str, depth: int, within: DetectorNeeds | None) -> str:
        if name == "n" and _MODULUS.fullmatch(value):
            return value
        kind = secret_name_kind(name.lstrip("-"), value, True) if name else None
        if kind and not find_keyed_placeholders(value) and not self.detectors.is_allowed(value):
            kind = self._format_of(value) or kind
            self._log.append(kind)
            return self._stand_in(kind, value, bare=False)
        return self.redact(value, depth, within)

    def _redact_lines(self, text: str, depth: int) -> str:
        lines = text.splitlines(keepends=True)
        new = [self.redact(line, depth) for line in lines]
        return text if new == lines else "".join(new)

    def _redact_plain(self, text: str, needs: DetectorNeeds) -> str:
        for _ in range(_MAX_PASSES):
            spans = resolve_redacted_spans(text, self.detectors.spans(text, needs)) if needs.bits else []
            if not spans:
                return text
            self._log += [span.kind for span in spans]
            text = self._replace(text, spans)
            if all(span.kind == "USER" for span in spans):
                return text
            needs = EVERYTHING if self.thorough else self.detectors.needs(text)
        return text

    def _replace(self, text: str, spans: list[Span]) -> str:
        new = self._substitute(text, spans, bare=False)
        private = [span for span in spans if span.kind != "USER"]
        if not private or len(text) > _MAX_PARSED or are_python_safe_spans(text, private):
            return new
        if not is_python(text) or is_python(new):
            return new
        spans = [_without_open_escape(text, span) for span in spans]
        named = self._substitute(text, spans, bare=True)
        if is_python(named):
            return named
        sure = [span for span in spans if span.kind not in _PERSONAL]
        kept = self._substitute(text, sure, bare=True)
        return kept if sure and is_python(kept) else named

    def _substitute(self, text: str, spans: list[Span], *, bare: bool) -> str:
        pieces: list[str] = []
        done = 0
        for span in spans:
            pieces += (
                text[done : span.start],
                self._stand_in(span.kind, text[span.start : span.end], bare=bare),
            )
            done = span.end
        return "".join((*pieces, text[done:]))

    def _stand_in(self, kind: str, value: str, *, bare: bool) -> str:
        if kind == "USER":
            return keyed_user_placeholder(self.key, self.scope, value)
        value = self.same.get(value, value)
        if kind in NO_SECRETS:
            self.taken.setdefault(value, kind)
        elif (known := self.taken.get(value)) in NO_SECRETS or known is None:
            self.taken[value] = kind
        else:
            kind = known
        plain = _ESCAPES.sub("", value) if kind == "PRIVATE_KEY" else value
        digits = hash_with_placeholder_key(self.key, self.scope, plain)
        return build_keyed_placeholder(f"{kind}_{len(value)}" if kind == "BLOB" else kind, digits, bare=bare)

    def _format_of(self, value: str) -> str:
        """Return the type of a whole value by its own form, "" where it has none.

        What a JSON text needs is what its strings need, so it is read by every detector.
        """
        needs = EVERYTHING if may_redact_json(value) else self.needs_of(value)
        spans = self.detectors.spans(value, needs) if needs.bits else []
        return next((kind for start, end, kind in spans if end - start == len(value)), "")

    def placeholder(self, value: str) -> str:
        """Return the placeholder of a replaced value."""
        return self._stand_in(self.taken[value], value, bare=False)

    def take(self, kind: str, value: str) -> str:
        """Replace a value found by its surroundings; return its placeholder."""
        kind = (self._format_of(value) or kind) if kind == "SECRET" else kind
        self._log.append(kind)
        return self._stand_in(kind, value, bare=False)


def _end_of_document(text: str) -> int:
    """Return where a JSON document ends that more lines follow, such as those of a harness; 0 without one."""
    end = max(text.rfind("\n}\n"), text.rfind("\n]\n")) + 2
    return end if end > 1 and is_json(text[:end]) else 0


def _without_open_escape(text: str, span: Span) -> Span:
    """Return a span without the backslash that escapes the quote behind it."""
    escapes = text[span.end - 1] == "\\" and text[span.end : span.end + 1] in ("'", '"')
    return span._replace(end=span.end - 1) if escapes else span


def resolve_redacted_spans(text: str, spans: list[Span]) -> list[Span]:
    """Return spans in order and disjoint.

    Overlapping spans are joined and keep the type found first in the list. Spans that touch a placeholder are
    dropped, except private keys.
    """
    fixed = find_keyed_placeholders(text) if spans else []
    ranked = [
        (span, rank)
        for rank, span in enumerate(spans)
        if span.end > span.start
        and (span.kind == "PRIVATE_KEY" or not any(s < span.end and span.start < e for s, e in fixed))
    ]
    joined: list[tuple[Span, int]] = []
    for span, rank in sorted(ranked):
        if joined and span.start < joined[-1][0].end:
            last, last_rank = joined[-1]
            kind = last.kind if last_rank <= rank else span.kind
            joined[-1] = (Span(last.start, max(last.end, span.end), kind), min(rank, last_rank))
        else:
            joined.append((span, rank))
    return [span for span, _ in joined]


def redact_arguments(redactor: ScopedTextRedactor, arguments: str) -> str:
    """Redact the arguments of a tool call: string by string where they are JSON, else as text."""
    needs = redactor.needs_of(arguments)
    if not needs.bits:
        return arguments
    if is_json(arguments):
        return redactor.redact_strings(arguments, 1, needs)
    try:
        json.loads(arguments)
    except (ValueError, RecursionError):
        return redactor.redact(arguments)
    return redactor.redact_strings(arguments, 1, needs) if is_json_string(arguments) else arguments
