# ruff: noqa: E501 (patterns)
"""Detect private cells of tables by column: psql, mysql, sqlite, CSV, TSV, Markdown, pandas, HTML.

`COPY` of PostgreSQL is read too. A header is found by the name of a private column, its line shows how
cells are separated, and the name of each column applies to the cells below it.
"""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

from tracemill.privacy.core.rule import (
    Detector,
    Span,
    TextView,
    build_words_pattern,
    compile_rule_pattern,
    make_probed_detector,
)
from tracemill.privacy.core.table_columns import cell_kind, column_type

_MOST_ROWS = 5_000
_MOST_WIDTH = 8_000  # characters of a line
_Cells = list[tuple[int, int]]
"""Start and end of the cells of a line, without blanks and quotes."""

_WORDS = re.compile(
    build_words_pattern(
        b"pass pwd secret token key auth credential _pat name phone mobile birth dob pw".split()
    )
)
_AROUND = compile_rule_pattern(
    r"[\w.-]{0,40}(?: (?:key|token|name|of|birth|date|number|code|\w+ ?\|)){0,3}[\"'`]?[ \t]*(?:[|,;\t\r\n]| $|$|(?<=  )\S)"
)
_NAME = compile_rule_pattern(r"\W{0,2}[A-Za-z_#][\w .#/()%-]{0,48}[\"'`\]*]{0,2}")
_RULE = compile_rule_pattern(r"[\s|+:=-]*[-=]{2,}[\s|+:=-]*")
_WIDE = compile_rule_pattern(r"\S+(?: \S+)*")


def _by_pipe(text: str, start: int, end: int) -> _Cells:
    bars = [at for at in range(start, end) if text[at] == "|" and (at == start or text[at - 1] != "\\")]
    line = text[start:end].strip()
    edges = [start - 1, *bars, end]
    if line.startswith("|"):
        edges = edges[1:]
    if line.endswith("|"):
        edges = edges[:-1]
    return [_stripped(text, a + 1, b) for a, b in pairwise(edges)]


def _by_tab(text: str, start: int, end: int) -> _Cells:
    return _apart(text, start, end, "\t")


def _by_comma(text: str, start: int, end: int) -> _Cells:
    return _apart(text, start, end, ",")


def _by_semicolon(text: str, start: int, end: int) -> _Cells:
    return _apart(text, start, end, ";")


def _by_blanks(text: str, start: int, end: int) -> _Cells:
    return [match.span() for match in _WIDE.finditer(text, start, end)]


def _apart(text: str, start: int, end: int, sign: str) -> _Cells:
    """Return the cells between signs; a cell in double quotes may hold the sign."""
    cells: _Cells = []
    at = start
    while at <= end:
        if text[at : at + 1] == '"' and at < end:
            close = at + 1
            while (close := text.find('"', close, end)) >= 0 and text[close + 1 : close + 2] == '"':
                close += 2
            if close >= 0 and text[close + 1 : close + 2] in (sign, "", "\n", "\r", " "):
                cells.append((at + 1, close))
                following = text.find(sign, close, end)
                at = following + 1 if following >= 0 else end + 1
                continue
        following = text.find(sign, at, end)
        stop = following if following >= 0 else end
        cells.append(_stripped(text, at, stop))
        at = stop + 1
    return cells


def _stripped(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start] in " \t\r":
        start += 1
    while end > start and text[end - 1] in " \t\r":
        end -= 1
    return start, end


_STYLES: tuple[tuple[str, Callable[[str, int, int], _Cells]], ...] = (
    ("|", _by_pipe),
    ("\t", _by_tab),
    (",", _by_comma),
    (";", _by_semicolon),
    ("  ", _by_blanks),
)


def find_table_cells(view: TextView) -> Iterator[Span]:
    """Find the private cells of tables in plain text."""
    text, read = view.text, -1
    for word in view.near(_WORDS):
        at = word.start()
        if at < read or not _AROUND.match(text, at):
            continue
        start = text.rfind("\n", 0, at) + 1
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        read = end
        if end - start > _MOST_WIDTH or end == len(text):
            continue
        style = next((each for each in _STYLES if each[0] in text[start:end].strip()), None)
        if style is None:
            continue
        header = style[1](text, start, end)
        names = [text[a:b].strip("\"'`[]*") for a, b in header]
        if len(names) < 2 or not all(_NAME.fullmatch(text, a, b) or a == b for a, b in header):
            continue
        wanted = {place for place, name in enumerate(names) if column_type(name)}
        if wanted:
            found, read = _below(text, start, end, names, wanted, style)
            yield from found


def _below(
    text: str,
    start: int,
    end: int,
    names: list[str],
    wanted: set[int],
    style: tuple[str, Callable[[str, int, int], _Cells]],
) -> tuple[list[Span], int]:
    """Return the private cells below a header, and where the table ends."""
    found: list[Span] = []
    sign, split = style
    bars = [at - start for at in range(start, end) if text[at] == "|"] if sign == "|" else []
    framed = text[start:end].lstrip().startswith("|")
    data, ruled = sign != "  ", False
    at = end + 1
    for _ in range(_MOST_ROWS):
        stop = text.find("\n", at)
        stop = len(text) if stop < 0 else stop
        if at >= len(text) or stop - at > _MOST_WIDTH:
            break
        if _RULE.fullmatch(text, at, stop):
            # A Markdown rule: such tables hold words about data as often as data.
            data = data and (ruled or not (framed and "+" not in text[at:stop]))
            ruled, at = True, stop + 1
            continue
        if not text[at:stop].strip():
            break
        if bars and all(text[at + bar : at + bar + 1] == "|" for bar in bars) and at + bars[-1] < stop:
            edges = [
                *([] if framed else [-1]),
                *bars,
                *([] if text[start:end].rstrip().endswith("|") else [stop - at]),
            ]
            cells = [_stripped(text, at + a + 1, at + b) for a, b in pairwise(edges)]
        else:
            cells = split(text, at, stop)
        extra = len(cells) - len(names)
        if extra and not (sign == "  " and extra == 1):
            break
        for place in wanted:
            a, b = cells[place + extra]
            if kind := cell_kind(names[place], text[a:b], data=data):
                found.append(Span(a, b, kind))
        at = stop + 1
    return found, max(end, at - 1)


_TAG_ROW = re.compile(r"<tr\b[^>]*>(?P<cells>.*?)(?=</tr|<tr\b|</table|</thead|$)", re.DOTALL | re.IGNORECASE)
_TAG_CELL = re.compile(r"<t[hd]\b[^>]*>\s*(?:<(?:b|strong|span|code)\b[^>]*>)?(?P<v>[^<]*)", re.IGNORECASE)


def find_html_cells(view: TextView) -> Iterator[Span]:
    """Find the private cells of HTML tables."""
    text = view.text
    names: list[str] = []
    for row in _TAG_ROW.finditer(text):
        cells = [cell.span("v") for cell in _TAG_CELL.finditer(text, *row.span("cells"))]
        headings = [text[a:b].strip() for a, b in cells]
        if "<th" in row["cells"].lower() or not names:
            if len(headings) >= 2 and any(map(column_type, headings)):
                names = headings
                continue
            if "<th" not in row["cells"].lower():
                continue
            extra = len(cells) - len(names)
        else:
            extra = 0
        if extra or len(cells) != len(names):
            continue
        for name, (a, b) in zip(names, cells, strict=True):
            a, b = _stripped(text, a, b)
            if kind := cell_kind(name, text[a:b], data=False):
                yield Span(a, b, kind)


_COPY = compile_rule_pattern(
    r"(?i)\bcopy\s+[\w.\"]{1,130}\s*\((?P<columns>[^()]{3,8000})\)\s*from\s+stdin[^\n]*\n"
)


def find_copied(view: TextView) -> Iterator[Span]:
    """Find the private cells of `COPY ... FROM stdin`."""
    text = view.text
    for head in _COPY.finditer(text):
        names = [column.strip(' \t\r\n"') for column in head["columns"].split(",")]
        wanted = [place for place, name in enumerate(names) if column_type(name)]
        at = head.end() if wanted else len(text)
        while at < len(text) and not text.startswith("\\.", at):
            stop = text.find("\n", at)
            stop = len(text) if stop < 0 else stop
            cells: _Cells = []
            start = at
            while start <= stop:
                edge = text.find("\t", start, stop)
                edge = stop if edge < 0 else edge
                cells.append((start, edge))
                start = edge + 1
            if len(cells) != len(names):
                break
            for place in wanted:
                a, b = cells[place]
                if text[a:b] != "\\N" and (kind := cell_kind(names[place], text[a:b], data=True)):
                    yield Span(a, b, kind)
            at = stop + 1


_WORD = (
    r"(?:pass|pwd|secret|token|key|auth|credential|_pat|(?:full|first|last|middle|given|family|sur|maiden|legal|birth)[_ ]?name"
    r"|phone|mobile|birth|dob|pw)"
)
_ALIGNED = r"(?:passw|pwd|secret|token|key|name|phone|birth)"  # in columns aligned by blanks
DETECTORS: tuple[Detector, ...] = (
    make_probed_detector(
        find_table_cells,
        rf"(?i){_WORD}(?:[\w.-]*(?: [\w ]+)?[\"'`*]*[ \t]*\|[^\n]*\n"
        r"|\w*\"?(?:\t\"?\w[^\n]*\n|[,;]\"?[a-z_][\w ]*\"?[,;\r\n]))",
        rf"(?i)\|[ \t]*[\"'`*]*[\w .-]*{_WORD}[\w -]*[\"'`*]*[ \t]*[|\r\n]",
        rf"(?i)\w\"?\t\"?\w*{_WORD}\w*\"?[\t\r\n]",
        rf"(?i)\w\"?[,;]\"?\w*{_WORD}\w*\"?[,;\r\n]",
        rf"(?:  |_){_ALIGNED}[a-z_]*(?:   *[a-z]|\r?\n)",
        located=True,
    ),
    make_probed_detector(find_html_cells, rf"(?i)<t[hd][^>]*>[^<]*(?:<[^>]*>)?[^<]*{_WORD}[^<]*<"),
    make_probed_detector(find_copied, r"(?i)copy\s+[\w.\"]+\s*\([^()]*\)\s*from\s+stdin"),
)
