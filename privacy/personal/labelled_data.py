# ruff: noqa: E501 (patterns)
"""Personal data behind a word that says what it is: numbers of persons, birth dates, addresses, places, authors."""

import re
from collections.abc import Callable, Iterator

from tracemill.privacy.core.rule import Detector, Span, View, make_probed_detector
from tracemill.privacy.core.word_lists import NO_PERSONS

_FILLERS = (
    r"(?:card|number|num|no|nr|nummer|numero|n\xfamero|code|id|is|was|ist|est|es|\xe9|do|da|de|del|du|der|des|of|the|on|am|le|el|my|his|her"
    r"|cliente?|customer|holder|user|coordinates?|position|location)"
)
_BETWEEN = rf"[\"'`]?(?:[ \t_.:=(/#-]{{1,4}}{_FILLERS}(?![A-Za-z]))*[ \t.:=(#\xba\xb0/)>|-]{{0,4}}[\"'`]?[ \t]{{0,4}}[:=]{{0,2}}[ \t]{{0,4}}[\"'`(\[]{{0,2}}"
_END = r"(?![\w-]|\.\d)"


def _digits(value: str) -> list[int]:
    return [int(c) for c in value if c.isdigit()]


def _weighed(digits: list[int], weights: range | tuple[int, ...]) -> int:
    return sum(a * b for a, b in zip(digits, weights, strict=False))


def _is_cpf(value: str) -> bool:
    """The two check digits of a Brazilian number (weights 10 to 2 and 11 to 2, modulo 11)."""
    digits = _digits(value)
    first, second = (-_weighed(digits, range(n, 1, -1)) % 11 % 10 for n in (10, 11))
    return len(set(digits)) > 1 and digits[9:] == [first, second]


def _is_pesel(value: str) -> bool:
    """The check digit of a Polish number (weights 1, 3, 7, 9, modulo 10)."""
    digits = _digits(value)
    return len(set(digits)) > 2 and _weighed(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)) % 10 == 0


def _is_dni(value: str) -> bool:
    """The letter of a Spanish number (its number modulo 23)."""
    number = value[:-1].upper().replace("-", "").replace(".", "")
    number = str("XYZ".index(number[0])) + number[1:] if number[0] in "XYZ" else number
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == value[-1].upper()


def _compose(a: int, b: int) -> int:
    """Multiply in the dihedral group of ten elements: 0 to 4 turn, 5 to 9 turn and mirror."""
    if a < 5:
        return (a + b) % 5 if b < 5 else 5 + (a + b) % 5
    return 5 + (a - b) % 5 if b < 5 else (a - b) % 5


def _is_aadhaar(value: str) -> bool:
    """Verhoeff's check digit (Verhoeff, Error Detecting Decimal Codes, 1969)."""
    check, step = 0, (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)
    for at, digit in enumerate(reversed(_digits(value))):
        for _ in range(at % 8):
            digit = step[digit]
        check = _compose(check, digit)
    return check == 0


def _is_resident(value: str) -> bool:
    """The check digit of a Chinese number (ISO 7064, modulo 11-2)."""
    total = sum(int(c) * 2 ** (17 - at) for at, c in enumerate(value[:17]))
    return "10X98765432"[total % 11] == value[17].upper()


def _is_passport(value: str) -> bool:
    return sum(map(str.isdigit, value)) >= (2 if len(value) == 9 else 5) and len(set(value)) > 3


def _any(_: str) -> bool:
    return True


# The words before a number, its form, and its check digits.
_NUMBERS: tuple[tuple[str, str, str, Callable[[str], bool]], ...] = (
    ("NATIONAL_ID", r"cpf", r"\d{3}\.?\d{3}\.?\d{3}-?\d{2}", _is_cpf),
    ("NATIONAL_ID", r"pesel", r"\d{11}", _is_pesel),
    ("NATIONAL_ID", r"nino|national[ _-]?insurance|NI(?=[ _-]?(?:no|num|nr|#))", r"(?-i:[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D])", _any),
    ("NATIONAL_ID", r"dni|nie|nif|identidad", r"(?:[XYZ]-?\d{7}|\d{2}\.?\d{3}\.?\d{3})-?[A-Z]", _is_dni),
    ("NATIONAL_ID", r"pan", r"(?-i:[A-Z]{3}[ABCFGHJLPTK][A-Z]\d{4}[A-Z])", _any),
    ("NATIONAL_ID", r"aadhaa?r|uidai", r"[2-9]\d{3}[ -]?\d{4}[ -]?\d{4}", _is_aadhaar),
    ("NATIONAL_ID", r"codice[ _-]?fiscale", r"[A-Z]{6}\d\d[A-EHLMPRST]\d\d[A-Z]\d{3}[A-Z]", _any),
    ("NATIONAL_ID", r"resident[ _-]?id|id[ _-]?card|\u8eab\u4efd\u8bc1\u53f7?(?:\u7801)?", r"\d{6}(?:19|20)\d{9}[\dXx]", _is_resident),
    ("SSN", r"ssn|social[ _-]?security", r"(?!000|666|9)\d{3}(?!00)\d\d(?!0000)\d{4}", _any),
    ("PASSPORT", r"passport|reisepass|ausweis|passeport|pasaporte|passaporte|paszport", r"(?-i:[A-Z]{0,2}\d[A-Z0-9]{5,8}|[A-Z][A-Z0-9]{6,8})", _is_passport),
    ("BIRTH_DATE",
     r"date[ _-]?of[ _-]?birth|birth[ _-]?da(?:te|y)|d\.?o\.?b|born|geburts(?:datum|tag)|geboren|date[ _-]?de[ _-]?naissance|n\xe9e?(?= le)|fecha[ _-]?de[ _-]?nacimiento|data[ _-]?de[ _-]?nascimento|data[ _-]?di[ _-]?nascita|\u751f\u5e74\u6708\u65e5",
     r"(?:(?:19|20)\d\d[-/.](?:0?[1-9]|1[0-2])[-/.](?:[12]\d|3[01]|0?[1-9])|(?:[0-3]?\d)[-/.](?:[0-3]?\d)[-/.](?:19|20)\d\d|[0-3]?\d\.? (?:jan|feb|mar|m\xe4r|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)[a-z]{0,7}\.?,? (?:19|20)\d\d|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,7}\.? [0-3]?\d,? (?:19|20)\d\d)",
     _any),
    ("LOCATION", r"lat(?:itude)?|l(?:on|ng|ong)(?:itude)?", r"-?\d{1,3}\.\d{4,12}", _any),
)  # fmt: skip
_LABELS = tuple(
    (
        kind,
        re.compile(
            rf"(?i)(?<![A-Za-z])(?:[a-z]{{2,12}}[_-])?(?:{label})(?![a-z]){_BETWEEN}(?P<v>{form}){_END}"
        ),
        check,
    )
    for kind, label, form, check in _NUMBERS
)
_ALONE = re.compile(r"(?<![\w.-])\d{3}\.\d{3}\.\d{3}-\d{2}(?![\w-]|\.\d)")
_GPS = re.compile(
    r"(?i)(?<![a-z])(?:gps|geo|coord(?:inate)?s?|latlng|lat[,_/ ]{1,2}l(?:ng|on|ong)|position|located at)"
    rf"{_BETWEEN}(?P<v>-?\d{{1,2}}\.\d{{3,12}})[\"'`]?\s{{0,2}},\s{{0,2}}[\"'`]?(?P<w>-?\d{{1,3}}\.\d{{3,12}})(?!\w)"
)
_STREET = (
    r"(?:\d{1,5}[A-Za-z]? (?:[A-Z\xc0-\xde][\w'.-]{1,24} ){1,4}(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Drive|Dr|Boulevard|Blvd|Way|Court|Ct|Place|Pl|Square|Sq|Terrace|Close|Crescent|Highway|Hwy|Parkway|Pkwy|Gardens|Row|Hill)\b\.?"
    r"|\d{1,4}(?: ?bis| ?ter)?,? (?:rue|avenue|av\.|boulevard|bd|place|chemin|impasse|all\xe9e|quai|route|cours) [^\n,\"'<>|;]{2,40}"
    r"|[A-Z\xc0-\xde][\w\xdf.-]{1,30}(?: [\w\xdf.-]{1,20}){0,2}?[ -]?(?:[Ss]tra(?:\xdf|ss)e|[Ss]tr\.|[Ww]eg|[Pp]latz|[Aa]llee|[Gg]asse|[Dd]amm|[Rr]ing|[Uu]fer|straat|gatan|vej) \d{1,4}[a-z]?"
    r"|(?:Calle|C/|Avenida|Av\.|Rua|R\.|Via|Plaza|Piazza|Pra\xe7a|Travessa|Viale|Corso|Ulica|ul\.) [^\n,\"'<>|;\d]{2,40},? (?:n[.\xba\xb0o]{1,2} ?)?\d{1,5}(?:[ /]\d{1,4})?)"
)
_ADDRESS = re.compile(
    r"(?:(?i:\b(?:\w{2,12}[ _-])?address(?:e|es)?(?:[ _-]?line)?[ _-]?\d?|\bstreet(?:[ _-]?(?:name|line|address))?[ _-]?\d?|\b(?:ship|deliver|bill|send|invoice)(?:ed)?[ _-]to|\banschrift|\bstra(?:\xdf|ss)e|\bdirecci[o\xf3]n|\bendere[c\xe7]o|\bindirizzo|\badres|\brua|\blives? at|\bresid(?:es|ing) at|\u4f4f\u6240)"
    r"[\"'`]?[ \t]{0,3}[:=]?[ \t]{0,4}[\"'`]?)"
    rf"(?P<v>{_STREET}(?:,? [^\n\"'`<>|;{{}}]{{2,80}})?)"
)
_ADDRESS_ALONE = re.compile(
    r"(?<![\w.])(?P<v>\d{1,5} (?:[A-Z][\w'.-]{1,24} ){1,3}(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Drive|Dr|Boulevard|Blvd|Court|Ct|Place|Terrace)\b\.?,? (?:(?:Apt|Unit|Suite|#) ?\w{1,6},? )?[A-Z][A-Za-z .]{1,30}, [A-Z]{2} \d{5}(?:-\d{4})?"
    r"|[A-Z\xc0-\xde][\w\xdf.-]{1,30}(?:[Ss]tra(?:\xdf|ss)e|[Ss]tr\.|weg|platz|allee|gasse) \d{1,4}[a-z]?, (?:D-)?\d{5} [A-Z\xc0-\xde][\w-]{1,30})"
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
_PEOPLE = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?i:copyright(?:\s{{1,2}}(?:\(c\)|\xa9))?|\(c\)|\xa9|SPDX-FileCopyrightText:)[ \t]{{1,3}}(?i:copyright[ \t]{{1,3}})?{_YEARS}?(?i:by[ \t])?{_NAMED}(?=[ \t]*(?:[<(.,;\n\"'*]|$|and\b|All\b))",
        rf"@(?:author|since|maintainer)[ \t]{{1,4}}{_NAMED}(?=[ \t]*(?:[<(.,\n*]|$))",
        rf"\"(?:author|maintainer|contact|publisher)\"\s{{0,3}}:\s{{0,3}}\"{_NAMED}(?=\s?[\"<(])",
        rf"\"(?:author|maintainer|contact|publisher)\"\s{{0,3}}:\s{{0,3}}\{{[^{{}}]{{0,200}}?\"name\"\s{{0,3}}:\s{{0,3}}\"{_NAMED}(?=\s?[\"<(])",
        rf"(?:__author__|__maintainer__|\b(?i:author|maintainer|contact_name))\s{{0,4}}=\s{{0,4}}[bfru]{{0,2}}[\"']{_NAMED}(?=\s?[\"'<(,])",
        rf"(?<![^\n])(?:author|maintainer|Author|Maintainer)[ \t]{{0,4}}[=:][ \t]{{0,4}}{_NAMED}(?=[ \t]*(?:[<(,\n]|$))",
        rf"(?<![^\n]){_NAMED} \(\d{{1,6}}\):\n[ \t]{{2,8}}\S",
        rf"(?<![^\n])(?:[*|/\\ ]{{0,12}})[0-9a-f]{{7,40}}(?:[ \t]{{1,4}}|[ \t]?[|,;:-][ \t]?|[ \t]\()(?:\d{{4}}-\d\d-\d\d[^\n|,;]{{0,20}}[ |,;]{{1,3}})?{_NAMED}(?=[ \t]?[|,;)\t][ \t]?|[ \t]{{1,4}}(?:\d{{1,3}} (?:second|minute|hour|day|week|month|year)s? ago|\d{{4}}-\d\d-\d\d|<|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) ))",
    )
)
_COUNTED = re.compile(
    rf"(?<![^\n])[ \t]{{0,8}}(?P<n>\d{{1,7}})[ \t]{{1,4}}{_NAMED}(?=[ \t]*(?:\n[ \t]{{0,8}}(?P<next>\d{{1,7}})[ \t]{{1,4}}\S|<[^<>\n]{{3,80}}>|\n?$|\n\n))"
)
_LISTED = re.compile(
    r"(?:\"(?:contributors|maintainers|authors|people)\"\s{0,3}:|(?<![\w.])(?:authors|maintainers)\s{0,3}=)\s{0,3}\[(?P<items>[^\[\]]{4,4000})\]"
)
_LISTED_NAME = re.compile(rf"(?:(?:name\"?\s{{0,3}}[:=]\s{{0,3}})?[\"'])(?P<v>{PERSON})(?=\s?[\"'<(])")
_ASKED = re.compile(
    rf"(?:git[^\n]{{0,20}} (?:log|shortlog|show|for-each-ref|blame)\b[^\n]{{0,160}}(?:%[ac][nN]|%\(authorname\)|shortlog)[^\n]{{0,160}})\n(?P<items>(?:[^\n]{{0,24}}?{PERSON}[^\n]{{0,200}}(?:\n|$)){{1,400}})"
)
_ANY_NAME = re.compile(rf"(?<![^\W\d_]){PERSON}")


def is_person(name: str) -> bool:
    """Tell whether a name of a person's form is no company's and no group's."""
    words = name.split(" ")
    if any((len(word) > 2 and word.isupper()) or _MINGLED.search(word) for word in words):
        return False
    return not _COMPANY.search(name) and not NO_PERSONS.intersection(map(str.lower, words))


def find_numbers(view: View) -> Iterator[Span]:
    """Numbers of persons, passports, birth dates and places behind their names."""
    for kind, pattern, check in _LABELS:
        for match in pattern.finditer(view.text):
            if check(match["v"]):
                yield Span(*match.span("v"), kind)
    for match in _ALONE.finditer(view.text):
        if _is_cpf(match[0]):
            yield Span(*match.span(), "NATIONAL_ID")


def find_places(view: View) -> Iterator[Span]:
    """Postal addresses and pairs of coordinates."""
    for match in _GPS.finditer(view.text):
        yield Span(*match.span("v"), "LOCATION")
        yield Span(*match.span("w"), "LOCATION")
    for pattern in (_ADDRESS, _ADDRESS_ALONE):
        for match in pattern.finditer(view.text):
            yield Span(match.start("v"), match.start("v") + len(match["v"].rstrip(" ,.")), "ADDRESS")


def find_authors(view: View) -> Iterator[Span]:
    """Names of the authors of packages, files and commits."""
    text = view.text
    for pattern in _PEOPLE:
        for match in pattern.finditer(text):
            if is_person(match["v"]):
                yield Span(*match.span("v"), "PERSON")
    before = 0
    for match in _COUNTED.finditer(text):
        count, following = int(match["n"]), int(match["next"] or 0)
        if count not in (before + 1, following - 1) and is_person(match["v"]):  # no numbers of lines
            yield Span(*match.span("v"), "PERSON")
        before = count
    for pattern, name in ((_LISTED, _LISTED_NAME), (_ASKED, _ANY_NAME)):
        for listed in pattern.finditer(text):
            for match in name.finditer(text, *listed.span("items")):
                start, end = match.span("v" if pattern is _LISTED else 0)
                if is_person(text[start:end]):
                    yield Span(start, end, "PERSON")


_JP = r"0[5789]0-\d{4}-\d{4}|0[36]-[2-9]\d{3}-\d{4}|0[2-9]\d-\d{3}-\d{4}"
_BR = r"\([1-9][1-9]\) ?9?\d{4}-\d{4}|[1-9][1-9] 9\d{4}-\d{4}"
_PHONE = re.compile(rf"(?<![\w.+/-])(?:{_JP}|{_BR})(?![\w-]|\.\d)")


def find_phones(view: View) -> Iterator[Span]:
    """Telephone numbers as Japan and Brazil write them."""
    for match in _PHONE.finditer(view.text):
        yield Span(*match.span(), "PHONE")


DETECTORS: tuple[Detector, ...] = (
    make_probed_detector(
        find_numbers,
        r"(?i)(?:cpf|pesel|nino|insurance|dni|nie|nif|identidad|pan|aadhaa?r|uidai|fiscale|id|card|ssn|security|pass(?:port|eport|aporte)|pasaporte|reisepass|ausweis|paszport)[^\n]{0,60}[0-9][0-9A-Z. -]{3}",
        r"NI[ _-]?(?:no|num|nr|No|Num|Nr|NO|#)",
        r"(?i)(?:birth|d\.?o\.?b|born|geburt|geboren|naissance|n\xe9e? le|nacimiento|nascimento|nascita|\?{4})[^\n]{0,40}(?:19|20)\d\d",
        r"(?i)l(?:at|atitude|on|ng|ong|ongitude)[^\na-z]{1,6}\d{1,3}\.\d{4}",
        r"\d{3}\.\d{3}\.\d{3}-\d\d",
        r"\?{3,6}[^\n]{0,4}\d{17}",
    ),
    make_probed_detector(
        find_places,
        r"\d\.\d{3,12}[\"'`]?\s*,\s*[\"'`]?-?\d{1,3}\.\d{3}",
        r"\d [A-Z][\w'.-]+ (?:[\w'.-]+ )*(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Drive|Dr|Boulevard|Blvd|Way|Court|Ct|Place|Pl|Square|Sq|Terrace|Close|Crescent|Highway|Hwy|Parkway|Pkwy|Gardens|Row|Hill)",
        r"\d(?: ?bis| ?ter)?,? (?:rue|avenue|av\.|boulevard|bd|place|chemin|impasse|all\xe9e|quai|route|cours) ",
        r"(?i:stra(?:\xdf|ss)e|str\.|weg|platz|allee|gasse|damm|ring|ufer|straat|gatan|vej) \d",
        r"(?:Calle|C/|Avenida|Av\.|Rua|R\.|Via|Plaza|Piazza|Pra\xe7a|Travessa|Viale|Corso|Ulica|ul\.) [^\n,\d]+,? (?:n[.\xba\xb0o]+ ?)?\d",
    ),
    make_probed_detector(
        find_authors,
        r"(?i:copyright|\(c\)|\xa9)[ \t:]",
        r"@(?:author|since|maintainer)[ \t]",
        r"(?i:\"(?:author|maintainer|contact|publisher|contributors|maintainers|authors|people)\"\s*:)",
        r"(?:__author__|__maintainer__|[Aa]uthors?|[Mm]aintainers?|contact_name|AUTHOR)\s*[=:]",
        r"\d[ \t]+[A-Z?\xc0-\xde][^\s\d]+ [A-Z?\xc0-\xde][^\n]*(?:\n[ \t]*\d+[ \t]+\S|<[^\n]+>|\n|$)",
        r" \(\d{1,6}\):\n[ \t]{2}",
        r"[0-9a-f]{7}(?:[ \t]+|[ \t]?[|,;:-][ \t]?|[ \t]\()(?:\d{4}-\d\d-\d\d[^\n]*)?[A-Z?\xc0-\xde]",
        r"git[^\n]* (?:log|shortlog|show|for-each-ref|blame)\b[^\n]*\n",
    ),
    make_probed_detector(find_phones, r"0\d{1,2}-\d{3,4}-\d{4}", r"[1-9][1-9]\)? ?9?\d{4}-\d{4}"),
)
DOCUMENTED = DETECTORS[:3]
"""Those that look at names in JSON."""
