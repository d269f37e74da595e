"""The shape of a rule, and the text it is put to.

A pattern costs about a hundred times what a search for a literal costs. So a rule names literals of
which one must occur before its pattern runs, and most token formats are only looked for around *long
runs* (twenty letters, digits, `_` or `-` in a row), which are a small part of any text: no token of
the table has none. Long runs are found by mapping every byte to its class and searching twenty of a kind.
"""

import re
import string
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

RUN = 20
# Left edge of a token: no letter or digit before it, unless that ends an escape (`\n`, ANSI `\x1b[32m`,
# `%3D`), which text inside text brings along.
LEFT = (
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\dm)|(?<=%[0-9A-F]{2})"
    r"|(?<=\\u[0-9a-fA-F]{4})|(?<=\\x[0-9a-fA-F]{2}))"
)


def _table(mark: str, characters: str, keep: bool = True) -> bytes:
    """A byte map: `mark` for the characters, else the byte itself, or a blank."""
    chosen = frozenset(characters.encode("ascii"))
    return bytes(ord(mark) if byte in chosen else byte if keep else ord(" ") for byte in range(256))


_ALNUM = string.ascii_letters + string.digits
_TABLES = {
    "fold": bytes(ord("0") if 48 <= byte <= 57 else bytes((byte,)).lower()[0] for byte in range(256)),
    "hexes": _table("h", string.hexdigits),
    "runs": _table("x", _ALNUM + "_-", keep=False),
    "data": _table("x", _ALNUM + "+/=_-"),
    "breaks": _table(" ", " \n\r\v\f\"'\t<>"),
}
_LONG = b"x" * RUN
_REACH_LEFT = 200  # characters; room for the address or the prefix before a run
_REACH_RIGHT = 8192
_STRONG = re.compile(rb"[0-9A-Z]")


class Span(NamedTuple):
    """Where something private stands, and of which type."""

    start: int
    end: int
    kind: str


Anchor = tuple[str, bytes]
"""A plane of the text (`View.plane`) and a literal that must occur in it."""


class Detector(NamedTuple):
    """A way of finding spans, run where one of its anchors occurs; `on` makes them."""

    find: Callable[["View"], Iterator[Span]]
    anchors: tuple[Anchor, ...]


def on(find: Callable[["View"], Iterator[Span]], *literals: bytes, plane: str = "fold") -> Detector:
    """A detector run where one of the literals occurs in the plane."""
    return Detector(find, tuple((plane, literal) for literal in literals))


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

    Planes, each made when first asked for: `raw` is Latin-1 with `?` for what is not; `fold` is in lower
    case with every digit a 0; in `hexes` every hex digit is an h; in `runs` and `data` the characters of
    tokens and of Base64 are an x; in `breaks` what ends a word is a blank.
    """

    __slots__ = ("_found", "_known", "_only", "_planes", "raw", "text")

    def __init__(
        self,
        text: str,
        found: dict[bytes, list[int]] | None = None,
        only: Collection[bytes] | None = None,
    ) -> None:
        """`found`: where the anchors of the folded plane stand, all that occur; `only`: those that may
        occur at all."""
        self.text = text
        self.raw = text.encode("latin-1", "replace")
        self._planes: dict[str, bytes] = {}
        self._known = found
        self._only = only
        self._found: dict[Anchor, list[int]] = {}

    def plane(self, name: str) -> bytes:
        """One of the planes."""
        if name not in self._planes:
            self._planes[name] = self.raw.translate(_TABLES[name])
        return self._planes[name]

    def positions(self, literal: bytes, plane: str = "fold") -> Sequence[int]:
        """Where an anchor of a detector occurs in a plane."""
        if self._known is not None and plane == "fold":
            return self._known.get(literal, ())
        if self._only is not None and plane == "fold" and literal not in self._only:
            return ()
        anchor = (plane, literal)
        if anchor not in self._found:
            self._found[anchor] = list(_positions(self.plane(plane), literal))
        return self._found[anchor]

    def regions(self) -> list[tuple[int, int]]:
        """The surroundings of the long runs, merged where they touch; left out are runs with neither a
        digit nor a capital, which are paths and identifiers."""
        classes, raw = self.plane("runs"), self.raw
        at = classes.find(_LONG)
        if at < 0:
            return []
        found: list[tuple[int, int]] = []
        broken, size = self.plane("breaks"), len(raw)
        while at >= 0:
            end = classes.find(b" ", at + RUN)
            end = size if end < 0 else end
            if _STRONG.search(raw, at, end):
                left = max(0, at - _REACH_LEFT)
                start = max(left, broken.rfind(b" ", left, at) + 1)
                edge = broken.find(b" ", end, at + _REACH_RIGHT)
                end = edge if edge >= 0 else max(end, min(size, at + _REACH_RIGHT))
                if found and start <= found[-1][1]:
                    found[-1] = (found[-1][0], end)
                else:
                    found.append((start, end))
            at = classes.find(_LONG, end)
        return found


def _positions(plane: bytes, literal: bytes) -> Iterator[int]:
    at = plane.find(literal)
    while at >= 0:
        yield at
        at = plane.find(literal, at + len(literal))


_ESCAPE = re.compile(r"x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[a-zA-Z]")


def after_escape(text: str, start: int) -> int:
    """`start`, or the end of the escape (`\\n`, `\\x1f`) that a word beginning there begins with."""
    if text[start - 1 : start] == "\\" and start and (match := _ESCAPE.match(text, start)):
        return match.end()
    return start


def fold(value: str) -> bytes:
    """A value as the folded plane shows it."""
    return View(value).plane("fold")


def near(
    literal: bytes, pattern: re.Pattern[str], kind: str, check: Callable[[str], bool], back: int = 0
) -> Detector:
    """A detector: at each literal, `pattern` matched there, or searched from `back` characters before it."""

    def find(view: View) -> Iterator[Span]:
        for at in view.positions(literal):
            start = max(0, at - back)
            found = pattern.search(view.text, start, at + 300) if back else pattern.match(view.text, at)
            if found and check(found["v"]):
                yield Span(*found.span("v"), kind)

    return on(find, literal)
