"""Read the table that a header begins: cells by `|`, tab, comma, semicolon or blanks.

A header shows how cells are separated, and the name of each column applies to the cells below it.
"""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from tracemill.privacy.core.rule import Span, build_rule_pattern
from tracemill.privacy.core.table_columns import cell_kind, column_type

_MOST_ROWS = 5_000
_MOST_WIDTH = 8_000  # characters of a line
_Cells = list[tuple[int, int]]
"""Start and end of the cells of a line, without blanks and quotes."""

_NAME = re.compile(r"\W{0,2}(?:[^\W\d]|#)[\w .#/()%-]{0,48}[\"'`\]*]{0,2}")
_RULE = build_rule_pattern(r"[\s|+:=-]*[-=]{2,}[\s|+:=-]*")
_WIDE = build_rule_pattern(r"\S+(?: \S+)*")
_DASHES = build_rule_pattern(r"[ \t]*-{2,}(?: +-{2,})*[ \t]*\r?")
_DASH_RUN = re.compile("-+")


def _by_pipe(text: str, start: int, end: int) -> _Cells:
    bars = [at for at in range(start, end) if text[at] == "|" and (at == start or text[at - 1] != "\\")]
    line = text[start:end].strip()
    edges = [start - 1, *bars, end]
    if line.startswith("|"):
        edges = edges[1:]
    if line.endswith("|"):
        edges = edges[:-1]
    return [strip_cell(text, a + 1, b) for a, b in pairwise(edges)]


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
        cells.append(strip_cell(text, at, stop))
        at = stop + 1
    return cells


def strip_cell(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a cell without the blanks around it."""
    while start < end and text[start] in " \t\r":
        start += 1
    while end > start and text[end - 1] in " \t\r":
        end -= 1
    return start, end


_Style = tuple[str, Callable[[str, int, int], _Cells]]
_RULED = "--"
"""The sign of a table whose columns begin where the dashes below its header do, as PowerShell writes it."""
_STYLES: tuple[_Style, ...] = (
    ("|", _by_pipe),
    ("\t", _by_tab),
    (",", _by_comma),
    (";", _by_semicolon),
    ("  ", _by_blanks),
)


def _by_rule(text: str, start: int, end: int) -> _Style | None:
    """Return the style of a table with a rule of dashes in the line below its header; None without one."""
    stop = text.find("\n", end + 1)
    rule = _DASHES.fullmatch(text, end + 1, len(text) if stop < 0 else stop)
    if rule is None:
        return None
    starts = [run.start() for run in _DASH_RUN.finditer(rule[0])]

    def split(text: str, start: int, end: int) -> _Cells:
        edges = [min(start + each, end) for each in starts]
        if any(edge < end and not text[edge - 1].isspace() for edge in edges[1:]):
            return _by_blanks(text, start, end)
        return [strip_cell(text, a, b) for a, b in pairwise([*edges, end])]

    return _RULED, split


def find_cells_under(text: str, at: int) -> tuple[list[Span], int]:
    """Return the private cells below the header around a place, and where the table ends.

    The end is that of the line where it is no header.
    """
    found: list[Span] = []
    columns, end = find_columns_under(text, at, lambda name: column_type(name) is not None)
    for column in columns:
        for a, b, data in column.cells:
            if kind := cell_kind(column.name, text[a:b], data=data):
                found.append(Span(a, b, kind))
    return found, end


class TableCell(NamedTuple):
    """Start and end of a cell, and whether its table holds data, not words about it."""

    start: int
    end: int
    data: bool


class Column(NamedTuple):
    """The name of a column, its cells, and the names of all columns of the table."""

    name: str
    cells: list[TableCell]
    header: list[str]


def find_columns_under(text: str, at: int, is_wanted: Callable[[str], bool]) -> tuple[list[Column], int]:
    """Return the columns with a wanted name below the header around a place, and where the table ends.

    The end is that of the line where it is no header.
    """
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    if end - start > _MOST_WIDTH or end == len(text):
        return [], end
    style = _by_rule(text, start, end) or next(
        (each for each in _STYLES if each[0] in text[start:end].strip()), None
    )
    if style is None:
        return [], end
    header = style[1](text, start, end)
    names = [text[a:b].strip("\"'`[]*") for a, b in header]
    if len(names) < (1 if style[0] == _RULED else 2) or not all(
        _NAME.fullmatch(text, a, b) or a == b for a, b in header
    ):
        return [], end
    columns = {place: Column(name, [], names) for place, name in enumerate(names) if is_wanted(name)}
    return (list(columns.values()), _below(text, start, end, names, columns, style)) if columns else ([], end)


def _below(
    text: str,
    start: int,
    end: int,
    names: list[str],
    columns: dict[int, Column],
    style: _Style,
) -> int:
    """Add the cells below a header to its columns, and return where the table ends."""
    sign, split = style
    bars = [at - start for at in range(start, end) if text[at] == "|"] if sign == "|" else []
    framed = text[start:end].lstrip().startswith("|")
    data, ruled = sign not in ("  ", _RULED), False
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
            cells = [strip_cell(text, at + a + 1, at + b) for a, b in pairwise(edges)]
        else:
            cells = split(text, at, stop)
        extra = len(cells) - len(names)
        if extra and not (sign == "  " and extra == 1):
            break
        for place, column in columns.items():
            column.cells.append(TableCell(*cells[place + extra], data))
        at = stop + 1
    return max(end, at - 1)
