"""Remove what programs put before lines: numbers, `file:12:`, diff marks, quotes, colours.

A secret of several lines (`machine`, `login`, `password`) is recognised by what stands between its parts,
which shows only without the prefixes. Positions in the plain text map back to the original text.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from tracemill.privacy.core.placeholder_keys import find_keyed_placeholders
from tracemill.privacy.core.rule import Span

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PATH = r"[^\s:<>|\"'=,;(){}\[\]]{1,200}+"
_NUMBER = r"[ \t]*+\d{1,7}+(?:[→?]|[ \t]?\|[ \t]?|[:-](?!\d\d[:-])|[ \t]*\t|  )"
_NAME = (
    rf"(?:{_PATH}:\d{{1,7}}:"
    r"|(?=[\w@+-]*+[./])(?:[\w./@+-]{1,200}-\d{1,7}-|[\w./@+-]{1,200}+:(?!//|\d|\s))"
    r"|[\w.-]{1,48}+[ \t]++\|[ \t]"
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:[\d.]{2,12}Z )"
)
_QUOTE = r"(?:>[ \t]?)"
_PREFIX = re.compile(
    rf"\n(?:{_NUMBER}{_QUOTE}*|(?=[./\w@+-]){_NAME}{_QUOTE}*|{_QUOTE}+(?:{_NUMBER}|{_NAME})?{_QUOTE}*)([^\n]*)"
)
_QUOTED = re.compile(rf"\n{_QUOTE}+([^\n]*)")
_AFTER, _BEFORE = re.compile(r"\n\+([^\n]*)"), re.compile(r"\n-([^\n]*)")
_MARKED = re.compile(r"\A\n[+-]|\n[+-][^\n]*\n[+-]")
_HUNK_AFTER, _HUNK_BEFORE = re.compile(r"\n[+ ]([^\n]*)"), re.compile(r"\n[- ]([^\n]*)")
_LEADS = (
    r"[> \t]*\d{1,7}(?:\?|[ \t]*[\t|]|[:-]|  )",
    r"[^\s:]+[:-]\d{1,7}[:-]",
    r"[\w@+-]*[./][\w./@+-]*:",
    r"[\w.-]+[ \t]+\|[ \t]",
    r"[+-]",
    r">",
)
PREFIX_PROBES = (
    *(rf"[\n\"]{lead}[^\n]*\n{lead}" for lead in _LEADS),
    rf"^(?:{'|'.join(_LEADS)})",
    r"\n> ?[^\s>]|\x1b\[|\dT\d\d:\d\d:[\d.]+Z ",
)
"""Probes that match where two lines in a row have a prefix, or the first one has."""


@dataclass
class PlainText:
    """A text without prefixes; positions in the original are computed when asked for.

    `kept` yields the stretches that were kept of the text `before`, each preceded by `joint`.
    """

    text: str
    before: "PlainText | None" = field(default=None, repr=False, compare=False)
    kept: "_Kept | None" = field(default=None, repr=False, compare=False)
    joint: str = field(default="", repr=False, compare=False)
    added: int = field(default=1, repr=False, compare=False)
    """Characters before the original text: the line end before its first line."""

    @cached_property
    def _pieces(self) -> tuple[list[int], list[int]]:
        """Return where the pieces begin in this text, and where they begin in the original."""
        if self.before is None or self.kept is None:
            return [0], [-self.added]
        from_starts, from_places = self.before._pieces
        starts: list[int] = []
        places: list[int] = []
        size = 0
        for start, end in self.kept(self.before.text):
            size += len(self.joint)
            piece = bisect_right(from_starts, start) - 1
            while start < end:
                stop = min(end, from_starts[piece + 1]) if piece + 1 < len(from_starts) else end
                starts.append(size)
                places.append(from_places[piece] + start - from_starts[piece])
                size, start, piece = size + stop - start, stop, piece + 1
        return starts, places

    def place_whole(self, start: int, end: int) -> tuple[int, int]:
        """Return where a part of this text begins and ends in the original text."""
        starts, places = self._pieces
        first, last = bisect_right(starts, start) - 1, bisect_right(starts, end - 1) - 1
        return start + places[first] - starts[first], end + places[last] - starts[last]

    def cuts(self, start: int, end: int) -> list[int]:
        """Return where something was removed inside a part of this text."""
        return [at for at in self._pieces[0] if start < at < end]

    def place_spans(self, spans: Iterable[Span]) -> Iterator[Span]:
        """Yield the spans at their positions in the original text.

        A private key is one span that includes its prefixes. Any other span is split at the prefixes.
        """
        for span in spans:
            starts, places = self._pieces
            first = max(0, bisect_right(starts, span.start) - 1)
            last = bisect_right(starts, span.end - 1) - 1
            pieces: list[Span] = []
            for piece in range(first, last + 1):
                start = max(span.start, starts[piece])
                end = min(span.end, starts[piece + 1] if piece + 1 < len(starts) else span.end)
                part = self.text[start:end]
                start += len(part) - len(part.lstrip()) if piece > first else 0
                end -= len(part) - len(part.rstrip()) if piece < last else 0
                if start < end:
                    moved = places[piece] - starts[piece]
                    pieces.append(Span(start + moved, end + moved, span.kind))
            if span.kind == "PRIVATE_KEY" and pieces:
                pieces = [Span(pieces[0].start, pieces[-1].end, span.kind)]
            yield from pieces


_LINE_NUMBER = re.compile(r"\n( {0,6}\d{1,7})(?:→|\t)")
_NUMBERED_HEAD = 1_000
"""Characters from the start in which the first number of a numbered text is searched."""


def unnumber_lines(text: str) -> PlainText | None:
    """Return the whole text without the line numbers of `cat -n` or a file reader.

    None where fewer than half of the lines are numbered, or the numbers do not count up by one. Numbers
    without padding before a tab count only from the first line on: else they may be a column of a table.
    """
    head = text[:_NUMBERED_HEAD]
    first = _LINE_NUMBER.search(f"\n{head}") if "\t" in head or "\u2192" in head else None
    if first is None or (first[0][-1] == "\t" and len(first[1]) < 6 and first.start()):
        return None
    given = PlainText(f"\n{text}")
    pieces = _LINE_NUMBER.split(given.text)
    numbers = list(map(int, pieces[1::2]))
    if len(numbers) < 2 or 2 * len(numbers) < given.text.count("\n"):
        return None
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return None
    return PlainText("\n".join(pieces[::2]), given, _unnumbered)


def _unnumbered(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in _LINE_NUMBER.finditer(text):
        yield start, match.start() + 1
        start = match.end()
    yield start, len(text)


_Kept = Callable[[str], Iterable[tuple[int, int]]]


def plain_texts(text: str) -> list[PlainText]:
    """Return the lines that have a prefix, without it, in each way they can be read.

    A diff is read twice, as before and as after the change, if two lines in a row are marked or the first one
    is. Quoted lines are read once more with the numbers that they begin with. Colours are removed from all,
    and where there are some, the whole text without them is one result.
    """
    found: list[PlainText] = []
    given = PlainText(f"\n{text}")
    if "\x1b[" in text:
        given = PlainText(_COLOUR.sub("", given.text), given, _uncoloured)
        found.append(given)
    read = [given]
    if (lines := _rest_of_lines(given, _PREFIX)).text:
        read.append(lines)
        found.append(lines)
    if "\n>" in given.text and (lines := _rest_of_lines(given, _QUOTED)).text not in (
        each.text for each in read
    ):
        found.append(lines)
    for each in read:
        if each is given and not _MARKED.search(each.text):
            continue
        hunk = "\n@@ -" in each.text
        if "\n+" in each.text:
            found.append(_rest_of_lines(each, _HUNK_AFTER if hunk else _AFTER))
        if "\n-" in each.text:
            found.append(_rest_of_lines(each, _HUNK_BEFORE if hunk else _BEFORE))
    return found


def _rest_of_lines(given: PlainText, prefix: re.Pattern[str]) -> PlainText:
    def kept(text: str) -> Iterator[tuple[int, int]]:
        return (match.span(1) for match in prefix.finditer(text))

    return PlainText("\n".join(["", *prefix.findall(given.text)]), given, kept, "\n")


def _uncoloured(text: str) -> list[tuple[int, int]]:
    bounds = [place for match in _COLOUR.finditer(text) for place in match.span()]
    return list(pairwise([0, *bounds, len(text)]))[::2]


_OF_VALUE = r"^\s\"'`\\"
_COLOURS = r"(?:\x1b\[[0-9;?]*[A-Za-z])*"
_LOG = (
    r"(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:[\d.,]{2,12}Z? |\[pod/[^\]\n]{1,120}\] "
    r"|\w{3} [ \d]\d \d\d:\d\d:\d\d (?:[\w.-]{1,64}|<[A-Z_]{2,24}_[0-9a-f]{8}>) "
    r"[\w./-]{1,64}(?:\[\d{1,9}\])?: "
    r"|[0-9a-f]{7,40} \([^()\n]{8,80} \d{1,7}\) )"
)
_BOX = r"[ \t]*+\d{0,7}[ \t]*+[\u2502\u2503|] ?"
_CONCATENATED = r"[\"'`][ \t]*[+.&][ \t]*[frbuFRBU]?[\"'`]"
_BEFORE_BREAK = rf"(?<=[{_OF_VALUE}]){_COLOURS}(?:[\"'`][ \t]*[+.&\\]?[ \t]*|\\)?\r?\n"
_AFTER_BREAK = rf"[ \t]*{_COLOURS}[ \t]*(?:[+.&]?[ \t]*[frbuFRBU]?[\"'`])?(?=[{_OF_VALUE}])"
_BREAK = re.compile(rf"{_BEFORE_BREAK}{_AFTER_BREAK}|{_CONCATENATED}")
_BEFORE_LINE = rf"(?:{_LOG}|{_NUMBER}|{_NAME}|{_BOX}|{_QUOTE}+|[+-]|[ \t]*+(?:#|//|\*) ?)"
_PREFIXED_BREAK = re.compile(rf"{_BEFORE_BREAK}{_COLOURS}{_BEFORE_LINE}{_AFTER_BREAK}|{_CONCATENATED}")


_REST_OF_LINE = re.compile(
    rf"[>A-Za-z0-9_](?:{_COLOURS}[\"'`\\ ]{{0,3}}\r?\n{_COLOURS}{_BEFORE_LINE}?[ \t]*{_COLOURS}[ \t]*[\"'`]?"
    rf"|{_CONCATENATED})$"
)
_BREAK_TO_PLACEHOLDER = re.compile(
    rf"(?:{_COLOURS}[\"'`\\ ]{{0,3}}\r?\n{_COLOURS}{_BEFORE_LINE}?[ \t]*"
    rf"{_COLOURS}[ \t]*[\"'`]?|{_CONCATENATED})(?=[<R])"
)
_LONGEST_BREAK = 200  # characters


def begins_line_after_placeholder(text: str, at: int) -> bool:
    """Tell whether a place begins a line, its prefix left out, and the line before ends in a placeholder."""
    before = text[max(0, at - _LONGEST_BREAK) : at]
    broken = _REST_OF_LINE.search(before)
    return broken is not None and any(end == broken.start() + 1 for _, end in find_keyed_placeholders(before))


def ends_line_before_placeholder(text: str, at: int) -> bool:
    """Tell whether a place ends a line, and the next one begins with a placeholder, its prefix left out."""
    behind = text[at : at + _LONGEST_BREAK]
    broken = _BREAK_TO_PLACEHOLDER.match(behind)
    return broken is not None and any(start == broken.end() for start, _ in find_keyed_placeholders(behind))


def join_broken_lines(text: str) -> list[PlainText]:
    """Return the text with its lines and joined literals as one, with and without the prefixes of lines.

    A value that a line end, an indentation or `" + "` interrupts stands in one piece there. A reading that
    joins nothing is left out.
    """
    found: list[PlainText] = []
    for pattern in (_BREAK, _PREFIXED_BREAK):
        joined = pattern.sub("", text)
        if len(joined) < len(text) and joined not in (each.text for each in found):
            found.append(PlainText(joined, PlainText(text, added=0), _between(pattern)))
    return found


def _between(pattern: re.Pattern[str]) -> Callable[[str], Iterable[tuple[int, int]]]:
    def kept(text: str) -> list[tuple[int, int]]:
        bounds = [place for match in pattern.finditer(text) for place in match.span()]
        return [(low, high) for low, high in list(pairwise([0, *bounds, len(text)]))[::2] if low < high]

    return kept
