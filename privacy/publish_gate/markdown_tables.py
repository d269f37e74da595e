"""Read Markdown tables as records: every cell decoded, named by its column."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tracemill.privacy.publish_gate.decoded_texts import resolve_references

_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})")
_RULE = re.compile(r" {0,3}\|?(?:[ \t]*:?-+:?[ \t]*\|)+(?:[ \t]*:?-+:?[ \t]*)?\s*")
_JOINT = re.compile(r"(?<!\\)\|")
_BREAK = re.compile(r"(?i)<br ?/?>")


class Cell(NamedTuple):
    """A cell of a row below a heading; `line` counts from 1."""

    line: int
    heading: str
    text: str


def split_tables(page: str) -> tuple[str, list[Cell]]:
    """Return a page with the lines of rows empty, and the cells of the rows.

    A table is a heading with a rule of dashes below it, as GitHub reads it; code between fences has none.
    """
    lines = page.split("\n")
    rest, cells = list(lines), []
    fence, headings = "", None
    for at, line in enumerate(lines):
        mark = _FENCE.match(line)
        if mark and (not fence or mark["mark"].startswith(fence)):
            fence = "" if fence else mark["mark"]
        if fence or "|" not in line:
            headings = None
        elif headings is not None:
            cells += _row(at + 1, headings, line)
            rest[at] = ""
        elif at and _RULE.fullmatch(line) and "|" in lines[at - 1]:
            headings = _parts(lines[at - 1])
    return "\n".join(rest), cells


def _row(line: int, headings: Sequence[str], row: str) -> Iterator[Cell]:
    for number, text in enumerate(_parts(row)):
        if text:
            yield Cell(line, headings[number] if number < len(headings) else "", text)


def _parts(row: str) -> list[str]:
    """Return the texts of a row, with line breaks and references resolved."""
    parts = _JOINT.split(row.strip().removeprefix("|"))
    if len(parts) > 1 and not parts[-1].strip():
        parts.pop()
    shown = (_BREAK.sub("\n", part.strip().replace("\\|", "|")) for part in parts)
    return [resolve_references(part).replace("\xa0", " ") for part in shown]
