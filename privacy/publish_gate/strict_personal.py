# ruff: noqa: E501 (patterns)
"""Strict rules of the gate for personal data: any name, number, date or address after a label.

Country and form do not matter. In redaction these rules would damage code; a release has few such values,
and each is reviewed.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from tracemill.privacy.core.placeholder_keys import find_keyed_placeholders
from tracemill.privacy.core.rule import Span
from tracemill.privacy.personal.labelled_data import PERSON
from tracemill.privacy.personal.unannounced_data import is_full_name

_LONGEST_NAME = 64  # characters of a column that can say what it holds
# Where a word begins: no letter is before it, or it is the next word of `homePhone`.
_EDGE = r"(?<![^\W_\d])|(?<=[a-z])(?=[A-Z])"
_SIGNS = r"[\"'`*_\\]{0,3}"
# What is between the word and the value: `: `, `" = "`, `** - `, ` is `, `</b> `.
_SET = rf"{_SIGNS}[ \t]{{0,3}}(?::|=>?|[-\u2013,|][ \t]|[ \t](?:is|was|are|ist|est|es)[ \t])[ \t]{{0,3}}{_SIGNS}[ \t]{{0,2}}"
_REMARK = r"(?:[ \t]{0,2}\([^()\n]{0,40}\))?"
_MONTHS = r"(?:jan|feb|f\xe9v|mar|m\xe4r|apr|avr|may|mai|jun|juin|jul|juil|aug|ao\xfb|sep|oct|okt|nov|dec|dez|d\xe9c)[a-z\xe9\xfb]{0,7}"
_DAY = (
    rf"(?:(?:19|20)\d\d[-/. ]?[01]?\d[-/. ]?[0-3]?\d(?:T[\d:.]+Z?)?|[0-3]?\d[-/. ][01]?\d[-/. ](?:19|20)?\d\d"
    rf"|[01]?\d/[0-3]?\d/(?:19|20)?\d\d|[0-3]?\d(?:st|nd|rd|th|\.|er)?[- ](?:of )?{_MONTHS}[-., ]{{1,2}}(?:19|20)?\d\d"
    rf"|{_MONTHS}[- ][0-3]?\d(?:st|nd|rd|th)?,? (?:19|20)\d\d)(?![\w-]|\.\d)"
)
_HOLDER = (
    r"(?:customer|client|patient|employee|tenant|account[ _-]?holder|card[ _-]?holder|policy[ _-]?holder|beneficiary|applicant|recipient|insured"
    r"|contact|emergency[ _-]?contact|next of kin|spouse|guardian|payer|payee|passenger|guest|attendee|borrower|signatory|doctor|physician)"
)
_FULL_NAME = (
    r"(?:(?:full|legal|real|birth|maiden|customer|patient|client|employee|contact|holder|person|display|billing|shipping|recipient|applicant|passenger)[ _-]?name"
    rf"|{_HOLDER}(?:[ _-]?(?:person|name))?|signed by|attn|ansprechpartner(?:in)?|kund(?:e|in)|(?:kunden|patienten|mitarbeiter|inhaber|benutzer)name|kontoinhaber(?:in)?|versicherte[rn]?|mitarbeiter(?:in)?"
    r"|nom(?: et pr\xe9nom|[ _-]complet)?|titulaire|nombre(?:[ _-]completo| y apellidos)?|titular|cliente|nome(?:[ _-]completo)?|imi\u0119 i nazwisko|naam|navn|namn)"
)
_PART_OF_NAME = r"(?:(?:first|given|middle|last|family|sur|maiden)[ _-]?name|vorname|nachname|familienname|pr\xe9nom|nom de famille|apellidos?|cognome|sobrenome|nazwisko|imi\u0119|efternamn|f\xf6rnamn|voornaam|achternaam)"
_PHONE_WORD = (
    r"(?:(?:home|work|mobile|cell|office|contact|emergency)?[ _-]?(?:tele)?phone(?:[ _-]?(?:number|num|no|nr))?|telefon(?:nummer|nr)?|handy(?:nummer)?|rufnummer|t\xe9l(?:\xe9phone)?|tel(?:efono|efone)?(?:[.-]{0,2}nr)?|mob|portable|m\xf3vil|celular|cellulare"
    r"|mobil(?:e|nummer)(?:[ _-]?(?:number|no|nr))?|cell(?:[ _-]?(?:number|no|nr))|fax(?:[ _-]?(?:number|no|nr))?|whatsapp|(?:contact|callback)[ _-]?(?:number|no)|my number)"
)
_ID_WORD = (
    r"(?:(?:national|personal|citizen|social|tax|fiscal|identity|identification|resident|insurance|health|medicare)[ _-]?(?:id|identity|identification|insurance|security|card|service|payer)?(?:[ _-]?(?:card|code|file|number|num|no|nr|id))?"
    r"|driv(?:er|ing)(?:['\u2019]?s)?[ _-]?licen[cs]e(?:[ _-]?(?:number|no|nr|id))?|bsn|burgerservicenummer|sofinummer|nir|insee|(?:num\xe9ro )?(?:de )?s\xe9curit\xe9 sociale|s\xe9cu"
    r"|steuer[ _-]?(?:id(?:entifikations?)?|nummer|nr)(?:nummer|nr)?|sozialversicherungs(?:nummer|nr)|svnr|personalausweis(?:nummer)?|personn?ummer|personnummer|f\xf8dselsnummer|cpr(?:[ -]?nr)?"
    r"|rijksregister(?:nummer)?|num\xe9ro national|insz|niss|codice[ _]?fiscale|ahv|avs|oasi|henkil\xf6tunnus|hetu|sin|tfn|nhs|nif|nie|dni|rut|cedula|c\xe9dula|pesel|cnp|rodn\xe9 \u010d\xedslo|egn|oib|jmbg|tc kimlik|kimlik)"
)
_HOME_WORD = (
    r"(?:(?:home|postal|mailing|billing|shipping|delivery|street|residential|private|permanent|current|ship(?:ping)? to|bill(?:ing)? to)?[ _-]?(?:address|adresse|addr)(?:[ _-]?line)?[ _-]?\d?|residence|domicile|domicilio|direcci\xf3n|endere\xe7o|indirizzo|anschrift|wohnanschrift"
    r"|(?:wohnhaft|wohnt)(?: in)?|lives? (?:at|in)|living at|resid(?:es|ing|ent) (?:at|in)|habite|adres)"
)
_ID_FORM = r"(?=(?:[^\n\d]{0,12}\d){6})[A-Z]{0,3}[ -]?\d[A-Z0-9]*(?:[ ./+-]{1,2}[A-Z0-9]{1,8}){0,6}(?!\w)"
_PHONE_FORM = r"\+?\(?\d{1,14}\)?(?:[ ./-]{1,3}\(?\d{1,8}\)?){0,6}(?![\w-]|\.\d)"
_HOME_FORM = (
    r"(?:(?:Flat|Apt\.?|Apartment|Unit|Suite|Room|No\.?|c/o|P\.? ?O\.? Box|Postfach|BP)[ .][^\n\"'`<>|;{}=]{4,100}"
    r"|\d{1,5}[A-Za-z]?,? (?:[A-Z\xc0-\xde][\w.'-]{1,24},?[ \n]){1,5}[^\n\"'`<>|;{}=]{0,80}"
    r"|[A-Z\xc0-\xde][\w\xdf.'-]{1,30},? (?=[^\n\"'`<>|;{}=]{0,80}\d)[^\n\"'`<>|;{}=]{6,100})"
)


_ROWS = "01234567890123456789 98765432109876543210"


def _is_name(value: str) -> bool:
    return len(value) > 1 and is_full_name(value) and not is_personal_label(value)


def _is_phone(value: str) -> bool:
    digits = "".join(filter(str.isdigit, value))
    return 7 <= len(digits) <= 15 and _is_drawn(digits)


def _is_id(value: str) -> bool:
    digits = "".join(filter(str.isdigit, value))
    return len(digits) >= 6 and _is_drawn(digits)


def _is_drawn(digits: str) -> bool:
    """Tell a number from one of documentation: three different digits or more, and no sequence."""
    return len(set(digits)) > 2 and digits not in _ROWS


def _is_code(value: str) -> bool:
    return any(map(str.isdigit, value)) and len(set(value)) > 3 and value not in _ROWS


def _is_home(value: str) -> bool:
    """Tell whether a value has capitalised words and a number, and is no address of a machine or code."""
    words = re.findall(r"(?<![\w.])[A-Z\xc0-\xde][\w\xdf'-]{2,}", value)
    numbers = re.findall(r"(?<![\w.:])(?:[A-Z]{1,2})?\d{1,5}[A-Za-z]{0,2}(?![\w:]|\.\d)", value)
    return bool(words and numbers) and not re.search(r"0x|::|\(|\d\.\d|https?:|@", value)


def _any(_: str) -> bool:
    return True


class _Rule(NamedTuple):
    kind: str
    label: str
    """The label of a personal value, also as the name of a column."""
    between: str
    form: str
    holds: Callable[[str], bool]
    cased: bool = False
    """Whether case matters in the form."""

    def compiled(self) -> re.Pattern[str]:
        form = self.form if self.cased else f"(?i:{self.form})"
        return re.compile(rf"(?i:{self.label}{_REMARK}{self.between})(?P<v>{form})")


_RULES = (
    _Rule("STRICT_PERSON", _FULL_NAME, _SET, PERSON, _is_name, cased=True),
    _Rule("STRICT_PERSON", _PART_OF_NAME, _SET, rf"(?:{PERSON}|[A-Z\xc0-\xde][^\W\d_]{{1,24}}(?![\w(.]))", _is_name, cased=True),
    _Rule("STRICT_BIRTH_DATE", r"(?:date[ _-]?of[ _-]?birth|birth[ _-]?(?:date|day)?|d\.?o\.?b\.?|born(?: on)?|geb(?:oren|urtsdatum|urtstag|\.?-?datum)?(?: am)?|n\xe9e?(?: le)?|naissance|nacid[oa](?: el)?|nacimiento|nascid[oa](?: em)?|nascimento|nat[oa] il|nascita|f\xf6dd|f\xf8dt)",
          rf"(?:{_SET}|[ \t]{{1,3}})(?:the )?", _DAY, _any),
    _Rule("STRICT_PHONE", _PHONE_WORD, rf"(?:{_SET}|\.?[ \t]{{1,3}}{_SET}|\.?[ \t]{{1,3}})", _PHONE_FORM, _is_phone),
    _Rule("STRICT_PHONE", r"(?:call|ring|text|reach|phone) (?:me|us|him|her|them)?", r" ?(?:at|on|under|via)[: ]{1,2}", _PHONE_FORM, _is_phone),
    _Rule("STRICT_ID", _ID_WORD, rf"(?:(?:[ _.-]{{1,2}}(?:number|num|no|nr|code))?\.?{_SET}|[ .#-]{{1,3}}(?:number|nr|no)?\.?[ :#]{{0,2}})", _ID_FORM, _is_id),
    _Rule("STRICT_ID", r"(?:passport|reisepass|passeport|pasaporte|passaporte)(?:[ _-]?(?:number|no|nr))?\.?", _SET, r"[A-Z0-9]{7,9}(?!\w)", _is_code, cased=True),
    _Rule("STRICT_ADDRESS", _HOME_WORD, rf"(?:{_SET}\s{{0,6}}|[ \t]{{1,2}}|[ \t]{{0,2}}\n\s{{0,6}})", _HOME_FORM, _is_home, cased=True),
)  # fmt: skip
_COMPILED = tuple((rule, rule.compiled()) for rule in _RULES)
_HEADER = re.compile(
    r"(?m)^[\w \"'.-]{1,40}(?:(?P<joint>[,;\t|])[\w \"'.-]{1,40}(?:(?P=joint)[\w \"'.-]{0,40})*)$"
)
_CELLS = {joint: re.compile(rf'(?:"[^"\n]*"|[^"\n{joint}])*') for joint in ",;\t|"}
_LABEL = "|".join(rule.label for rule in _RULES)
_LABELLED = re.compile(rf"(?:{_EDGE})(?=(?i:{_LABEL}))")
_NAMES = re.compile(
    rf"(?:{_EDGE})(?i:{_LABEL}|iban|author|maintainer|e?-?mail|passport|employee|ssn|nino|lat(?:itude)?|lng|lon(?:gitude)?|gps|aadhaar|cpf|pan)(?![a-z])"
)


@lru_cache(maxsize=4096)
def is_personal_label(name: str) -> bool:
    """Tell whether a column or key of this name holds personal data."""
    return len(name) <= _LONGEST_NAME and bool(_NAMES.search(name))


def find_named(text: str, name: str, find: Callable[[str], Iterable[Span]]) -> list[Span]:
    """Return the findings in a text, and with a personal label those in `"name": "text"`."""
    spans = list(find(text))
    if is_personal_label(name):
        before = f'"{name}": "'
        for start, end, kind in find(f'{before}{text}"'):
            if start >= len(before) and end <= len(before) + len(text):
                spans.append(Span(start - len(before), end - len(before), kind))
    return spans


def find_in_columns(text: str) -> Iterator[Span]:
    """Yield personal values below a heading, in lines with as many values as the heading."""
    for head in _HEADER.finditer(text):
        names = [name.strip(" \"'") for name in head[0].split(head["joint"])]
        wanted = [at for at, name in enumerate(names) if is_personal_label(name)]
        start = head.end() + 1
        while wanted and start < len(text):
            cells = list(_cells(text, start, head["joint"]))
            if len(cells) != len(names):
                break
            for found, name in ((cells[at], names[at]) for at in wanted):
                value = found[0].strip("\"'")
                begin = found.start() + found[0].find(value)
                for span in find_named(value, name, find_labelled):
                    yield Span(begin + span.start, begin + span.end, span.kind)
            start = cells[-1].end() + 1


def _cells(text: str, at: int, joint: str) -> Iterator[re.Match[str]]:
    """Yield the values of the line that begins at a place; quotes may hold the separator."""
    while cell := _CELLS[joint].match(text, at):
        yield cell
        if text[cell.end() : cell.end() + 1] != joint:
            return
        at = cell.end() + 1


def find_personal_strictly(text: str) -> Iterator[Span]:
    """Yield values that a label before or above them makes personal.

    A false finding costs a review, a missed one is published.
    """
    yield from find_labelled(text)
    yield from find_in_columns(text)


def find_labelled(text: str) -> Iterator[Span]:
    """Yield values that a label before them makes personal."""
    for label in _LABELLED.finditer(text):
        for rule, pattern in _COMPILED:
            match = pattern.match(text, label.start())
            if match and rule.holds(match["v"]) and not find_keyed_placeholders(match["v"]):
                yield Span(match.start("v"), match.start("v") + len(match["v"].rstrip(" ,.\n")), rule.kind)
