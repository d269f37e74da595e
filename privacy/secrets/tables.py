# ruff: noqa: E501 (patterns)
"""Detect private cells of tables by column: psql, mysql, sqlite, CSV, TSV, Markdown, pandas, HTML.

`COPY` of PostgreSQL is read too. A header is found by the name of a private column.
"""

import re
from collections.abc import Iterator

from tracemill.privacy.core.read_table import find_cells_under, strip_cell
from tracemill.privacy.core.rule import (
    Detector,
    Span,
    TextView,
    build_rule_pattern,
    build_words_pattern,
    make_probed_detector,
)
from tracemill.privacy.core.table_columns import cell_kind, column_type

_WORDS = re.compile(
    build_words_pattern(
        b"pass pwd secret token key auth credential _pat name phone mobile birth dob pw kennwort senha heslo clave contrase".split()
    )
)
_AROUND = build_rule_pattern(
    r"[\w.-]{0,40}(?: (?:key|token|name|of|birth|date|number|code|\w+ ?\|)){0,3}[\"'`]?[ \t]*(?:[|,;\t\r\n]| $|$|(?<=  )\S|(?=[^\n]{1,400}\n[ \t]*--))"
)


def find_table_cells(view: TextView) -> Iterator[Span]:
    """Find the private cells of tables in plain text."""
    text, read = view.text, -1
    for word in view.near(_WORDS):
        if word.start() >= read and _AROUND.match(text, word.start()):
            cells, read = find_cells_under(text, word.start())
            yield from cells


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
            a, b = strip_cell(text, a, b)
            if kind := cell_kind(name, text[a:b], data=False):
                yield Span(a, b, kind)


_COPY = build_rule_pattern(
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
            cells: list[tuple[int, int]] = []
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
    r"(?:pass|pwd|kennwort|senha|heslo|clave|contrase|secret|token|key|auth|credential|_pat|(?:full|first|last|middle|given|family|familien|vor|nach|sur|maiden|legal|birth)[_ ]?name"
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
        r"(?i)(?:passw|pwd|secret|token|key)[^\n]*\n[ \t]*--",
        located=True,
    ),
    make_probed_detector(find_html_cells, rf"(?i)<t[hd][^>]*>[^<]*(?:<[^>]*>)?[^<]*{_WORD}[^<]*<"),
    make_probed_detector(find_copied, r"(?i)copy\s+[\w.\"]+\s*\([^()]*\)\s*from\s+stdin"),
)
