"""Define rules and detectors, and the view of a text that they search.

A detector searches literals and checks what stands there. Its probes are patterns that tell, for all
detectors in one pass (`prefilter.py`), whether a text can hold anything for it. Most texts need no detector.

Most token formats are searched only around long runs (twenty letters, digits, `_` or `-` in a row), which
are a small part of any text; every token of the table has one. Long runs are found by mapping every byte
to its class and searching twenty of a kind.
"""

import re
import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from tracemill.privacy.core.lazy_pattern import LazyPattern

T = TypeVar("T")
RUN = 20
REACH = 256
"""Characters from the start of what a located detector finds to the end of its probe."""
# Left edge of a token: no letter or digit before it, unless that ends an escape (`\n`, ANSI `\x1b[32m`,
# `%3D`) of text inside text.
LEFT = (
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=\dm)|(?<=%[0-9A-F]{2})"
    r"|(?<=\\u[0-9a-fA-F]{4})|(?<=\\x[0-9a-fA-F]{2}))"
)


UUID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
"""The pattern of a UUID."""


def build_rule_pattern(pattern: str) -> LazyPattern[str]:
    """Build a pattern whose classes (`\\w`, `\\d`, `\\s`, letters in any case) are those of ASCII."""
    return LazyPattern(pattern, re.ASCII)


def build_words_pattern(words: Iterable[bytes]) -> bytes:
    """Build a pattern of words by their first letters, `(?:ab(?:c|d))`, that prefers the longer match.

    It is searched several times as fast as `abc|abd`.
    """
    following: dict[bytes, set[bytes]] = {}
    for word in words:
        following.setdefault(word[:1], set()).add(word[1:])
    if set(following) == {b""}:
        return b""
    branches = [
        re.escape(first) + build_words_pattern(rest) for first, rest in sorted(following.items()) if first
    ]
    whole = b"|".join(branches)
    return b"(?:" + whole + (b")?" if b"" in following else b")")


def _table(mark: str, characters: str, keep: bool = True) -> bytes:
    """Build a byte map: `mark` for the characters, else the byte itself, or a blank."""
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
_NO_RUN = re.compile(rb"[^x]")


class Span(NamedTuple):
    """Start, end and type of something private."""

    start: int
    end: int
    kind: str


class ProbeEnd(NamedTuple):
    """An end of a match of a located detector's probe, and the bits of the detectors that share the probe."""

    end: int
    bits: int


class Detector(NamedTuple):
    """A function that finds spans, and its probes: one of them matches wherever it finds something.

    Probes run on `TextView.raw`, so `?` is not among the characters that their patterns exclude. They hold
    for a part of a text as for the whole, so they require nothing at its edges.
    """

    find: Callable[["TextView"], Iterator[Span]]
    probes: tuple[str, ...]
    located: bool = False
    """Whether the detector asks where its probes matched (`TextView.near`)."""


def make_probed_detector(
    find: Callable[["TextView"], Iterator[Span]], *probes: str, located: bool = False
) -> Detector:
    """Build a detector that runs where one of the probes matches."""
    return Detector(find, probes, located)


@dataclass(frozen=True, slots=True)
class FormatRule:
    """A format, tried where one of its literals occurs.

    Group `v` of `pattern`, if any, is the private part; `check` decides last. `prefixed`: a match begins with
    one of the literals.
    """

    kind: str
    literals: tuple[str, ...]
    pattern: LazyPattern[str]
    probe: str
    check: Callable[[str], bool] | None = None
    prefixed: bool = False

    def find(self, text: str, start: int, end: int) -> Iterator[Span]:
        """Yield every span in `text[start:end]` where the rule matches."""
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


# Ends of a pattern that a match does not need.
_BEHIND = re.compile(r"\(\?!\[[^\]]*\]\)$")
_OPTIONAL = re.compile(r"=\{0,2\}$")
_REPEATED = re.compile(r"\{([1-9]\d*),\d*\}$")


def build_literal_rule(
    kind: str, literals: str, pattern: str, check: Callable[[str], bool] | None = None
) -> FormatRule:
    """Build a rule from its literals, separated by blanks; `\\<` in the pattern is LEFT."""
    prefixed = pattern.startswith(r"\<")
    probe = _BEHIND.sub("", pattern.replace(r"\<", ""))
    probe = _REPEATED.sub(r"{\1}", _OPTIONAL.sub("", probe))  # the shortest match
    return FormatRule(
        kind,
        tuple(literals.split()),
        build_rule_pattern(pattern.replace(r"\<", LEFT)),
        probe,
        check,
        prefixed,
    )


_INVISIBLE = "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"


def encode_rule_text(text: str) -> bytes:
    """Encode the text as Latin-1, one byte for each character.

    Invisible characters become a soft hyphen, every other character outside Latin-1 a `?`.
    """
    if not text.isascii():
        for character in _INVISIBLE:
            if character in text:
                text = text.replace(character, "\xad")
    return text.encode("latin-1", "replace")


class TextView:
    """A text with what the prefilter and detectors need; one byte a character, so positions agree.

    Planes are made when first asked for. `raw` is Latin-1 with `?` for what is not; `fold` is in lower case
    with every digit a 0; in `hexes` every hex digit is an h; in `runs` and `data` the characters of tokens
    and of Base64 are an x; in `breaks` the ends of words are blanks.
    """

    __slots__ = ("_ends", "_found", "_once", "_planes", "_whole", "_windows", "raw", "text")

    def __init__(self, text: str, ends: Sequence[ProbeEnd] | None = None) -> None:
        """Take the text, and as `ends` where all probes of located detectors ended."""
        self.text = text
        self._whole = self
        self._ends = ends
        self._windows: dict[int, list[tuple[int, int]]] = {}
        self.raw = encode_rule_text(text)
        self._planes: dict[str, bytes] = {}
        self._found: dict[tuple[str, bytes], list[int]] = {}
        self._once: dict[object, Any] = {}

    def of_detector(self, bit: int) -> "TextView":
        """Return the view with the windows of one detector's probes; everything else is shared."""
        if self._ends is None:
            return self
        view = TextView.__new__(TextView)
        view.text, view.raw, view._whole = self.text, self.raw, self
        view._planes, view._found, view._once = self._planes, self._found, self._once
        view._ends = [each for each in self._ends if each.bits & bit]
        view._windows = {}
        return view

    def once(self, find: Callable[["TextView"], T]) -> T:
        """Return what a function finds in this text; several detectors share the result of one call.

        The function sees the windows of all detectors.
        """
        if find not in self._once:
            self._once[find] = find(self._whole)
        return self._once[find]

    def plane(self, name: str) -> bytes:
        """Return one of the planes."""
        if name not in self._planes:
            self._planes[name] = self.raw.translate(_TABLES[name])
        return self._planes[name]

    def positions(self, literal: bytes, plane: str = "fold") -> Sequence[int]:
        """Return where a literal occurs in a plane."""
        found = self._found.get((plane, literal))
        if found is None:
            data, found = self.plane(plane), []
            at = data.find(literal)
            while at >= 0:
                found.append(at)
                at = data.find(literal, at + len(literal))
            self._found[plane, literal] = found
        return found

    def near(self, pattern: re.Pattern[bytes] | LazyPattern[bytes]) -> Iterator[re.Match[bytes]]:
        """Yield the matches of a pattern in the folded plane, near the ends of probes.

        Those are at least all that begin within `REACH` before an end of a probe.
        """
        data = self.plane("fold")
        for low, high in self.windows():
            yield from pattern.finditer(data, low, high)

    def windows(self, reach: int = REACH) -> list[tuple[int, int]]:
        """Return disjoint parts of the text, in order, that cover `reach` before each end of a probe."""
        if self._ends is None:
            return [(0, len(self.text))]
        if reach not in self._windows:
            found: list[tuple[int, int]] = []
            low, high = 0, -1
            for end in sorted({each.end for each in self._ends}):
                if end - reach > high:
                    if high >= 0:
                        found.append((low, high))
                    low = max(0, end - reach)
                high = end
            if high >= 0:
                found.append((low, high))
            self._windows[reach] = found
        return self._windows[reach]

    def long_runs(self, name: str, least: int) -> Iterator[tuple[int, int]]:
        """Yield start and end of each run of `least` or more x in the plane `runs` or `data`."""
        data, run = self.plane(name), b"x" * least
        at = data.find(run)
        while at >= 0:
            behind = _NO_RUN.search(data, at + least)
            end = behind.start() if behind else len(data)
            yield at, end
            at = data.find(run, end)

    def regions(self) -> list[tuple[int, int]]:
        """Return the surroundings of the long runs, merged where they touch.

        Runs with neither a digit nor a capital are left out: they are paths and identifiers.
        """
        return self.once(TextView._list_regions)

    def _list_regions(self) -> list[tuple[int, int]]:
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


_ESCAPE = re.compile(r"x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[a-zA-Z]")


def skip_rule_escape(text: str, start: int) -> int:
    """Return the end of the escape (`\\n`, `\\x1f`) that begins a word at `start`, else `start`."""
    if text[start - 1 : start] == "\\" and start and (match := _ESCAPE.match(text, start)):
        return match.end()
    return start


def fold_rule_bytes(raw: bytes) -> bytes:
    """Return the folded plane of a raw text."""
    return raw.translate(_TABLES["fold"])


def fold(value: str) -> bytes:
    """Return a value as the folded plane shows it."""
    return fold_rule_bytes(encode_rule_text(value))


def make_near_detector(
    literal: bytes,
    pattern: LazyPattern[str],
    kind: str,
    check: Callable[[str], bool],
    *,
    back: int = 0,
    probe: str = "",
) -> Detector:
    """Build a detector that tries a pattern at each literal.

    The pattern is matched there, or searched from `back` characters before it. `probe` replaces a pattern
    that is too large to be its own probe.
    """

    def find(view: TextView) -> Iterator[Span]:
        for at in view.positions(literal):
            start = max(0, at - back)
            found = pattern.search(view.text, start, at + 300) if back else pattern.match(view.text, at)
            if found and check(found["v"]):
                yield Span(*found.span("v"), kind)

    return make_probed_detector(find, probe or pattern.pattern)


def make_anywhere_detector(
    kind: str,
    pattern: str | re.Pattern[str] | LazyPattern[str],
    probe: str | tuple[str, ...],
    check: Callable[[str], bool] | None = None,
    *,
    behind: int = 0,
) -> Detector:
    """Build a detector of a pattern wherever it matches; the probes find such texts.

    Classes of a pattern that is compiled already may hold letters that are not ASCII.

    With `behind`, the pattern is searched only near the ends of probes, and so many characters behind them.

    A finding is the group `v`, or `w` where that is the last group that matched.
    """
    searched = build_rule_pattern(pattern) if isinstance(pattern, str) else pattern

    def find(view: TextView) -> Iterator[Span]:
        size = len(view.text)
        for low, high in view.windows() if behind else ((0, size),):
            for found in searched.finditer(view.text, low, min(size, high + behind)):
                group = found.lastgroup if found.lastgroup == "w" else "v"
                if check is None or check(found[group]):
                    yield Span(*found.span(group), kind)

    return make_probed_detector(find, *((probe,) if isinstance(probe, str) else probe), located=bool(behind))
