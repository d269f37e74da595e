# ruff: noqa: E501 (patterns)
"""Detect personal data after a label: personal numbers, birth dates, addresses, places, authors."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from tracemill.privacy.core.rule import Detector, Span, TextView, make_probed_detector
from tracemill.privacy.core.word_lists import NO_PERSONS

_FILLERS = (
    r"(?:card|number|num|no|nr|nummer|numero|n\xfamero|code|id|is|was|ist|est|es|\xe9|do|da|de|del|du|der|des|of|the|on|am|le|el|my|his|her"
    r"|cliente?|customer|holder|user|coordinates?|position|location)"
)
TAGS = r"(?:[ \t]{0,2}</?[a-z]\w{0,10}[^<>\n]{0,40}>){0,3}"
"""The pattern of HTML tags between a label and its value."""
_BETWEEN = rf"[\"'`]?(?:[ \t_.:=(/#-]{{1,4}}{_FILLERS}(?![A-Za-z]))*{TAGS}[ \t.:=(#\xba\xb0/)>|*-]{{0,4}}[\"'`]?[ \t]{{0,4}}[:=*]{{0,3}}[ \t]{{0,4}}[\"'`(\[]{{0,2}}"
_END = r"(?![\w-]|\.\d)"


def _digits(value: str) -> list[int]:
    return [int(c) for c in value if c.isdigit()]


def _weighed(digits: list[int], weights: range | tuple[int, ...]) -> int:
    return sum(a * b for a, b in zip(digits, weights, strict=False))


def _is_cpf(value: str) -> bool:
    """Check the two check digits of a Brazilian CPF (weights 10 to 2 and 11 to 2, modulo 11)."""
    digits = _digits(value)
    first, second = (-_weighed(digits, range(n, 1, -1)) % 11 % 10 for n in (10, 11))
    return len(set(digits)) > 1 and digits[9:] == [first, second]


def _is_pesel(value: str) -> bool:
    """Check the check digit of a Polish PESEL (weights 1, 3, 7, 9, modulo 10)."""
    digits = _digits(value)
    return len(set(digits)) > 2 and _weighed(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)) % 10 == 0


def _is_dni(value: str) -> bool:
    """Check the letter of a Spanish DNI (its number modulo 23)."""
    number = value[:-1].upper().replace("-", "").replace(".", "")
    number = str("XYZ".index(number[0])) + number[1:] if number[0] in "XYZ" else number
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == value[-1].upper()


def _compose(a: int, b: int) -> int:
    """Multiply in the dihedral group of ten elements: 0 to 4 turn, 5 to 9 turn and mirror."""
    if a < 5:
        return (a + b) % 5 if b < 5 else 5 + (a + b) % 5
    return 5 + (a - b) % 5 if b < 5 else (a - b) % 5


def _is_aadhaar(value: str) -> bool:
    """Check Verhoeff's check digit (Verhoeff, Error Detecting Decimal Codes, 1969)."""
    check, step = 0, (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)
    for at, digit in enumerate(reversed(_digits(value))):
        for _ in range(at % 8):
            digit = step[digit]
        check = _compose(check, digit)
    return check == 0


def _is_resident(value: str) -> bool:
    """Check the check digit of a Chinese resident number (ISO 7064, modulo 11-2)."""
    total = sum(int(c) * 2 ** (17 - at) for at, c in enumerate(value[:17]))
    return "10X98765432"[total % 11] == value[17].upper()


def _is_passport(value: str) -> bool:
    return sum(map(str.isdigit, value)) >= (2 if len(value) == 9 else 5) and len(set(value)) > 3


def _any(_: str) -> bool:
    return True


# Type, labels in small letters, form and check of a number.
_NUMBERS: tuple[tuple[str, str, str, Callable[[str], bool]], ...] = (
    ("NATIONAL_ID", "cpf", r"\d{3}\.?\d{3}\.?\d{3}-?\d{2}", _is_cpf),
    ("NATIONAL_ID", "pesel", r"\d{11}", _is_pesel),
    ("NATIONAL_ID", "nino|national insurance|national_insurance|nationalinsurance|ni no|ni number|ni_number|ni num|ni nr", r"(?-i:[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D])", _any),
    ("NATIONAL_ID", "dni|nie|nif|identidad", r"(?:[XYZ]-?\d{7}|\d{2}\.?\d{3}\.?\d{3})-?[A-Z]", _is_dni),
    ("NATIONAL_ID", "pan", r"(?-i:[A-Z]{3}[ABCFGHJLPTK][A-Z]\d{4}[A-Z])", _any),
    ("NATIONAL_ID", "aadhaar|aadhar|uidai", r"[2-9]\d{3}[ -]?\d{4}[ -]?\d{4}", _is_aadhaar),
    ("NATIONAL_ID", "codice fiscale|codice_fiscale|codicefiscale", r"[A-Z]{6}\d\d[A-EHLMPRST]\d\d[A-Z]\d{3}[A-Z]", _any),
    ("NATIONAL_ID", "resident id|resident_id|id card|id_card|idcard", r"\d{6}(?:19|20)\d{9}[\dXx]", _is_resident),
    ("SSN", "ssn|social security|social_security", r"(?!000|666|9)\d{3}(?!00)\d\d(?!0000)\d{4}", _any),
    ("PASSPORT", "passport|reisepass|ausweis|passeport|pasaporte|passaporte|paszport", r"(?-i:[A-Z]{0,2}\d[A-Z0-9]{5,8}|[A-Z][A-Z0-9]{6,8})", _is_passport),
    ("BIRTH_DATE",
     "date of birth|date_of_birth|date-of-birth|dateofbirth|birthdate|birth_date|birth date|birthday|dob|d.o.b|born|geburtsdatum|geburtstag|geboren|naissance|nacimiento|nascimento|nascita",
     r"(?:(?:19|20)\d\d[-/.](?:0?[1-9]|1[0-2])[-/.](?:[12]\d|3[01]|0?[1-9])|(?:[0-3]?\d)[-/.](?:[0-3]?\d)[-/.](?:19|20)\d\d|[0-3]?\d\.? (?:jan|feb|mar|m\xe4r|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)[a-z]{0,7}\.?,? (?:19|20)\d\d|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,7}\.? [0-3]?\d,? (?:19|20)\d\d)",
     _any),
    ("LOCATION", "latitude|longitude|lat|lng|lon|long", r"-?\d{1,3}\.\d{4,12}", _any),
)  # fmt: skip
_ALONE = re.compile(r"(?<![\w.-])\d{3}\.\d{3}\.\d{3}-\d{2}(?![\w-]|\.\d)")
_GPS_WORD = r"(?:gps|geo|coord(?:inate)?s?|latlng|lat[,_/ ]{1,2}l(?:ng|on|ong)|position|located at)"
_GPS = re.compile(
    rf"(?i){_GPS_WORD}{_BETWEEN}(?P<v>-?\d{{1,2}}\.\d{{3,12}})[\"'`]?\s{{0,2}},\s{{0,2}}[\"'`]?(?P<w>-?\d{{1,3}}\.\d{{3,12}})(?!\w)"
)
STREET = (
    r"(?:\d{1,5}[A-Za-z]? (?:[A-Z\xc0-\xde][\w'.-]{1,24} ){1,4}(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Drive|Dr|Boulevard|Blvd|Way|Court|Ct|Place|Pl|Square|Sq|Terrace|Close|Crescent|Highway|Hwy|Parkway|Pkwy|Gardens|Row|Hill)\b\.?"
    r"|\d{1,4}(?: ?bis| ?ter)?,? (?:rue|avenue|av\.|boulevard|bd|place|chemin|impasse|all\xe9e|quai|route|cours) [^\n,\"'<>|;]{2,40}"
    r"|[A-Z\xc0-\xde][\w\xdf.-]{1,30}(?: [\w\xdf.-]{1,20}){0,2}?[ -]?(?:[Ss]tra(?:\xdf|ss)e|[Ss]tr\.|[Ww]eg|[Pp]latz|[Aa]llee|[Gg]asse|[Dd]amm|[Rr]ing|[Uu]fer|straat|gatan|vej) \d{1,4}[a-z]?"
    r"|(?:Calle|C/|Avenida|Av\.|Rua|R\.|Via|Plaza|Piazza|Pra\xe7a|Travessa|Viale|Corso|Ulica|ul\.) [^\n,\"'<>|;\d]{2,40},? (?:n[.\xba\xb0o]{1,2} ?)?\d{1,5}(?:[ /]\d{1,4})?)"
)
"""The pattern of a street with its number in English, French, German, Spanish, Portuguese or Italian."""
_ADDRESS = re.compile(
    r"(?:(?i:address(?:e|es)?(?:[ _-]?line)?[ _-]?\d?|street(?:[ _-]?(?:name|line|address))?[ _-]?\d?|line[ _-]?[12]|(?:ship|deliver|bill|send|invoice)(?:ed)?[ _-]to|anschrift|stra(?:\xdf|ss)e|direcci[o\xf3]n|endere[c\xe7]o|indirizzo|adres|rua|lives? at|resid(?:es|ing) at|\u4f4f\u6240)"
    r"[\"'`]?[ \t]{0,3}[:=]?[ \t]{0,4}[\"'`]?)"
    rf"(?P<v>{STREET}(?:,? [^\n\"'`<>|;{{}}]{{2,80}})?)"
)

_COMPANY = re.compile(
    r"(?i)(?<![^\W_])(?:copyright|inc|llc|ltd|limited|gmbh|ag|sa|s\.a|bv|corp(?:oration)?|co|company|foundation|team|contributors?|authors?|developers?|maintainers?|project|community|software|systems?|labs?|laborator(?:y|ies)|"
    r"university|institute|group|consortium|association|society|organi[sz]ation|committee|the|all|rights|reserved|free|open|source|google|microsoft|apple|facebook|meta|amazon|ibm|intel|nvidia|oracle|red hat|mozilla|technolog(?:y|ies)|"
    r"networks?|solutions|studios?|media|bot|holders?|owners?|your|name|here|license[ds]?|mit|apache|bsd|regents|see|and|by|python|research|center|centre|council|department|industries|partners|services|web|data|cloud|security|digital)(?![^\W_])"
)
_MINGLED = re.compile(r"(?<!^Mc)(?<!^Mac)(?<!^De)(?<!^Di)(?<!^La)(?<!^Le)(?<!^Fitz)(?<=[a-z])[A-Z]")
_UPPER = r"[A-Z\xc0-\xd6\xd8-\xde\u0100-\u017d\u0391-\u03a9\u0410-\u042f]"
_WORD = rf"{_UPPER}[^\W\d_]{{1,20}}(?:['\u2019-]{_UPPER}?[^\W\d_]{{1,20}})?"
PERSON = rf"(?:{_WORD}|{_UPPER}\.)(?: (?:{_WORD}|{_UPPER}\.|van|von|de|der|den|da|di|dos|la|le|bin|al)){{0,3}} {_WORD}"
"""The pattern of a first and a last name."""
_NAMED = rf"(?P<v>{PERSON})"
_YEARS = r"(?:\d{4}(?:\s?[-,\u2013]\s?(?:\d{2,4}|present))*,?\s{1,3})"
# Words before an author, a probe, and the pattern of words and author.
_PEOPLE: tuple[tuple[tuple[bytes, ...], str, str], ...] = (
    ((b"copyright", b"(c)", b"\xa9", b"spdx-filecopyrighttext:"),
     r"(?i:copyright|\(c\)|\xa9|SPDX-FileCopyrightText:)[ \t:]",
     rf"(?i:copyright(?:\s{{1,2}}(?:\(c\)|\xa9))?|\(c\)|\xa9|SPDX-FileCopyrightText:)[ \t]{{1,3}}(?i:copyright[ \t]{{1,3}})?{_YEARS}?(?i:by[ \t])?{_NAMED}(?=[ \t]*(?:[<(.,;\n\"'*]|$|and\b|All\b))"),
    ((b"@author", b"@since", b"@maintainer"),
     r"@(?:author|since|maintainer)[ \t]",
     rf"@(?:author|since|maintainer)[ \t]{{1,4}}{_NAMED}(?=[ \t]*(?:[<(.,\n*]|$))"),
    ((b'"author"', b'"maintainer"', b'"contact"', b'"publisher"'),
     r"(?i:\"(?:author|maintainer|contact|publisher)\"\s*:)",
     rf"\"(?:author|maintainer|contact|publisher)\"\s{{0,3}}:\s{{0,3}}(?:\{{[^{{}}]{{0,200}}?\"name\"\s{{0,3}}:\s{{0,3}})?\"{_NAMED}(?=\s?[\"<(])"),
    ((b"author", b"maintainer", b"contact_name"),
     r"(?i:author|maintainer|contact_name)(?:__)?\s*=\s*[bfru]{0,2}[\"']",
     rf"(?i:author|maintainer|contact_name)(?:__)?\s{{0,4}}=\s{{0,4}}[bfru]{{0,2}}[\"']{_NAMED}(?=\s?[\"'<(,])"),
    ((b"author", b"maintainer"),
     r"[Aa]uthor[ \t]*[=:]|[Mm]aintainer[ \t]*[=:]",
     rf"(?<![^\n])(?:author|maintainer|Author|Maintainer)[ \t]{{0,4}}[=:][ \t]{{0,4}}{_NAMED}(?=[ \t]*(?:[<(,\n]|$))"),
)  # fmt: skip
_COMMITS = re.compile(
    rf"\n(?:(?:[*|/\\ ]{{0,12}})[0-9a-f]{{7,40}}(?:[ \t]{{1,4}}|[ \t]?[|,;:-][ \t]?|[ \t]\()(?:\d{{4}}-\d\d-\d\d[^\n|,;]{{0,20}}[ |,;]{{1,3}})?{_NAMED}(?=[ \t]?[|,;)\t][ \t]?|[ \t]{{1,4}}(?:\d{{1,3}} (?:second|minute|hour|day|week|month|year)s? ago|\d{{4}}-\d\d-\d\d|<|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) ))"
    rf"|(?P<w>{PERSON}) \(\d{{1,6}}\):\n[ \t]{{2,8}}\S)"
)
_COUNTED = re.compile(
    rf"\n[ \t]{{0,8}}(?P<n>\d{{1,7}})[ \t]{{1,4}}{_NAMED}(?=[ \t]*(?:\n[ \t]{{0,8}}(?P<next>\d{{1,7}})[ \t]{{1,4}}\S|<[^<>\n]{{3,80}}>|\n?$|\n\n))"
)
_LISTED = re.compile(
    r"(?:\"(?:contributors|maintainers|authors|people)\"\s{0,3}:|(?:authors|maintainers)\s{0,3}=)\s{0,3}\[(?P<items>[^\[\]]{4,4000})\]"
)
_LISTED_WORDS = (
    *(b'"contributors"', b'"maintainers"', b'"authors"', b'"people"', b"authors", b"maintainers"),
)
_LISTED_NAME = re.compile(rf"(?:(?:name\"?\s{{0,3}}[:=]\s{{0,3}})?[\"'])(?P<v>{PERSON})(?=\s?[\"'<(])")
_ASKED = re.compile(
    rf"(?:git[^\n]{{0,20}} (?:log|shortlog|show|for-each-ref|blame)\b[^\n]{{0,160}}(?:%[ac][nN]|%\(authorname\)|shortlog)[^\n]{{0,160}})\n(?P<items>(?:[^\n]{{0,24}}?{PERSON}[^\n]{{0,200}}(?:\n|$)){{1,400}})"
)
_ANY_NAME = re.compile(rf"(?<![^\W\d_]){_NAMED}")


def is_person(name: str) -> bool:
    """Tell whether a name in the form of a person's is no company's and no group's."""
    words = name.split(" ")
    if any((len(word) > 2 and word.isupper()) or _MINGLED.search(word) for word in words):
        return False
    return not _COMPANY.search(name) and not NO_PERSONS.intersection(map(str.lower, words))


def _finding(kind: str, labels: str, form: str, check: Callable[[str], bool]) -> Detector:
    """Build the detector of one kind of number after its labels."""
    words = tuple(label.encode("ascii") for label in labels.split("|"))
    pattern = re.compile(rf"(?i)(?:(?-i:Number|No|Nr|Num|Id|ID|Code))?(?![a-z]){_BETWEEN}(?P<v>{form}){_END}")

    def find(view: TextView) -> Iterator[Span]:
        for at in _words(view, words):
            match = pattern.match(view.text, at.end)
            if match and check(match["v"]):
                yield Span(*match.span("v"), kind)

    label_pattern = labels.replace(".", r"\.")
    return make_probed_detector(
        find,
        rf"(?i)(?:{label_pattern})(?:number|no|nr|num|id|code)?[^a-z\n][^\n]{{0,60}}[0-9][0-9A-Z/. -]{{2}}",
    )


def find_written_cpfs(view: TextView) -> Iterator[Span]:
    """Find Brazilian CPFs in their usual form without a label."""
    for at in view.positions(b"000.000.000-00"):
        match = _ALONE.match(view.text, at)
        if match and _is_cpf(match[0]):
            yield Span(*match.span(), "NATIONAL_ID")


class _Word(NamedTuple):
    start: int
    end: int


def _words(view: TextView, words: Iterable[bytes]) -> Iterator[_Word]:
    """Yield the positions of words in small letters that follow no letter."""
    for word in words:
        for at in view.positions(word):
            if (
                not at
                or not view.text[at - 1].isalpha()
                or (view.text[at].isupper() and view.text[at - 1].islower())
            ):
                yield _Word(at, at + len(word))


_GPS_WORDS = (
    b"gps",
    b"geo",
    b"coord",
    b"latlng",
    b"lat,",
    b"lat/",
    b"lat ",
    b"lat_",
    b"position",
    b"located at",
)
_ADDRESS_WORDS = (
    *(
        b"address",
        b"street",
        b"ship to",
        b"ship_to",
        b"shipped to",
        b"deliver to",
        b"delivered to",
        b"bill to",
    ),
    *(
        b"bill_to",
        b"billed to",
        b"send to",
        b"invoice to",
        b"anschrift",
        b"stra\xdfe",
        b"strasse",
        b"direcci",
        b"line0",
        b"line_0",
        b"line 0",
    ),
    *(b"endere", b"indirizzo", b"adres", b"rua", b"lives at", b"live at", b"resides at", b"residing at"),
)


def find_places(view: TextView) -> Iterator[Span]:
    """Find postal addresses and pairs of coordinates."""
    for word in _words(view, _GPS_WORDS):
        if match := _GPS.match(view.text, word.start):
            yield Span(*match.span("v"), "LOCATION")
            yield Span(*match.span("w"), "LOCATION")
    for word in _words(view, _ADDRESS_WORDS):
        if match := _ADDRESS.match(view.text, word.start):
            yield _without_end(match)


def _without_end(match: re.Match[str]) -> Span:
    return Span(match.start("v"), match.start("v") + len(match["v"].rstrip(" ,.")), "ADDRESS")


def _announced(words: Iterable[bytes], probe: str, pattern: str) -> Detector:
    """Build the detector of authors after words in small letters."""
    compiled = re.compile(pattern)

    def find(view: TextView) -> Iterator[Span]:
        for at in (at for word in words for at in view.positions(word)):
            match = compiled.match(view.text, at)
            if match and is_person(match["v"]):
                yield Span(*match.span("v"), "PERSON")

    return make_probed_detector(find, probe)


def find_committers(view: TextView) -> Iterator[Span]:
    """Find author names of commits, as `git log` and `git shortlog` print them."""
    for match in _COMMITS.finditer(f"\n{view.text}"):
        group = match.lastgroup or "v"
        if is_person(match[group]):
            yield Span(match.start(group) - 1, match.end(group) - 1, "PERSON")


def find_counted(view: TextView) -> Iterator[Span]:
    """Find author names after their number of commits."""
    before = 0
    for match in _COUNTED.finditer(f"\n{view.text}"):
        count, following = int(match["n"]), int(match["next"] or 0)
        if count not in (before + 1, following - 1) and is_person(match["v"]):  # no line numbers
            yield Span(match.start("v") - 1, match.end("v") - 1, "PERSON")
        before = count


def _listed(words: Iterable[bytes], probe: str, pattern: re.Pattern[str], name: re.Pattern[str]) -> Detector:
    """Build the detector of names in lists that begin with given words."""

    def find(view: TextView) -> Iterator[Span]:
        for at in (at for word in words for at in view.positions(word)):
            listed = pattern.match(view.text, at)
            for match in name.finditer(view.text, *listed.span("items")) if listed else ():
                if is_person(match["v"]):
                    yield Span(*match.span("v"), "PERSON")

    return make_probed_detector(find, probe)


_JP = r"0[5789]0-\d{4}-\d{4}|0[36]-[2-9]\d{3}-\d{4}|0[2-9]\d-\d{3}-\d{4}"
_BR = r"\([1-9][1-9]\) ?9?\d{4}-\d{4}|[1-9][1-9] 9\d{4}-\d{4}"
_PHONE = re.compile(rf"(?<![\w.+/-])(?:{_JP}|{_BR})(?![\w-]|\.\d)")


def find_phones(view: TextView) -> Iterator[Span]:
    """Find telephone numbers as written in Japan and Brazil."""
    for match in _PHONE.finditer(view.text):
        yield Span(*match.span(), "PHONE")


DETECTORS: tuple[Detector, ...] = (
    *(_finding(*each) for each in _NUMBERS),
    make_probed_detector(find_written_cpfs, r"\d{3}\.\d{3}\.\d{3}-\d\d"),
    make_probed_detector(
        find_places,
        rf"(?i){_GPS_WORD}[^\n]*\d\.\d{{3,12}}[\"'`]?\s*,\s*[\"'`]?-?\d{{1,3}}\.\d{{3}}",
        r"\d [A-Z][\w'.-]+ (?:[\w'.-]+ )*(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Drive|Dr|Boulevard|Blvd|Way|Court|Ct|Place|Pl|Square|Sq|Terrace|Close|Crescent|Highway|Hwy|Parkway|Pkwy|Gardens|Row|Hill)",
        r"\d(?: ?bis| ?ter)?,? (?:rue|avenue|av\.|boulevard|bd|place|chemin|impasse|all\xe9e|quai|route|cours) ",
        r"(?i:stra(?:\xdf|ss)e|str\.|weg|platz|allee|gasse|damm|ring|ufer|straat|gatan|vej) \d",
        r"(?:Calle|C/|Avenida|Av\.|Rua|R\.|Via|Plaza|Piazza|Pra\xe7a|Travessa|Viale|Corso|Ulica|ul\.) [^\n,\d]+,? (?:n[.\xba\xb0o]+ ?)?\d",
    ),
    *(_announced(*each) for each in _PEOPLE),
    _listed(
        _LISTED_WORDS,
        r"(?:\"(?:contributors|maintainers|authors|people)\"\s*:|(?:authors|maintainers)\s*=)\s*\[",
        _LISTED,
        _LISTED_NAME,
    ),
    _listed((b"git ",), r"git[^\n]* (?:log|shortlog|show|for-each-ref|blame)\b[^\n]*\n", _ASKED, _ANY_NAME),
    make_probed_detector(
        find_committers,
        r" \(\d{1,6}\):\n[ \t]{2}",
        r"(?:^|[\n\"])[*|/\\ ]*[0-9a-f]{7}[0-9a-f]*(?:[ \t]+|[ \t]?[|,;:-][ \t]?|[ \t]\()(?:\d{4}-\d\d-\d\d[^\n]*)?[A-Z?\xc0-\xde]",
    ),
    make_probed_detector(
        find_counted,
        r"(?:^|[\n\"])[ \t]*\d+[ \t]+[A-Z?\xc0-\xde][^\s\d]+ (?:[^\s\d]+ )*[A-Z?\xc0-\xde]",
    ),
    make_probed_detector(find_phones, _JP, _BR),
)
DOCUMENTED = DETECTORS[:-1]
"""The detectors that also run on names in JSON."""
