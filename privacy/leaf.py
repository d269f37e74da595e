"""One text: found spans made into placeholders, again until nothing more is found."""

import ast
import json
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from privacy import contexts
from privacy.detectors import EVERYTHING, Detectors, Needs
from privacy.placeholders import keyed_hash, placeholder, placeholders_in, user_placeholder
from privacy.rules import Span, View
from privacy.walk import is_json, redact_json

_MAX_PASSES = 5
_MAX_DEPTH = 6
_MAX_CACHED = 4096  # characters of a text whose result is kept: keys, paths, commands recur
_MAX_PARSED = 300_000  # characters of a text that is tried as Python
_PERSONAL = frozenset(("EMAIL", "IP", "MAC", "PHONE", "HOST"))
_ESCAPES = re.compile(r"\\+[nrt]|\s|[\"'+,→]")
_OPAQUE = ("\\u", "\\/")  # escapes behind which JSON can hide a character that it need not escape


@dataclass(slots=True)
class LeafRedactor:
    """Redacts texts of one scope (a trace): same key, same detectors, same placeholders.

    `needs` holds what is known beforehand of some texts;
    `thorough` puts every text to every detector, which gives the same result slowly.
    """

    detectors: Detectors
    key: bytes = field(repr=False)
    scope: str
    needs: dict[str, Needs] = field(default_factory=dict, repr=False)
    thorough: bool = False
    _log: list[str] = field(default_factory=list, repr=False)
    _cache: dict[str, tuple[str, list[str]]] = field(default_factory=dict, repr=False)

    @property
    def findings(self) -> Counter[str]:
        """What was replaced, by type."""
        return Counter(self._log)

    def redact(self, text: str, depth: int = 0) -> str:
        """The text without what is private; the same object where nothing was found."""
        needs = self.needs.get(text)
        if needs and not needs.bits and not self.hides(text):
            return text
        if len(text) > _MAX_CACHED:
            return self._redact(text, depth)
        if text not in self._cache:
            before = len(self._log)
            new = self._redact(text, depth)
            self._cache[text] = new, self._log[before:]
            return new
        new, findings = self._cache[text]
        self._log += findings
        return new

    def hides(self, text: str) -> bool:
        """The text may be JSON whose strings hold more than can be seen."""
        return text[:1] in '{[ \n"' and any(escape in text for escape in _OPAQUE)

    def prepare(self, values: Sequence[str]) -> None:
        """Look at many texts at once, before each is redacted."""
        if not self.thorough:
            fresh = [value for value in values if value not in self.needs]
            self.needs.update(zip(fresh, self.detectors.needs(fresh), strict=True))

    def _redact(self, text: str, depth: int) -> str:
        if text[:1] in "{[ \n" and depth < _MAX_DEPTH:
            if is_json(text):
                return self.redact_strings(text, depth + 1)
            if text[:1] == "{" and "\n" in text and is_json(text[: text.index("\n")]):
                return self._redact_lines(text, depth + 1)
        return self._redact_plain(text)

    def redact_strings(self, text: str, depth: int) -> str:
        """Valid JSON with its strings redacted; none needs a detector that the whole text does not."""
        whole = self.needs.get(text)
        if whole and not self.hides(text):
            rough = whole.of_part()

            def prepare(values: Sequence[str]) -> None:
                for value in values:
                    self.needs.setdefault(value, rough)
        else:
            prepare = self.prepare
        return redact_json(text, lambda value, name: self.redact_value(value, name, depth), prepare)

    def redact_value(self, value: str, name: str, depth: int = 0) -> str:
        """A decoded JSON string; `name` is what its surroundings call it, "" where they do not."""
        kind = contexts.secret_kind(name.lstrip("-"), value, True) if name else None
        if kind and not placeholders_in(value) and not self.detectors.is_allowed(value):
            formats = [s for s in self.detectors.spans(value, EVERYTHING) if s.end - s.start == len(value)]
            kind = formats[0].kind if formats else kind
            self._log.append(kind)
            return self._stand_in(kind, value, bare=False)
        return self.redact(value, depth)

    def _redact_lines(self, text: str, depth: int) -> str:
        lines = text.splitlines(keepends=True)
        new = [self.redact(line, depth) for line in lines]
        return text if new == lines else "".join(new)

    def _redact_plain(self, text: str) -> str:
        needs = self.needs.get(text)
        for _ in range(_MAX_PASSES):
            if self.thorough:
                needs = EVERYTHING
            elif needs is None:
                needs = self.detectors.needs_of(View(text))
            spans = resolve(text, self.detectors.spans(text, needs)) if needs.bits else []
            if not spans:
                return text
            self._log += [span.kind for span in spans]
            text, needs = self._replace(text, spans), None
            if all(span.kind == "USER" for span in spans):
                return text
        return text

    def _replace(self, text: str, spans: list[Span]) -> str:
        new = self._substitute(text, spans, bare=False)
        private = [span for span in spans if span.kind != "USER"]
        if not private or len(text) > _MAX_PARSED or all(_is_inert(text, span) for span in private):
            return new
        if is_python(new) or not is_python(text):
            return new
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
            return user_placeholder(self.key, self.scope, value)
        plain = _ESCAPES.sub("", value) if kind == "PRIVATE_KEY" else value
        digits = keyed_hash(self.key, self.scope, plain)
        return placeholder(f"{kind}_{len(value)}" if kind == "BLOB" else kind, digits, bare=bare)


def _is_inert(text: str, span: Span) -> bool:
    """A placeholder here cannot end Python that parses: behind a `#`, between two quotes alike, between
    `<` and `>` (where code stays code), or for words in capitals side by side, which are no code."""
    before, after = text[span.start - 1 : span.start] if span.start else "", text[span.end : span.end + 1]
    if before in ("'", '"'):
        return after == before
    if before == "<" and after == ">":
        return True
    words = text[span.start : span.end].split(" ")
    if span.kind == "PERSON" and len(words) > 1 and all(word[:1].isupper() for word in words):
        return True
    line = text[text.rfind("\n", 0, span.start) + 1 : span.start]
    return line.lstrip()[:1] == "#"


def resolve(text: str, spans: list[Span]) -> list[Span]:
    """Spans in order and apart: overlapping ones are joined and keep the type found first in the list;
    those that touch a placeholder are dropped, unless a private key lies around it."""
    fixed = placeholders_in(text) if spans else []
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


def is_python(text: str) -> bool:
    """The text parses as a Python module."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def redact_arguments(redactor: LeafRedactor, arguments: str) -> str:
    """Arguments of a tool call: leaf by leaf where they are JSON, as text where they are not."""
    needs = redactor.needs.get(arguments)
    if needs and not needs.bits and not redactor.hides(arguments):
        return arguments
    if is_json(arguments):
        return redactor.redact_strings(arguments, 1)
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return redactor.redact(arguments)
    if not isinstance(value, str):
        return arguments
    return redactor.redact_strings(arguments, 1)
