# ruff: noqa: E501 (patterns)
"""Detect postal addresses on lines of their own, after `Ship to:`, and in columns named `street`."""

import re
from collections.abc import Iterator

from tracemill.privacy.core.lazy_pattern import LazyPattern
from tracemill.privacy.core.read_table import find_cells_under
from tracemill.privacy.core.rule import (
    Detector,
    Span,
    TextView,
    build_words_pattern,
    fold,
    make_probed_detector,
)
from tracemill.privacy.personal.labelled_data import PERSON, STREET, is_person

_SENT = r"(?:(?:ship|deliver|bill|sold|send|mail|invoice)(?:ed|ped|ping|ing|y)?[ _-]?(?:to|address)|(?:rechnung|lieferung|versand) an)"
_PLACES = (
    r"(?:(?:postal|home|street|mailing|private|residential)[ _-])?address|(?:liefer|rechnungs|post|wohn)?(?:adresse|anschrift)|direcci[o\xf3]n(?: de env[i\xed]o)?"
    r"|endere[c\xe7]o(?: de entrega)?|indirizzo(?: di spedizione)?|adres|adresse de livraison|recipient|empf\xe4nger"
)
_MARKS = r"[*_\"]{0,2}[ \t]{0,3}"
_HEADS = rf"(?:{_SENT}{_MARKS}:?|(?:{_PLACES}){_MARKS}:){_MARKS}\r?\n"
_HEAD = LazyPattern(rf"(?i)(?<![a-z]){_HEADS}")
_LINE = LazyPattern(r"[ \t>|*]{0,12}(?P<v>[^\n\r]{2,80}?)[ \t|]{0,12}\r?(?:\n|$)")
_STREET = LazyPattern(rf"(?:{STREET})[^\n]{{0,60}}")
_PLACE = LazyPattern(
    r"(?:[A-Z]{1,3}-)?\d{3,6}(?:[ -]?[A-Z\d]{2,4})? [^\W\d_][\w .'-]{1,40}(?:, [\w .]{2,30})?"
    r"|[^\W\d_][\w .'-]{1,40},? (?:[A-Z]{2,3} )?(?:\d{4,5}(?:-\d{4})?|[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}|[A-Z]\d[A-Z] ?\d[A-Z]\d)"
)
_PERSON = LazyPattern(PERSON)
_MOST_LINES = 6
_COLUMNS = (
    r"(?:street(?:[ _-]?(?:name|line|address))?|address(?:[ _-]?line)?[ _-]?[12]?|line[ _-]?[12]|stra(?:\xdf|ss)e|adresse|anschrift|direcci[o\xf3]n"
    r"|endere[c\xe7]o|indirizzo)[ _-]?[12]?"
)
_COLUMN_END = LazyPattern(
    rf"(?i)(?<=[\n,;\t| \"'_]){_COLUMNS}[\"']?[ \t]{{0,2}}[,;|\t\r\n]|(?<![\s\S]){_COLUMNS}[\"']?[,;|\t]"
)


_COLUMN_STEMS = LazyPattern(
    build_words_pattern(
        fold(w)
        for w in [
            "street",
            "address",
            "line",
            "straße",
            "strasse",
            "adresse",
            "anschrift",
            "direcci",
            "endere",
            "indirizzo",
        ]
    )
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
    for word in view.near(_COLUMN_STEMS):
        if word.start() >= read and _COLUMN_END.match(view.text, word.start()):
            cells, read = find_cells_under(view.text, word.start())
            yield from cells


# Labels of a place to live, after which any words with a number are an address.
_HOME = (
    r"(?:(?:(?:home|postal|mailing|billing|shipping|delivery|street|residential|private|permanent|current|work|office)[ _-]?)?(?:address|addr)(?:[ _-]?line)?[ _-]?[12]?|street(?:[ _-]?(?:name|address|line))?[ _-]?[12]?|residence"
    r"|(?:liefer|rechnungs|post|wohn|privat|haupt|meld\w{0,6})?(?:adresse|anschrift)|wohnort|wohnhaft(?: in)?|wohnsitz|stra(?:\xdf|ss)e(?: und (?:haus)?(?:nr|nummer)\.?)?|stra(?:\xdf|ss)e\/(?:haus)?nr\.?|domicile|adresse postale|adresse de (?:livraison|facturation)|domicilio|direcci[o\xf3]n(?: de env[i\xed]o)?|indirizzo(?: di (?:residenza|casa))?|residenza|endere[c\xe7]o|morada|resid\xeancia"
    r"|adres(?: zamieszkania| korespondencyjny)?|miejsce zamieszkania|woonadres|woonplaats|adress|bostadsadress|gatuadress|osoite|adresa(?: bydli\u0161t\u011b)?|bydli\u0161t\u011b|lakc\xedm|ul\.)"
)
_WORDS = r"(?:[A-Z\xc0-\xde\u0100-\u017d][^\n\"'<>|;{}=()\[\]:]{2,60}?[ ,]{1,2}(?:n[.\xba\xb0o]{1,2} ?)?\d{1,4}(?:[ /-]?\d{1,3})?[a-zA-Z]?|\d{1,5}(?: ?bis| ?ter)?[a-zA-Z]?,? [^\n\"'<>|;{}=()\[\]:\d]{0,12}[A-Z\xc0-\xde\u0100-\u017d][^\n\"'<>|;{}=()\[\]:\d]{2,50})"
_HOME_LINE = LazyPattern(
    rf"(?<![^\W_])[ \t>|*_\"'`-]{{0,12}}(?i:{_HOME})[*_\"'`]{{0,3}}(?:[ \t]{{0,3}}[:=\uff1a]|>|[ \t]{{0,3}}\|)[ \t*_|\"'`]{{0,6}}(?P<v>{_WORDS}(?:, ?[^\n\"'<>|;{{}}=()\[\]:]{{2,60}})?)(?=[ \t*_|\"'`.,]*(?:<|\r?\n|$|[,}}]))"
)
_NO_HOME = LazyPattern(
    r"(?i)\b(?:ip|line|port|version|step|page|chapter|section|level|class|byte|bytes|bit|bits|localhost|register|memory|offset|null|none|true|false|test|utf|http|https|error|v\d)\b|0x|\d\.\d|@|/[a-z]+/|_"
)
_LIVES = LazyPattern(
    rf"(?i:(?<!\w)(?:wohn\w{{0,4}}|lebe|lebt|zieh\w{{0,3}}|gezogen|habit\w{{1,4}}|demeur\w{{1,4}}|viv[oei]\w{{0,2}}|mor[oa]|abit[oa]|resid\w{{1,4}}|live[sd]?|living|ship\w{{0,4}}|send|sent|deliver\w{{0,3}}|mail|moved?|post|come|meet|visit|mieszka\w{{0,2}}|bor|woont?|woon)\b)(?P<gap>[^\n.:;|={{}}()]{{1,40}}?)(?P<v>{STREET})"
)
_SURE = LazyPattern(
    r"(?<![\w/])(?P<v>[A-Z\xc0-\xde][\w\xdf-]{2,30}(?:stra(?:\xdf|ss)e|str\.) \d{1,4}[a-z]?(?:,? \d{5} [A-Z\xc0-\xde][\w\xdf-]{2,30})?"
    r"|\d{1,5} (?:[A-Z][\w'.-]{1,24} ){1,3}(?:Street|Avenue|Road|Lane|Drive|Boulevard|Terrace|Crescent),? (?:[A-Z][\w'. -]{1,30},? ){1,2}(?:[A-Z]{2} \d{5}(?:-\d{4})?|[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2})"
    r"|\d{1,4}(?: ?bis| ?ter)?,? (?:rue|avenue|boulevard|place|chemin|impasse|all\xe9e|quai|cours) [^\n,\"'<>|;\d]{2,40},? \d{5} [A-Z\xc0-\xde][\w\xdf-]{2,30})(?!\w)"
)
_VERBS = r"(?:wohn|leb|zieh|gezogen|habit|demeur|viv|mor|abit|resid|liv|ship|sen|deliver|mail|move|post|come|meet|visit|mieszka|bor|woon)[a-z]*"
_ENGLISH = r"(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Drive|Dr|Boulevard|Blvd|Way|Court|Ct|Place|Pl|Square|Sq|Terrace|Close|Crescent|Highway|Hwy|Parkway|Pkwy|Gardens|Row|Hill)"
_LABEL = 60  # characters before a word of a label in which its line begins
_HOME_STEMS = LazyPattern(
    build_words_pattern(
        fold(w)
        for w in "addr street residen liefera rechnungsa posta wohn privata adresse anschrift stra\xdfe strasse domicil direcci indirizz endere morada adres zamieszk woon bostad gatua osoite bydli lakc".split()  # noqa: SIM905
    )
)
_LONGEST = 120  # characters of an address behind the end of its probe
_EAST = LazyPattern(
    r"(?:[\u4e00-\u9fff]{2,3}[\u90fd\u9053\u5e9c\u770c])[\u3040-\u30ff\u4e00-\u9fff]{1,24}[0-9\uff10-\uff19]{1,4}(?:[-\u30fc\uff0d\u2212\u4e01\u76ee\u756a\u5730\u53f7\u306e][0-9\uff10-\uff19]{0,4}){0,4}"
    r"|[\u4e00-\u9fff]{2,8}(?:\u7701|\u5e02|\u533a)[\u4e00-\u9fff]{1,24}(?:\u8def|\u8857|\u9053|\u5df7|\u5f04)[0-9]{1,5}\u53f7(?:[\u4e00-\u9fff0-9-]{0,16}(?:\u5ba4|\u680b|\u697c))?"
    r"|[\uac00-\ud7af]{2,8}(?:\uc2dc|\ub3c4) [\uac00-\ud7af ]{1,24}(?:\ub85c|\uae38|\ub3d9) ?\d{1,4}(?:-\d{1,4})?"
)


def find_labelled_homes(view: TextView) -> Iterator[Span]:
    """Find addresses after the labels of forms."""
    text, done = view.text, -1
    for word in view.near(_HOME_STEMS):
        start = text.rfind("\n", max(0, word.start() - _LABEL), word.start()) + 1
        for at in (start, word.start()):
            match = _HOME_LINE.match(text, at)
            if match and match.start("v") > done and not _NO_HOME.search(match["v"]):
                done = match.start("v")
                yield Span(*match.span("v"), "ADDRESS")
                break


def find_homes(view: TextView) -> Iterator[Span]:
    """Find addresses after words for living and sending, and those with a postcode."""
    for low, high in view.windows():
        for pattern in (_LIVES, _SURE):
            for match in pattern.finditer(view.text, low, min(len(view.text), high + _LONGEST)):
                yield Span(match.start("v"), match.start("v") + len(match["v"].rstrip(" ,.")), "ADDRESS")


def find_eastern(view: TextView) -> Iterator[Span]:
    """Find addresses as written in Japan, China and Korea."""
    for match in _EAST.finditer(view.text):
        yield Span(*match.span(), "ADDRESS")


_LATIN_HOME = re.sub(r"\\u[0-9a-f]{4}", r"\\?", _HOME)
DETECTORS: tuple[Detector, ...] = (
    make_probed_detector(find_address_blocks, rf"(?i){_HEADS}", located=True),
    make_probed_detector(find_address_columns, rf"(?i){_COLUMNS}[\"']?[ \t]{{0,2}}[,;|\t\r\n]", located=True),
    make_probed_detector(
        find_labelled_homes,
        rf"(?i){_LATIN_HOME}[*_\"'`]*(?:[ \t]*[:=?]|>|[ \t]*\|)[ \t*_|\"'`]*(?-i:[A-Z0-9?\xc0-\xdf])",
        located=True,
    ),
    make_probed_detector(
        find_homes,
        rf"(?i){_VERBS}(?-i:[^\n.:;|={{}}()]*\d[a-z]? (?:[A-Z][\w'.-]+ )+{_ENGLISH}[^A-Za-z])",
        rf"(?i){_VERBS}[^\n.:;|={{}}()]*(?:\d{{1,4}}(?: ?bis| ?ter)?,? (?:rue|avenue|av\.|boulevard|bd|place|chemin|impasse|all\xe9e|quai|route|cours) |(?:stra(?:\xdf|ss)e|str\.|weg|platz|allee|gasse|damm|ring|ufer|straat|gatan|vej) \d|(?:calle|c/|avenida|av\.|rua|r\.|via|plaza|piazza|pra\xe7a|travessa|viale|corso|ulica|ul\.) [^\n]*\d)",
        r"(?:stra(?:\xdf|ss)e|str\.) \d|\d (?:rue|avenue|boulevard|place|chemin|impasse|all\xe9e|quai|cours) [^\n]*\d{5} [A-Z\xc0-\xde]|(?:Street|Avenue|Road|Lane|Drive|Boulevard|Terrace|Crescent),? [A-Z]",
        located=True,
    ),
    make_probed_detector(find_eastern, r"\?{4}(?:[0-9]|\?[0-9]|\? ?[0-9]|\?{1,2}[0-9])"),
)
