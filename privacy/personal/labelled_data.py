# ruff: noqa: E501 (patterns)
"""Detect personal data by the words around it: addresses, pairs of coordinates, authors, telephones."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tracemill.privacy.core.lazy_pattern import LazyPattern
from tracemill.privacy.core.number_forms import FILLER, LATIN_LABELS, is_number_valid
from tracemill.privacy.core.rule import Detector, Span, TextView, make_probed_detector
from tracemill.privacy.core.table_columns import PERSON_LABEL
from tracemill.privacy.core.word_lists import NO_PERSONS

_BETWEEN = rf"[\"'`]?(?:[ \t_.:=(/#-]{{1,4}}{FILLER}(?![A-Za-z]))*[ \t.:=(#\xba\xb0/)>|*-]{{0,4}}[\"'`]?[ \t]{{0,4}}[:=*]{{0,3}}[ \t]{{0,4}}[\"'`(\[]{{0,2}}"
_NAME_REACH = 120  # characters of a name behind the end of its probe
_ALONE = LazyPattern(r"(?<![\w.-])\d{3}\.\d{3}\.\d{3}-\d{2}(?![\w-]|\.\d)")
_GPS_WORD = r"(?:gps|geo|coord(?:inate)?s?|latlng|lat[,_/ ]{1,2}l(?:ng|on|ong)|position|located at)"
_GPS = LazyPattern(
    rf"(?i){_GPS_WORD}{_BETWEEN}(?P<v>-?\d{{1,3}}\.\d{{3,12}})[\"'`]?\s{{0,2}},\s{{0,2}}[\"'`]?(?P<w>-?\d{{1,3}}\.\d{{3,12}})(?!\w)"
)
STREET = (
    r"(?:\d{1,5}[A-Za-z]? (?:[A-Z\xc0-\xde][\w'.-]{1,24} ){1,4}(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Drive|Dr|Boulevard|Blvd|Way|Court|Ct|Place|Pl|Square|Sq|Terrace|Close|Crescent|Highway|Hwy|Parkway|Pkwy|Gardens|Row|Hill)\b\.?"
    r"|\d{1,4}(?: ?bis| ?ter)?,? (?:rue|avenue|av\.|boulevard|bd|place|chemin|impasse|all\xe9e|quai|route|cours) [^\n,\"'<>|;]{2,40}"
    r"|[A-Z\xc0-\xde][\w\xdf.-]{1,30}(?: [\w\xdf.-]{1,20}){0,2}?[ -]?(?:[Ss]tra(?:\xdf|ss)e|[Ss]tr\.|[Ww]eg|[Pp]latz|[Aa]llee|[Gg]asse|[Dd]amm|[Rr]ing|[Uu]fer|straat|gatan|vej) \d{1,4}[a-z]?"
    r"|(?:Calle|C/|Avenida|Av\.|Rua|R\.|Via|Plaza|Piazza|Pra\xe7a|Travessa|Viale|Corso|Ulica|ul\.) [^\n,\"'<>|;\d]{2,40},? (?:n[.\xba\xb0o]{1,2} ?)?\d{1,5}(?:[ /]\d{1,4})?)"
)
"""The pattern of a street with its number in English, French, German, Spanish, Portuguese or Italian."""
_ADDRESS = LazyPattern(
    r"(?:(?i:address(?:e|es)?(?:[ _-]?line)?[ _-]?\d?|street(?:[ _-]?(?:name|line|address))?[ _-]?\d?|line[ _-]?[12]|(?:ship|deliver|bill|send|invoice)(?:ed)?[ _-]?to|anschrift|stra(?:\xdf|ss)e|direcci[o\xf3]n|endere[c\xe7]o|indirizzo|adres|rua|lives? at|resid(?:es|ing) at|\u4f4f\u6240)"
    r"[\"'`]?[ \t]{0,3}[:=>]?[ \t]{0,4}[\"'`]?)"
    rf"(?P<v>{STREET}(?:,? [^\n\"'`<>|;{{}}]{{2,80}})?)"
)

_COMPANY = LazyPattern(
    r"(?i)(?<![^\W_])(?:copyright|inc|llc|ltd|limited|gmbh|ag|sa|s\.a|bv|corp(?:oration)?|co|company|foundation|team|contributors?|authors?|developers?|maintainers?|project|community|software|systems?|labs?|laborator(?:y|ies)|"
    r"university|institute|group|consortium|association|society|organi[sz]ation|committee|the|all|rights|reserved|free|open|source|google|microsoft|apple|facebook|meta|amazon|ibm|intel|nvidia|oracle|red hat|mozilla|technolog(?:y|ies)|"
    r"networks?|solutions|studios?|media|bot|holders?|owners?|your|name|here|license[ds]?|mit|apache|bsd|regents|see|and|by|python|research|center|centre|council|department|industries|partners|services|web|data|cloud|security|digital)(?![^\W_])"
)
_MINGLED = LazyPattern(r"(?<!^Mc)(?<!^Mac)(?<!^De)(?<!^Di)(?<!^La)(?<!^Le)(?<!^Fitz)(?<=[a-z])[A-Z]")
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
    ((b"author", b"maintainer", b"reporter", b"assignee", b"reviewer", b"registrant name"),
     r"(?i:author|maintainer|reporter|assignee|reviewer|registrant name)[ \t]*[=:][ \t]*[A-Z?\xc0-\xde]",
     rf"(?<![^\n :*>])(?i:author|maintainer|reporter|assignee|reviewer|registrant name)[ \t]{{0,4}}[=:][ \t]{{0,4}}{_NAMED}(?=[ \t]*(?:[<(,[\n]|$))"),
    ((b"-by: ",),
     r"-[bB]y: +[A-Z?\xc0-\xde]",
     rf"-[bB]y: {{1,4}}{_NAMED}(?=[ \t]*(?:[<(,\n]|$))"),
    ((b"\\author{", b"<author>", b"cn=", b"cn =", b"dear "),
     r"\\author\{|<author>|CN ?=|[Dd]ear [A-Z?\xc0-\xde]",
     rf"(?:\\author\{{|<author>\s{{0,40}}(?:<name>)?|CN ?= ?\\*\"?|[Dd]ear ){_NAMED}(?=[ \t]*(?:[\\}}<,;:/\"\n]|$))"),
    ((b"<developer>", b"<contributor>"),
     r"<(?:developer|contributor)>",
     rf"<(?:developer|contributor)>\s{{0,80}}(?:<\w+>[^<>]{{0,80}}</\w+>\s{{0,80}}){{0,3}}<name>{_NAMED}(?=</)"),
)  # fmt: skip
_COMMITS = LazyPattern(
    rf"\n(?:(?:[*|/\\ ]{{0,12}})[0-9a-f]{{7,40}}(?:[ \t]{{1,4}}|[ \t]?[|,;:-][ \t]?|[ \t]\()(?:\d{{4}}-\d\d-\d\d[^\n|,;]{{0,20}}[ |,;]{{1,3}})?{_NAMED}(?=[ \t]?[|,;)\t][ \t]?|[ \t]{{1,4}}(?:\d{{1,3}} (?:second|minute|hour|day|week|month|year)s? ago|\d{{4}}-\d\d-\d\d|<|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) ))"
    rf"|(?P<w>{PERSON}) \(\d{{1,6}}\):\n[ \t]{{2,8}}\S)"
)
_COUNTED = LazyPattern(
    rf"\n[ \t]{{0,8}}(?P<n>\d{{1,7}})[ \t]{{1,4}}{_NAMED}(?=[ \t]*(?:\n[ \t]{{0,8}}(?P<next>\d{{1,7}})[ \t]{{1,4}}\S|<[^<>\n]{{3,80}}>|\n?$|\n\n))"
)
_LISTED = LazyPattern(
    r"(?:\"(?:contributors|maintainers|authors|people)\"\s{0,3}:|(?:authors|maintainers)\s{0,8}=)\s{0,3}\[(?P<items>[^\[\]]{4,4000})\]"
)
_LISTED_WORDS = (
    *(b'"contributors"', b'"maintainers"', b'"authors"', b'"people"', b"authors", b"maintainers"),
)
_LISTED_NAME = LazyPattern(rf"(?:(?:name\"?\s{{0,3}}[:=]\s{{0,3}})?[\"'])(?P<v>{PERSON})(?=\s?[\"'<(])")
_ASKED = LazyPattern(
    rf"(?:git[^\n]{{0,20}} (?:log|shortlog|show|for-each-ref|blame)\b[^\n]{{0,160}}(?:%[ac][nN]|%\(authorname\)|shortlog)[^\n]{{0,160}})\n(?P<items>(?:[^\n]{{0,24}}?{PERSON}[^\n]{{0,200}}(?:\n|$)){{1,400}})"
)
# A name or a part of one, of a first and last name where the label is a person's role.
_PART = rf"{_WORD}(?: (?:{_WORD}|{_UPPER}\\.|van|von|de|der|den|da|di|dos|la|le|bin|al)){{0,3}}"
_ROLE = r"(?:customer|client|patient|employee|student|guest|recipient|card[ _-]?holder|account[ _-]?holder|contact|passenger|applicant)[ _-]?(?:full[ _-]?)?name"
_LABELLED = LazyPattern(
    rf"(?:(?<![^\W\d_])|(?<=[a-z])(?=[A-Z]))(?i:(?:{PERSON_LABEL}|(?P<role>{_ROLE})))[\"'`]?"
    rf"(?:[ \t]?(?:[:=]|=>)\s{{0,3}}\\*[\"'`](?P<v>{_PART})(?=\\*[\"'`])|[ \t]?:[ \t]{{1,8}}(?P<w>{_PART})(?=[ \t]*(?:\r?\n|$))|>(?P<x>{_PART})(?=</))"
)
_LABEL_PROBE = (
    r"(?i)(?:"
    + re.sub(r"\\u[0-9a-f]{4}", r"\\?", rf"{PERSON_LABEL}|{_ROLE}")
    + r")[\"'`]?(?:\s?(?:[:=]|=>)\s*\\*[\"'`]?|>)(?-i:[A-Z?\xc0-\xde])"
)
_CAPITALS = LazyPattern(
    rf"(?<![^\W\d_])(?i:{PERSON_LABEL})\\*[\"'`]?[ \t]?(?:[:=]|=>)\s{{0,3}}\\*[\"'`](?P<v>{_UPPER}{{2,24}}(?:[ '\u2019-]{_UPPER}{{2,24}}){{0,3}})(?=\\*[\"'`])"
)
_R_PERSON = LazyPattern(
    rf"\bperson\(\s{{0,20}}(?:given\s?=\s?)?[\"'](?P<v>{_PART})[\"'],\s{{0,20}}(?:family\s?=\s?)?[\"'](?P<w>{_PART})[\"']"
)
_RECORD = LazyPattern(
    rf"\"family\"\s?:\s?\"(?P<v>{_PART})\",?\s{{0,40}}\"given\"\s?:\s?\[\s{{0,40}}\"(?P<w>{_PART})\""
)
# Names of fields, types and messages in the place of a name.
_NO_NAME = frozenset(
    [
        "string",
        "str",
        "text",
        "varchar",
        "char",
        "optional",
        "required",
        "none",
        "null",
        "true",
        "false",
        "unknown",
        "value",
        "field",
        "label",
        "enter",
        "title",
        "placeholder",
        "admin",
        "customer",
        "first",
        "last",
        "given",
        "family",
        "middle",
        "full",
        "sur",
        "surname",
        "forename",
        "name",
        "names",
        "person",
        "firstname",
        "lastname",
        "vorname",
        "nachname",
        "nom",
        "prénom",
        "prenom",
        "apellido",
        "apellidos",
        "nombre",
        "nome",
        "cognome",
        "sobrenome",
        "voornaam",
        "achternaam",
        "etternavn",
        "fornavn",
        "efternamn",
        "förnamn",
        "imię",
        "nazwisko",
        "invalid",
        "missing",
        "must",
        "should",
        "please",
        "type",
        "mapped",
        "column",
        "charfield",
        "textfield",
        "faker",
        "patient",
        "employee",
        "student",
        "guest",
        "contact",
        "this",
        "that",
        "their",
        "id",
        "key",
        "int",
        "any",
        "mr",
        "mrs",
        "ms",
        "dr",
    ]
)
_ANY_NAME = LazyPattern(rf"(?<![^\W\d_]){_NAMED}")


def is_person(name: str) -> bool:
    """Tell whether a name in the form of a person's is no company's and no group's."""
    words = name.split(" ")
    if any((len(word) > 2 and word.isupper()) or _MINGLED.search(word) for word in words):
        return False
    return not _COMPANY.search(name) and not NO_PERSONS.intersection(map(str.lower, words))


def find_written_cpfs(view: TextView) -> Iterator[Span]:
    """Find Brazilian CPFs in their usual form without a label."""
    for at in view.positions(b"000.000.000-00"):
        match = _ALONE.match(view.text, at)
        if match and is_number_valid(LATIN_LABELS["cpf"][0], match[0]):
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
    compiled = LazyPattern(pattern)

    def find(view: TextView) -> Iterator[Span]:
        for at in (at for word in words for at in view.positions(word)):
            match = compiled.match(view.text, at)
            if match and is_person(match["v"]):
                yield Span(*match.span("v"), "PERSON")

    return make_probed_detector(find, probe)


def find_labelled_names(view: TextView) -> Iterator[Span]:
    """Find names of persons, and parts of them, under their labels."""
    for low, high in view.windows():
        for match in _LABELLED.finditer(view.text, low, min(len(view.text), high + _NAME_REACH)):
            group = match.lastgroup or "v"
            name = match[group]
            line = view.text[view.text.rfind("\n", 0, match.start()) + 1 : match.start()]
            if (group == "w" and line.strip(" \t>*|-+#")) or (match["role"] and " " not in name):
                continue
            if is_person(name) and not _NO_NAME.intersection(re.split(r"[ '\u2019-]", name.lower())):
                yield Span(*match.span(group), "PERSON")
        for match in _CAPITALS.finditer(view.text, low, min(len(view.text), high + _NAME_REACH)):
            if not _NO_NAME.intersection(re.split(r"[ '\u2019-]", match["v"].lower())):
                yield Span(*match.span("v"), "PERSON")
        for match in _RECORD.finditer(view.text, low, min(len(view.text), high + _NAME_REACH)):
            yield from (Span(*match.span(group), "PERSON") for group in "vw")


def find_persons_in_r(view: TextView) -> Iterator[Span]:
    """Find a given and a family name in calls of R's `person`."""
    for match in _R_PERSON.finditer(view.text):
        yield from (Span(*match.span(group), "PERSON") for group in "vw")


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


def _listed(
    words: Iterable[bytes], probe: str, pattern: LazyPattern[str], name: LazyPattern[str]
) -> Detector:
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
_PHONE = LazyPattern(rf"(?<![A-Za-z0-9_.+/-])(?:{_JP}|{_BR})(?![A-Za-z0-9_-]|\.\d)")


def find_phones(view: TextView) -> Iterator[Span]:
    """Find telephone numbers as written in Japan and Brazil."""
    for match in _PHONE.finditer(view.text):
        yield Span(*match.span(), "PHONE")


DETECTORS: tuple[Detector, ...] = (
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
    make_probed_detector(
        find_labelled_names, _LABEL_PROBE, r"\"family\"\s*:\s*\"[^\"\n]*\",?\s*\"given\"", located=True
    ),
    make_probed_detector(find_persons_in_r, r"person\(\s*(?:given\s?=\s?)?[\"'][^\"'\n]+[\"'],"),
    make_probed_detector(find_phones, _JP, _BR),
)
DOCUMENTED = DETECTORS[:-1]
"""The detectors that also run on names in JSON."""
