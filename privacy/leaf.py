"""One text: found spans made into placeholders, again until nothing more is found."""

import ast
import json
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from privacy import contexts, personal
from privacy.formats import TOKENS
from privacy.identity import Known, distinctive, find_exact, find_homes, find_odd_homes, find_words
from privacy.placeholders import keyed_hash, placeholder, placeholders_in, user_placeholder
from privacy.rules import Span, View, any_literal, rules_by_literal
from privacy.walk import is_json, redact_json

_MAX_PASSES = 5
_MAX_DEPTH = 6
_MAX_CACHED = 256  # characters of a text whose result is kept: keys, paths, short commands recur
_MAX_PARSED = 300_000  # characters of a text that is tried as Python
_PERSONAL = frozenset(("EMAIL", "IP", "MAC", "PHONE", "HOST"))
_ANY_TOKEN = any_literal(TOKENS)
_RULES_OF = rules_by_literal(TOKENS)
_DETECTORS = (*contexts.DETECTORS, *personal.DETECTORS)
_TRIGGERS = [(literal, rank) for rank, each in enumerate(_DETECTORS) for literal in each.literals]
_ALWAYS = frozenset(rank for rank, each in enumerate(_DETECTORS) if not each.literals)
_ESCAPES = re.compile(r"\\+[nrt]|\s|[\"'+,→]")


@dataclass(slots=True)
class LeafRedactor:
    """Redacts texts of one scope (a trace): same key, same known values, same placeholders.

    `findings` counts what was replaced, by type. `names` are user names to find outside paths too.
    """

    known: Known
    key: bytes = field(repr=False)
    scope: str
    names: tuple[str, ...] = field(default=(), repr=False)
    findings: Counter[str] = field(default_factory=Counter)
    _cache: dict[str, tuple[str, Counter[str]]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.names = distinctive((*self.names, *self.known.names))

    def redact(self, text: str, depth: int = 0) -> str:
        """The text without what is private; the same object where nothing was found."""
        if len(text) > _MAX_CACHED:
            return self._redact(text, depth)
        if text not in self._cache:
            before = self.findings
            self.findings = Counter()
            self._cache[text] = (self._redact(text, depth), self.findings)
            self.findings = before
        new, findings = self._cache[text]
        if findings:
            self.findings.update(findings)
        return new

    def _redact(self, text: str, depth: int) -> str:
        if text[:1] in "{[ \n" and depth < _MAX_DEPTH:
            if is_json(text):
                return redact_json(text, lambda value, name: self.redact_value(value, name, depth + 1))
            if text[:1] == "{" and "\n" in text and is_json(text[: text.index("\n")]):
                return self._redact_lines(text, depth + 1)
        return self._redact_plain(text)

    def redact_value(self, value: str, name: str, depth: int = 0) -> str:
        """A decoded JSON string; `name` is what its surroundings call it, "" where they do not."""
        if name and not placeholders_in(value) and (kind := contexts.secret_kind(name.lstrip("-"), value)):
            formats = [span for span in self._spans(View(value)) if span.end - span.start == len(value)]
            kind = formats[0].kind if formats else kind
            self.findings[kind] += 1
            return self._stand_in(kind, value, bare=False)
        return self.redact(value, depth)

    def _redact_lines(self, text: str, depth: int) -> str:
        lines = text.splitlines(keepends=True)
        new = [self.redact(line, depth) for line in lines]
        return text if new == lines else "".join(new)

    def _redact_plain(self, text: str) -> str:
        for _ in range(_MAX_PASSES):
            spans = resolve(text, self._spans(View(text)))
            if not spans:
                return text
            self.findings.update(span.kind for span in spans)
            text = self._replace(text, spans)
            if all(span.kind == "USER" for span in spans):
                return text
        return text

    def _spans(self, view: View) -> list[Span]:
        """Everything found, the surest kind first."""
        found: list[Span] = []
        if self.known.secrets:
            found += find_exact(view, self.known.secrets)
        found += find_tokens(view)
        if found:
            found += contexts.find_aws_secrets(view, [span for span in found if span.kind == "AWS_KEY_ID"])
        low = view.low
        active = {rank for literal, rank in _TRIGGERS if literal in low}
        for rank in sorted(active | _ALWAYS):
            found += _DETECTORS[rank].find(view)
        if b"/home/" in low or b"users" in low or b"-home-" in low:
            found += find_homes(view, self.names)
        if self.known.homes:
            found += find_odd_homes(view, self.known.homes)
        if self.known.hosts:
            found += find_words(view, self.known.hosts, "HOST")
        if self.names:
            found += find_words(view, self.names, "USER")
        return found

    def _replace(self, text: str, spans: list[Span]) -> str:
        new = self._substitute(text, spans, bare=False)
        private = [span for span in spans if span.kind != "USER"]
        if not private or len(text) > _MAX_PARSED or is_python(new) or not is_python(text):
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


def find_tokens(view: View) -> Iterator[Span]:
    """Tokens of known formats, looked for around the long runs of the text."""
    for start, end in view.regions():
        ranks: set[int] = set()
        hit = _ANY_TOKEN.search(view.raw, start, end)
        while hit:
            ranks.update(_RULES_OF[hit[0]])
            hit = _ANY_TOKEN.search(view.raw, hit.start() + 1, end)
        for rank in sorted(ranks):
            yield from TOKENS[rank].find(view.text, start, end)


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
    if is_json(arguments):
        return redact_json(arguments, lambda value, name: redactor.redact_value(value, name, 1))
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return redactor.redact(arguments)
    if not isinstance(value, str):
        return arguments
    return redact_json(arguments, lambda text, name: redactor.redact_value(text, name, 1))
