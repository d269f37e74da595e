# ruff: noqa: E501 (patterns)
"""Detect names of persons in the columns of tables: CSV, TSV, Markdown, `psql`, `mysql` and aligned text.

A column of persons is told by its label and by its cells: enough of them begin with a given name, or the
table describes persons in its other columns too.
"""

import re
from collections.abc import Iterator

from tracemill.privacy.core.lazy_pattern import LazyPattern
from tracemill.privacy.core.read_table import Column, TableCell, find_columns_under
from tracemill.privacy.core.rule import Detector, Span, TextView, make_probed_detector
from tracemill.privacy.core.table_columns import PERSON_LABEL, column_type
from tracemill.privacy.core.word_lists import COMMON_WORDS
from tracemill.privacy.personal.given_names import begins_with_given_name
from tracemill.privacy.personal.labelled_data import PERSON
from tracemill.privacy.personal.labelled_people import name_in_order, spell_in_raw
from tracemill.privacy.personal.other_scripts import is_name_cell, is_name_column
from tracemill.privacy.personal.role_words import (
    LATIN_ROLES,
    is_holder_of_people,
    is_name_label,
    is_role_label,
)
from tracemill.privacy.personal.unannounced_data import is_full_name

_CAPITALISED = r"[A-Z\xc0-\xde\u0100-\u017d][^\W\d_]+"
_WHOLE = LazyPattern(rf"{PERSON}|{_CAPITALISED}, {_CAPITALISED}")
_PART = LazyPattern(r"[^\W\d_]{2,24}(?:[ '\u2019-][^\W\d_]{1,24}){0,3}")
_OF_PART = re.compile(
    rf"(?i){PERSON_LABEL}|soyad\u0131?|soyisim|p\u0159\xedjmen\xed|prijmeni|keresztn\xe9v|vezet\xe9kn\xe9v|prenume|prezime|priezvisko|surname"
)
# Labels of other columns that tables of persons have.
_OF_PERSONS = re.compile(
    r"(?i)(?:.*[ _.-])?(?:e-?mail|phone|mobile|telefon\w*|tel|t\xe9l\w*|age|alter|edad|gender|sex|geschlecht|dob|born|birth\w*|geburts\w+|birthday|iban|department|dept|abteilung|job|position|salary|gehalt|hired?(?:[ _]date)?|grade|klasse|ward|diagnosis|mrn|nationality|address|anschrift|adresse|ssn|seat|room|wohnort)"
)
_PERSONAL = frozenset(
    ("ADDRESS", "PHONE", "NATIONAL_ID", "SSN", "PASSPORT", "BIRTH_DATE", "PATIENT_ID", "BANK_ACCOUNT")
)
_NUMBER_FORMS = (
    r"(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}|\+[1-9]\d{0,2}[\d ()-]{7,16}\d|0[1-9]\d{1,4}[ /-]\d{2,8}(?: \d{2,4}){0,3}"
    r"|[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?|[\w.+-]{2,40}@[\w-]{2,40}(?:\.[\w-]{2,24}){1,3}|4\d{15}|5[1-5]\d{14}|\d{3} \d{3} \d{3}"
)
"""Forms of numbers and addresses of persons: social security, telephone, account, e-mail, card."""
_NUMBER_CELL = LazyPattern(
    rf"(?:[,;\t|(][ ]?[\"']?|(?<![^\n])[\"']?)(?:{_NUMBER_FORMS})(?=[\"']? ?(?:[,;\t|)]|\r?\n|$))"
)
_NAME_CELL = LazyPattern(
    rf"(?:[,;\t|(][ ]?[\"']?|(?<![^\n])[\"']?)(?P<v>{PERSON})(?=[\"']?[ ]?(?:[,;\t|)]|\r?\n|$))"
)
_TITLE_CELL = LazyPattern(
    rf"(?P<s>[,;\t|])(?:Mrs?|Ms|Miss|Dr|Herr|Frau|Mme|Mlle|Sra?)\.?(?P=s)(?P<v>{_CAPITALISED}(?:[ -]{_CAPITALISED})?)(?P=s)(?P<w>{_CAPITALISED}(?:[ -]{_CAPITALISED})?)(?P=s)"
)
_TITLES = frozenset(("Mr", "Mrs", "Ms", "Miss", "Dr", "Prof", "Herr", "Frau", "Mme", "Mlle", "Name"))
_LONGEST_ROW = 400  # characters
_LEAST_GIVEN = 0.25
"""The share of the cells that begin with a given name."""


def find_name_columns(view: TextView) -> Iterator[Span]:
    """Find the names of persons below the labels of columns."""
    text, read = view.text, -1
    for low, high in view.windows():
        at = max(low, read)
        while at <= high:
            columns, end = find_columns_under(text, at, _is_label)
            for column in columns:
                yield from _names_in(text, column)
            read = at = end + 1


def find_names_beside_numbers(view: TextView) -> Iterator[Span]:
    """Find names of persons in rows without a header where another cell is a number of a person."""
    text = view.text
    for low, high in view.windows():
        for number in _NUMBER_CELL.finditer(text, low, high):
            start, stop = text.rfind("\n", 0, number.start()) + 1, text.find("\n", number.end())
            stop = len(text) if stop < 0 else stop
            if stop - start > _LONGEST_ROW:
                continue
            for found in _NAME_CELL.finditer(text, start, stop):
                if is_full_name(found["v"]):
                    yield Span(*found.span("v"), "PERSON")


def find_titled_cells(view: TextView) -> Iterator[Span]:
    """Find a first and a last name in cells behind one with a title: `Mrs,Ada,Byron`."""
    for found in _TITLE_CELL.finditer(view.text):
        if not _TITLES.intersection((found["v"], found["w"])):
            yield Span(*found.span("v"), "PERSON")
            yield Span(*found.span("w"), "PERSON")


def _is_label(name: str) -> bool:
    if not 1 < len(name) <= 48 or name.lower() == "id":
        return False
    latin = bool(_OF_PART.fullmatch(name)) or is_name_label(name) or is_holder_of_people(name)
    return latin or is_name_column(name)


def _names_in(text: str, column: Column) -> Iterator[Span]:
    """Yield the names in a column where its cells or the other columns show that it holds persons."""
    filled = [cell for cell in column.cells if cell.end - cell.start > 1]
    if _OF_PART.fullmatch(column.name):
        yield from (Span(cell.start, cell.end, "PERSON") for cell in filled if _is_part(text, cell))
        return
    if is_name_column(column.name):
        values = ((cell, text[cell.start : cell.end]) for cell in filled)
        yield from (
            Span(cell.start, cell.end, "PERSON") for cell, value in values if is_name_cell(column.name, value)
        )
        return
    names = [cell for cell in filled if _is_whole(text[cell.start : cell.end])]
    given = sum(begins_with_given_name(text[cell.start : cell.end]) for cell in names)
    described = is_role_label(column.name) or any(_is_of_persons(label) for label in column.header)
    if given >= max(1, _LEAST_GIVEN * len(filled)) or (described and len(names) * 2 > len(filled)):
        yield from (Span(cell.start, cell.end, "PERSON") for cell in names)


def _is_of_persons(label: str) -> bool:
    return _OF_PERSONS.fullmatch(label) is not None or column_type(label) in _PERSONAL


def _is_part(text: str, cell: TableCell) -> bool:
    value = text[cell.start : cell.end]
    last = value.rpartition(" ")[2]
    return last[0].isupper() and _PART.fullmatch(value) is not None and value.lower() not in COMMON_WORDS


def _is_whole(value: str) -> bool:
    name = value.title() if value.isupper() else value
    return _WHOLE.fullmatch(name) is not None and is_full_name(name_in_order(name))


_LABELS = sorted(
    {spell_in_raw(word.rpartition(" ")[2]) for word in (*LATIN_ROLES, "name", "nom", "nome", "nombre", "imi\u0119", "jm\xe9no", "ime", "nume", "n\xe9v", "soyad", "soyad\u0131", "p\u0159\xedjmen\xed", "prezime", "surname", "person", "user", "staff")}
)  # fmt: skip


def _probes() -> Iterator[str]:
    yield r"(?i)[\n,;\t\"][a-z]{1,12} names?\"?[,;\t\r\n]"
    label = rf"(?:{'|'.join(_LABELS)})(?:_?names?|s)?"
    yield rf"(?i)(?:^|[\n,;\t_]\"?){label}\"?[,;\t]"
    yield rf"(?i)[,;\t_]\"?{label}\"?\r?\n"
    yield rf"(?i)[\n|_ ][*]*{label}[*]* *\|"
    yield rf"(?i)(?:  |\n|_){label}(?:  |\r?\n[ \t]*--)"
    yield r"(?:^|\n|[,;\t|])[\"'`* ]{0,2}\?{2,12}[\"'`* ]{0,2}[,;\t|]"


DETECTORS: tuple[Detector, ...] = (
    make_probed_detector(find_name_columns, *_probes(), located=True),
    make_probed_detector(
        find_titled_cells,
        r"[,;\t|](?:Mrs?|Ms|Miss|Dr|Herr|Frau|Mme|Mlle|Sra?)\.?[,;\t|][A-Z?\xc0-\xde]",
    ),
    make_probed_detector(
        find_names_beside_numbers,
        r"(?:^|[\n,;\t|(] ?)[\"']?(?:\d{3}-\d\d-\d{4}|\+[1-9]\d{0,2}[\d ()-]{7,16}\d|0[1-9]\d{1,4}[ /-]\d{2,8}(?: \d{2,4}){0,3}|[A-Z]{2}\d{2} ?[A-Z0-9]{4}|[\w.+-]+@[\w-]+\.[\w.-]+|[45]\d{15}|\d{3} \d{3} \d{3})[\"']? ?[,;\t|)\r\n]",
        located=True,
    ),
)
