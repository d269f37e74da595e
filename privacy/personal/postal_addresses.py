# ruff: noqa: E501 (patterns)
"""Detect postal addresses on lines of their own, after `Ship to:`, and in columns named `street`."""

import re
from collections.abc import Iterator

from tracemill.privacy.core.read_table import find_cells_under
from tracemill.privacy.core.rule import Detector, Span, TextView, make_probed_detector
from tracemill.privacy.personal.labelled_data import PERSON, STREET, is_person

_SENT = r"(?:(?:ship|deliver|bill|sold|send|mail|invoice)(?:ed|ped|ping|ing|y)?[ _-]?(?:to|address)|(?:rechnung|lieferung|versand) an)"
_PLACES = (
    r"(?:(?:postal|home|street|mailing|private|residential)[ _-])?address|(?:liefer|rechnungs|post|wohn)?(?:adresse|anschrift)|direcci[o\xf3]n(?: de env[i\xed]o)?"
    r"|endere[c\xe7]o(?: de entrega)?|indirizzo(?: di spedizione)?|adres|adresse de livraison|recipient|empf\xe4nger"
)
_MARKS = r"[*_\"]{0,2}[ \t]{0,3}"
_HEADS = rf"(?:{_SENT}{_MARKS}:?|(?:{_PLACES}){_MARKS}:){_MARKS}\r?\n"
_HEAD = re.compile(rf"(?i)(?<![a-z]){_HEADS}")
_LINE = re.compile(r"[ \t>|*]{0,12}(?P<v>[^\n\r]{2,80}?)[ \t|]{0,12}\r?(?:\n|$)")
_STREET = re.compile(rf"(?:{STREET})[^\n]{{0,60}}")
_PLACE = re.compile(
    r"(?:[A-Z]{1,3}-)?\d{3,6}(?:[ -]?[A-Z\d]{2,4})? [^\W\d_][\w .'-]{1,40}(?:, [\w .]{2,30})?"
    r"|[^\W\d_][\w .'-]{1,40},? (?:[A-Z]{2,3} )?(?:\d{4,5}(?:-\d{4})?|[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}|[A-Z]\d[A-Z] ?\d[A-Z]\d)"
)
_PERSON = re.compile(PERSON)
_MOST_LINES = 6
_COLUMNS = (
    r"(?:street(?:[ _-]?(?:name|line|address))?|address(?:[ _-]?line)?[ _-]?[12]?|line[ _-]?[12]|stra(?:\xdf|ss)e|adresse|anschrift|direcci[o\xf3]n"
    r"|endere[c\xe7]o|indirizzo)[ _-]?[12]?"
)
_COLUMN_END = re.compile(
    rf"(?i)(?<=[\n,;\t| \"'_]){_COLUMNS}[\"']?[ \t]{{0,2}}[,;|\t\r\n]|(?<![\s\S]){_COLUMNS}[\"']?[,;|\t]"
)


def find_address_blocks(view: TextView) -> Iterator[Span]:
    """Find names, streets and towns on the lines after a label such as `Ship to:`."""
    for low, high in view.windows():
        for head in _HEAD.finditer(view.text, low, high):
            yield from _of_block(view.text, head.end())


def _of_block(text: str, at: int) -> Iterator[Span]:
    lines: list[re.Match[str]] = []
    while len(lines) < _MOST_LINES and (line := _LINE.match(text, at)):
        lines.append(line)
        at = line.end()
    street = next((number for number, line in enumerate(lines) if _STREET.fullmatch(line["v"])), None)
    if street is None:
        return
    for line in lines[:street]:
        if _PERSON.fullmatch(line["v"]) and is_person(line["v"]):
            yield Span(*line.span("v"), "PERSON")
    for number, line in enumerate(lines[street:]):
        if number and not _PLACE.fullmatch(line["v"]) and not _STREET.fullmatch(line["v"]):
            return
        yield Span(*line.span("v"), "ADDRESS")


def find_address_columns(view: TextView) -> Iterator[Span]:
    """Find streets in columns of that name."""
    read = -1
    for low, high in view.windows():
        for found in _COLUMN_END.finditer(view.text, low, high):
            if found.start() >= read:
                cells, read = find_cells_under(view.text, found.start())
                yield from cells


DETECTORS: tuple[Detector, ...] = (
    make_probed_detector(find_address_blocks, rf"(?i){_HEADS}", located=True),
    make_probed_detector(find_address_columns, rf"(?i){_COLUMNS}[\"']?[ \t]{{0,2}}[,;|\t\r\n]", located=True),
)
