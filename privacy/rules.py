"""The shape of a rule, and the text it is put to.

A pattern costs about a hundred times what a search for a literal costs. So a rule names literals of
which one must occur before its pattern runs, and most token formats are only looked for around *long
runs* (twenty letters, digits, `_` or `-` in a row), which are a small part of any text: no token of
the table has none. Long runs are found by mapping every byte to its class and searching twenty of a kind.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

RUN = 20
# Left edge of a token: no letter or digit before it, unless that ends an escape (`\n`, ANSI `\x1b[32m`,
# `%3D`), which text inside text brings along.
LEFT = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\dm)|(?<=%[0-9A-F]{2})|(?<=u00[0-9a-f]{2}))"
_TOKEN_CLASS = bytes(
    ord("x") if byte < 128 and (chr(byte).isalnum() or chr(byte) in "_-") else ord(" ") for byte in range(256)
)
_DIGITS = bytes(ord("0") if 48 <= byte <= 57 else byte for byte in range(256))
_LONG = b"x" * RUN
_REACH_LEFT = 200  # characters; room for the address or the prefix before a run
_REACH_RIGHT = 8192
_UNBROKEN = re.compile(r"[^\s\"'<>]*")
_BREAKS = b" \n\"'\t<>"
_BROKEN = bytes(ord(" ") if byte in _BREAKS else ord("x") for byte in range(256))


class Span(NamedTuple):
    """Where something private stands, and of which type."""

    start: int
    end: int
    kind: str


class Detector(NamedTuple):
    """A way of finding spans, run where one of its lower-case literals occurs in `View.low`; with none,
    always."""

    find: Callable[["View"], Iterator[Span]]
    literals: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """A format: `pattern` is tried where one of `literals` occurs; group `v`, if any, is the private
    part; `check` has the last word on it. `prefixed`: a match begins with one of the literals."""

    kind: str
    literals: tuple[str, ...]
    pattern: re.Pattern[str]
    check: Callable[[str], bool] | None = None
    prefixed: bool = False

    def find(self, text: str, start: int, end: int) -> Iterator[Span]:
        """Every place in `text[start:end]` where the rule holds."""
        group = "v" if "v" in self.pattern.groupindex else 0
        for match in self._matches(text, start, end):
            if self.check is None or self.check(match[group]):
                yield Span(*match.span(group), self.kind)

    def _matches(self, text: str, start: int, end: int) -> Iterator[re.Match[str]]:
        if not self.prefixed:
            yield from self.pattern.finditer(text, start, end)
            return
        for literal in self.literals:
            at = text.find(literal, start, end)
            while at >= 0:
                match = self.pattern.match(text, at, end)
                if match:
                    yield match
                at = text.find(literal, match.end() if match else at + 1, end)


def any_literal(rules: Iterable[Rule]) -> re.Pattern[bytes]:
    """One pattern that matches where any literal of the rules occurs, the shortest where several begin
    there: a tree by first characters, ten times as fast as one search a literal."""
    tree: dict[str, dict] = {}
    for literal in (literal for each in rules for literal in each.literals):
        branch = tree
        for character in literal:
            branch = branch.setdefault(character, {})
        branch[""] = {}
    return re.compile(_branches(tree).encode("ascii"))


def rules_by_literal(rules: Sequence[Rule]) -> dict[bytes, frozenset[int]]:
    """For each literal that `any_literal` may match, the ranks of the rules it may stand for: those that
    name it, and those that name a longer literal beginning with it."""
    ranked = [(literal, rank) for rank, each in enumerate(rules) for literal in each.literals]
    return {
        short.encode("ascii"): frozenset(rank for literal, rank in ranked if literal.startswith(short))
        for short, _ in ranked
    }


def _branches(tree: dict[str, dict]) -> str:
    if "" in tree:
        return ""
    parts = [re.escape(character) + _branches(branch) for character, branch in sorted(tree.items())]
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"


def rule(kind: str, literals: str, pattern: str, check: Callable[[str], bool] | None = None) -> Rule:
    """A rule whose literals are given in one string, apart by blanks; `\\<` in the pattern is LEFT."""
    compiled = re.compile(pattern.replace(r"\<", LEFT))
    return Rule(kind, tuple(literals.split()), compiled, check, prefixed=pattern.startswith(r"\<"))


class View:
    """A text with what every prefilter needs of it; one byte a character, so that positions agree.

    `raw`: Latin-1, `?` for what is not; `low`: in lower case; `digits`: every digit a 0.
    """

    __slots__ = ("digits", "low", "raw", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.raw = text.encode("latin-1", "replace")
        self.low = self.raw.lower()
        self.digits = self.raw.translate(_DIGITS)

    def positions(self, literal: bytes) -> Sequence[int]:
        """Where a lower-case literal occurs, whatever the case of the text."""
        at = self.low.find(literal)
        if at < 0:
            return ()
        found: list[int] = []
        while at >= 0:
            found.append(at)
            at = self.low.find(literal, at + len(literal))
        return found

    def regions(self) -> list[tuple[int, int]]:
        """The surroundings of the long runs, merged where they touch; left out are those with neither a
        digit nor a capital, which are paths and identifiers."""
        classes = self.raw.translate(_TOKEN_CLASS)
        at = classes.find(_LONG)
        if at < 0:
            return []
        found: list[tuple[int, int]] = []
        broken = self.raw.translate(_BROKEN)
        while at >= 0:
            left = max(0, at - _REACH_LEFT)
            start = max(left, broken.rfind(b" ", left, at) + 1)
            match = _UNBROKEN.match(self.text, at, min(len(self.text), at + _REACH_RIGHT))
            end = match.end() if match else at + RUN
            if found and start <= found[-1][1]:
                found[-1] = (found[-1][0], end)
            elif b"0" in self.digits[start:end] or self.raw[start:end] != self.low[start:end]:
                found.append((start, end))
            at = classes.find(_LONG, end)
        return found
