# ruff: noqa: E501 (patterns)
"""Judge the cells of a table by the names of their columns."""

import re
from functools import lru_cache

from tracemill.privacy.core.entropy import is_password, is_token
from tracemill.privacy.core.number_forms import is_number_valid, numbers_of_column
from tracemill.privacy.core.placeholder_keys import find_keyed_placeholders
from tracemill.privacy.core.secret_names import may_be_secret, secret_name_kind
from tracemill.privacy.core.set_passwords import is_made_up_key, is_set_password

PERSON_LABEL = (
    r"(?:(?:full|first|last|middle|given|family|sur|maiden|legal|birth)[ _-]?names?|fore_?names?|surname|vorname|nachname|familienname|geburtsname|pr[e\xe9]nom|nom[ _]de[ _]famille"
    r"|apellidos?|cognome|sobrenome|voornaam|achternaam|f\xf6rnamn|efternamn|fornavn|etternavn|efternavn|imi\u0119|imie|nazwisko|k\u0159estn\xed|p\u0159\xedjmen\xed|etunimi|sukunimi)"
)
"""The pattern of a label over or before a part of a person's name."""
_PERSON = re.compile(PERSON_LABEL, re.IGNORECASE)
_STREET = re.compile(
    r"(?:(?:ship(?:ping)?|bill(?:ing)?|home|mail(?:ing)?|postal|customer|delivery)_?)?(?:street(?:_?(?:name|line|address))?|address(?:_?line)?_?[12]?|line_?[12]"
    r"|stra(?:\xdf|ss)e|adresse|anschrift|direcci[o\xf3]n|endere[c\xe7]o|indirizzo)_?[12]?"
)
_TELEPHONE = re.compile(r"(?:tele)?phone|cell|tel")
_NAME_CELL = re.compile(r"[^\W\d_][^\W\d_'\u2019.-]*(?: [^\W\d_][^\W\d_'\u2019.-]*){0,4}")
_PHONE_CELL = re.compile(r"\+?[\d() ./-]{7,24}")
_DATE_CELL = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}")
_NO_NAME = frozenset(
    (
        "string",
        "text",
        "varchar",
        "null",
        "none",
        "true",
        "false",
        "required",
        "optional",
        "name",
        "unknown",
        "yes",
        "no",
    )
)


@lru_cache(maxsize=4096)
def column_type(name: str) -> str | None:
    """Return what the cells of a column hold: `SECRET`, `PERSON`, `ADDRESS`, the type of a number, or None."""
    name = re.sub(r"[ .-]+", "_", name.strip().strip("\"'`[]*")).rpartition(".")[2]
    folded = name.lower()
    if not 1 < len(name) <= 48 or not re.fullmatch(r"\w+", name):
        return None
    for pattern, kind in ((_PERSON, "PERSON"), (_STREET, "ADDRESS"), (_TELEPHONE, "PHONE")):
        if pattern.fullmatch(folded):
            return kind
    if numbers := numbers_of_column(name):
        return numbers[0].kind
    return "SECRET" if may_be_secret(name) else None


def cell_kind(name: str, value: str, *, data: bool) -> str | None:
    """Return the type of what a cell holds, None where it is nothing private.

    `data`: the table holds data, not words about it, so a password may be a word.
    """
    expected = column_type(name)
    if expected is None or len(value) < 2 or find_keyed_placeholders(value):
        return None
    if expected == "PERSON":
        named = _NAME_CELL.fullmatch(value) and value[0].isupper() and value.lower() not in _NO_NAME
        return expected if named and len(value) >= 2 else None
    if expected == "ADDRESS":
        return expected if _is_street(value) else None
    if expected == "PHONE":
        return expected if _PHONE_CELL.fullmatch(value) and sum(map(str.isdigit, value)) >= 7 else None
    if expected == "BIRTH_DATE" and _DATE_CELL.fullmatch(value):
        return expected
    if expected != "SECRET":
        numbers = numbers_of_column(re.sub(r"[ .-]+", "_", name))
        return next((n.kind for n in numbers if n.form.fullmatch(value) and is_number_valid(n, value)), None)
    if not data and (" " in value or value.isalpha() or value.isdigit()):
        return None
    name = re.sub(r"[ .-]+", "_", name.strip())
    if kind := secret_name_kind(name, value, data):
        return kind
    if is_token(value) or is_made_up_key(value) or is_set_password(value):
        return expected
    return expected if data and is_password(value) and any(map(str.isdigit, value)) else None


def _is_street(cell: str) -> bool:
    return " " in cell and any(map(str.isdigit, cell)) and any(map(str.isalpha, cell)) and len(cell) < 120
