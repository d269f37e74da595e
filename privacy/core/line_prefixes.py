"""Text without what programs put before its lines: numbers, `file:12:`, marks of a diff, quotes, colours.

A secret of several lines (`machine`, `login`, `password`) is told by what stands between its parts, and that
is only plain once the prefixes are gone. Places in the plain text lead back to places in the text as it is.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple, TypeVar

from tracemill.privacy.core.rule import Span

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PATH = r"[^\s:<>|\"'=,;(){}\[\]]{1,200}+"
_NUMBER = r"\d{1,7}(?:[→?]|[ \t]?\|[ \t]?|[:-](?!\d\d[:-])|[ \t]*\t|  )"
_PREFIX = re.compile(
    r"\n(?=[>\s\d./\w@+-])(?:>[ \t]?)*(?:"
    rf"[ \t]*{_NUMBER}"
    rf"|{_PATH}:\d{{1,7}}:"
    r"|(?=[\w@+-]*[./])[\w./@+-]{1,200}-\d{1,7}-"
    r"|(?=[\w@+-]*[./])[\w./@+-]{1,200}+:(?!//|\d|\s)"
    r"|[\w.-]{1,48}+[ \t]+\|[ \t]"
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:[\d.]{2,12}Z "
    r")?(?:>[ \t]?)*(?<=[^\n])([^\n]*)"
)
_AFTER, _BEFORE = re.compile(r"\n\+([^\n]*)"), re.compile(r"\n-([^\n]*)")
_HUNK_AFTER, _HUNK_BEFORE = re.compile(r"\n[+ ]([^\n]*)"), re.compile(r"\n[- ]([^\n]*)")
_LEADS = (
    r"[> \t]*\d{1,7}(?:\?|[ \t]*[\t|]|[:-]|  )",
    r"[^\s:]+[:-]\d{1,7}[:-]",
    r"[\w@+-]*[./][\w./@+-]*:",
    r"[\w.-]+[ \t]+\|[ \t]",
    r"[+ -]*[+-]",
    r">",
)
PREFIX_PROBES = (
    *(rf"[\n\"]{lead}[^\n]*\n{lead}" for lead in _LEADS),
    rf"^(?:{'|'.join(_LEADS)})",
    r"\x1b\[|\dT\d\d:\d\d:[\d.]+Z ",
)
"""Probes that match where two lines in a row have a prefix, or the first one has."""


class PlainText(NamedTuple):
    """A text without prefixes: `starts` are the places where its pieces begin, `places` where they stood."""

    text: str
    starts: list[int]
    places: list[int]

    def place_spans(self, spans: Iterable[Span]) -> Iterator[Span]:
        """Give the spans where they stand in the text as it was: a private key as one span with the prefixes
        in it, anything else in pieces between them."""
        for span in spans:
            first = max(0, bisect_right(self.starts, span.start) - 1)
            last = bisect_right(self.starts, span.end - 1) - 1
            pieces: list[Span] = []
            for piece in range(first, last + 1):
                start = max(span.start, self.starts[piece])
                end = min(span.end, self.starts[piece + 1] if piece + 1 < len(self.starts) else span.end)
                part = self.text[start:end]
                start += len(part) - len(part.lstrip()) if piece > first else 0
                end -= len(part) - len(part.rstrip()) if piece < last else 0
                if start < end:
                    pieces.append(Span(self._place(piece, start), self._place(piece, end), span.kind))
            if span.kind == "PRIVATE_KEY" and pieces:
                pieces = [Span(pieces[0].start, pieces[-1].end, span.kind)]
            yield from pieces

    def _place(self, piece: int, at: int) -> int:
        return self.places[piece] + at - self.starts[piece]


_Text = TypeVar("_Text", str, PlainText)


def strip_line_prefixes(text: str) -> list[str]:
    """Return the texts of `plain_texts` alone, which costs less."""
    return _read(f"\n{text}", _COLOUR.sub, _rest_of_lines)


def plain_texts(text: str) -> list[PlainText]:
    """Return the lines with a prefix, without it, in each way they can be read.

    A diff is read twice, as it was before and after. Colours are no part of any of them, and where there are
    some, the whole text without them is one.
    """
    return _read(PlainText(f"\n{text}", [0], [-1]), _without_colours, _placed_lines)


def _read(
    given: _Text, uncoloured: Callable, lines_of: Callable[[_Text, re.Pattern[str]], _Text]
) -> list[_Text]:
    found: list[_Text] = []
    if "\x1b[" in _said(given):
        found.append(given := uncoloured("", given))
    read = [given]
    if _said(lines := lines_of(given, _PREFIX)):
        read.append(lines)
        found.append(lines)
    for each in read:
        said = _said(each)
        hunk = "\n@@ -" in said
        if "\n+" in said:
            found.append(lines_of(each, _HUNK_AFTER if hunk else _AFTER))
        if "\n-" in said:
            found.append(lines_of(each, _HUNK_BEFORE if hunk else _BEFORE))
    return found


def _said(text: str | PlainText) -> str:
    return text if isinstance(text, str) else text.text


def _rest_of_lines(text: str, prefix: re.Pattern[str]) -> str:
    return "\n".join(["", *prefix.findall(text)])


def _without_colours(_: str, plain: PlainText) -> PlainText:
    bounds = [place for match in _COLOUR.finditer(plain.text) for place in match.span()]
    return _joined(plain, list(pairwise([0, *bounds, len(plain.text)]))[::2])


def _placed_lines(plain: PlainText, prefix: re.Pattern[str]) -> PlainText:
    return _joined(plain, [match.span(1) for match in prefix.finditer(plain.text)], "\n")


def _joined(plain: PlainText, kept: list[tuple[int, int]], before: str = "") -> PlainText:
    """Return the kept stretches of a text, each with `before` before it."""
    pieces: list[str] = []
    starts: list[int] = []
    places: list[int] = []
    size = 0
    for start, end in kept:
        pieces += (before, plain.text[start:end])
        size += len(before)
        piece = bisect_right(plain.starts, start) - 1
        while start < end:
            stop = min(end, plain.starts[piece + 1]) if piece + 1 < len(plain.starts) else end
            starts.append(size)
            places.append(plain.places[piece] + start - plain.starts[piece])
            size, start, piece = size + stop - start, stop, piece + 1
    return PlainText("".join(pieces), starts, places)
