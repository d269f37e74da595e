# ruff: noqa: E501 (patterns)
"""Detect names of persons in conversations, letters, forms and lists of contributors."""

import re
from collections.abc import Iterator

from tracemill.privacy.core.lazy_pattern import LazyPattern
from tracemill.privacy.core.rule import (
    Detector,
    Span,
    TextView,
    make_probed_detector,
)
from tracemill.privacy.core.word_lists import COMMON_WORDS, NO_PERSONS, SHARED_NAMES
from tracemill.privacy.personal.labelled_data import PERSON, is_person

_CAPITAL = r"[A-Z?\xc0-\xde]"
_ENDS = r"(?=[ \t]*(?:[,.;]?[ \t]*\r?(?:\n|$)))"
# A name on the line after the words that close a letter.
_CLOSINGS = (
    r"(?:(?:kind|best|warm|with kind|many)? ?regards|best wishes|best|cheers|thanks(?: (?:again|a lot|so much))?|many thanks|thank you|sincerely(?: yours)?|yours(?: sincerely| faithfully| truly)?|take care"
    r"|(?:mit )?(?:freundlichen|besten|lieben|herzlichen|viele|liebe|beste|herzliche)n? gr\xfc(?:\xdf|ss)e?n?|mfg|lg|hochachtungsvoll|cordialement|bien \xe0 (?:vous|toi)|sinc\xe8res salutations|amicalement|bien cordialement"
    r"|(?:un )?(?:cordial )?saludos?(?: cordiale?s?)?|atentamente|un abrazo|atenciosamente|cumprimentos|com os melhores cumprimentos|abra\xe7os?|cordiali saluti|distinti saluti|saluti|met vriendelijke groet(?:en)?|groet(?:en|jes)?"
    r"|pozdrawiam|z powa\u017caniem|z wyrazami szacunku|s pozdravom|lep pozdrav|srda\u010dan pozdrav|\xfcdv\xf6zlettel|cu stim\u0103|sayg\u0131lar\u0131mla|sevgiler(?:imle)?|bisous|bises|abbracci|salutations distingu\xe9es|cordiais sauda\xe7\xf5es|liefs|kram|h\xe4lsningar|hilsen|(?:\u0441|\u0437) (?:\u0443\u0432\u0430\u0436\u0435\u043d\u0438\u0435\u043c|\u043f\u043e\u0432\u0430\u0433\u043e\u044e|\u043f\u043e\u0447\u0442\u0435\u043d\u0438\u0435\u043c|\u043d\u0430\u0438\u043b\u0443\u0447\u0448\u0438\u043c\u0438 \u043f\u043e\u0436\u0435\u043b\u0430\u043d\u0438\u044f\u043c\u0438)|\u043f\u043e\u0437\u0434\u0440\u0430\u0432|\u03bc\u03b5 \u03b5\u03ba\u03c4\u03af\u03bc\u03b7\u03c3\u03b7|med v\xe4nliga? h\xe4lsningar|mvh|(?:med )?v\xe4nliga? h\xe4lsning(?:ar)?|med venlig hilsen|vennlig hilsen|yst\xe4v\xe4llisin terveisin|s pozdravem)"
)
_CLOSED = LazyPattern(
    rf"(?i:(?<![^\n>]){_CLOSINGS})[,.!]?[ \t]*\r?\n(?:[ \t>]*\r?\n)?[ \t>]{{0,6}}(?:-{{1,2}} ?)?(?P<v>{PERSON}){_ENDS}"
)
_TITLED = LazyPattern(
    r"(?<![\w.])(?:Mr|Mrs|Ms|Mx|Herrn?|Frau|Mme|Mlle|Madame|Monsieur|Se\xf1ora?|Sr|Sra|Signora?|Sig|Pan\xed|Pani?|Prof|Dr)\.? (?:(?:Dr|Prof)\.? ){0,2}"
    rf"(?P<v>{PERSON})"
)
_CLOCK = r"\d{1,2}:\d\d(?::\d\d)?(?:[ \u202f]?[APap]\.?[Mm]\.?)?"
_DAY = r"(?:\d{1,4}[./-]\d{1,2}[./-]\d{1,4}|\w{3,9} \d{1,2}(?:, \d{4})?)"
_SAID = LazyPattern(
    rf"(?<![^\n])[ \t>]{{0,6}}(?:\[(?:{_DAY},? )?{_CLOCK}\]|{_DAY},? {_CLOCK} -|{_CLOCK} -?)[ \t]{{1,3}}(?:<(?P<n>[A-Za-z_][\w.|-]{{2,31}})>|(?P<v>{PERSON})(?=: ))"
    rf"|(?<![^\n])[ \t>]{{0,6}}(?P<w>{PERSON})[ \t]{{1,4}}\[?{_CLOCK}\]?[ \t]*(?=\r?\n|$)"
)
_NICK = LazyPattern(
    r"(?<![^\n])[ \t>]{0,6}<(?P<n>[A-Za-z_][\w|-]{2,31})> (?=[^\n<>(][^\n<>]*(?:\n|$))(?![^\n]*</)"
)
_NOTED = LazyPattern(rf"(?:TODO|FIXME|XXX|HACK|NOTE|BUG)\((?P<v>{PERSON})\)")
_CITED = LazyPattern(r"(?i:\b(?:author|editor)s?)[ \t]{0,12}=[ \t]{0,4}[{\"](?P<items>[^{}\"\n]{4,400})[}\"]")
_HEADED = LazyPattern(
    r"(?<![^\n])[#=*_ \t]{0,6}(?i:contributors?|authors?|maintainers?|core team|(?:development |project )?team(?: members)?|credits|thanks(?: to)?|acknowledge?ments|attendees|participants|present|committers|mentors|reviewers)[*_: \t]{0,4}\r?\n(?:[-=~^]{3,}\r?\n)?(?:[ \t]*\r?\n)?"
    r"(?P<items>(?:[ \t]{0,6}(?:[-*+\u2022]|\d{1,3}[.)])[ \t]{1,4}[^\n]{3,120}(?:\r?\n|$)(?:[ \t]*\r?\n)?){1,100})"
)
_ITEM = LazyPattern(
    rf"(?<![^\n])[ \t]{{0,6}}(?:[-*+\u2022]|\d{{1,3}}[.)])[ \t]{{1,4}}(?:\[|\*\*)?(?P<v>{PERSON})(?=[ \t]*(?:\]|\*\*|[-\u2013(<,:@]|\r?\n|$))"
)
_ACCOUNT_OBJECT = LazyPattern(
    rf"\"(?:login|username|screen_name|handle|is_bot|display_?[nN]ame|email)\"\s?:[^{{}}]{{0,400}}?\"(?:name|real_?[nN]ame|display_?[nN]ame)\"\s?:\s?\"(?P<v>{PERSON})\""
    rf"|\"(?:name|real_?[nN]ame|display_?[nN]ame)\"\s?:\s?\"(?P<w>{PERSON})\"[^{{}}]{{0,400}}?\"(?:login|username|screen_name|handle|e?mail|phone)\"\s?:"
)
_DISPLAYED = LazyPattern(
    rf"\"(?:real_?[nN]ame|display_?[nN]ame|realname_normalized|real_name_normalized)\"\s?:\s?\"(?P<v>{PERSON})\""
)
# Labels of a whole name that say so themselves.
_WHOLE_NAMES = (
    r"(?:nom complet|nom et pr\xe9nom|pr\xe9nom et nom|nombre completo|nombre y apellidos?|nome completo|nome e cognome|vor- und (?:nach|zu)name|vor- und familienname|name des (?:patienten|kunden|mitarbeiters|versicherten)|imi\u0119 i nazwisko|voor- en achternaam"
    r"|kontoinhaber(?:in)?|karteninhaber(?:in)?|versicherte[rn]?|versicherungsnehmer(?:in)?|ansprechpartner(?:in)?|ansprechperson|mitarbeiter(?:in)?|patient(?:in|e)?|kund(?:e|in)|empf\xe4nger(?:in)?|antragsteller(?:in)?|auftraggeber(?:in)?|sachbearbeiter(?:in)?|verantwortliche[rn]?"
    r"|titulaire(?: du compte)?|destinataire|b\xe9n\xe9ficiaire|salari\xe9e?|employ\xe9e?|titular(?: de la cuenta)?|beneficiari[oa]|destinatari[oa]|emplead[oa]|paciente|pac[ij]ent(?:ka)?|intestatario|dipendente|paziente|titolare|klient(?:ka)?|pracownik|odbiorca|begunstigde|werknemer|naam|namn|navn|nimi|jm\xe9no a p\u0159\xedjmen\xed"
    r"|account[ _-]?holder|card[ _-]?holder|policy[ _-]?holder|emergency[ _-]?contact|next of kin|beneficiary|applicant|recipient|insured(?: person)?|guardian|employee|tenant|landlord|passenger|attendee|candidate|interviewer|physician|doctor|nurse|attorney|witness|contact(?:[ _-]?person)?|customer|cardmember|payer|payee|spouse|signed by|prepared by|approved by|requested by|submitted by|reviewed by|assigned to|reported by|created by|written by|owner)"
)
_WHOLE = LazyPattern(rf"(?i){_WHOLE_NAMES}")
# Labels that also name things; another field of a person stands near.
_ANY = LazyPattern(
    r"(?i)(?:name|nom|nombre|nome|client|kontakt|user|student|author|member|person|guest|agent|manager|supervisor)"
)
_VALUE = LazyPattern(
    rf"[:|=\uff1a][ \t*_|\"]{{0,8}}(?P<v>{PERSON}|{_CAPITAL[:-1].replace('?', '')}][^\W\d_]{{1,24}})(?=[ \t\"*_|]*(?:[,;(<]|\r?\n|$))"
)
_LABEL_START = LazyPattern(r"(?:^|[\n|>*_\"])[ \t>*_\"-]*(?=[^\n|>*_\"]*$)")
_FIELD = LazyPattern(
    r"(?<![^\W_\d])(?:e-?mail|phone|mobile|telefon\w*|tel|t\xe9l\w*|tel\xe9fono|handy|address|adresse|anschrift|direcci\xf3n|indirizzo|endere\xe7o|street|stra\xdfe|city|town|ort|ville|ciudad|citt\xe0|cidade|zip|plz|postal ?code|postcode|dob|date of birth|birth ?da(?:te|y)"
    r"|geburtsdatum|geboren|naissance|nacimiento|nascita|age|alter|gender|geschlecht|nationality|passport|ssn|iban|apellidos?|pr\xe9nom|vorname|nachname|cognome|sobrenome|job ?title|department|company|insurance|curp|sin|tfn|nric|bsn|pesel|dni|cpf|c\.f\.|codice fiscale|\w{0,12}(?:kimlik|teudat|personnummer|rijksregister|ahv|sozialversicherungs)\w{0,12}|(?:sa|national|personal|tax)_?id\w{0,8}|ausweis\w*|birth_?date|date_of_birth|geboren am|nato il|\w{2,24}\u865f\u78bc?|\w{2,24}\ubc88\ud638|\w{2,24}\u8bc1\u53f7)[\"*_]{0,3}[ \t]{0,3}[:|=\uff1a]"
)
_ALSO_SMALL = str.maketrans("\u0130\u0131\u017f", "iis")
"""Characters that equal i and s where case does not matter, and whose small letters are others."""
_NEAR = 240  # characters on either side of a name in which another field stands
_PARTS_OF_NAMES = LazyPattern(r"(?i)nom|nombre|nome")
_PARTNER = LazyPattern(r"(?i)(?:pr\xe9nom|apellidos?|cognome|sobrenome|prenom)[ \t]{0,3}:")
_EASTERN_LABEL = LazyPattern("[\u540d\u8005\u4eba\u4e8b\uc131\uc774]")
_LABEL = 60  # characters before a value in which its label begins
_LONGEST = 80  # characters of a name behind the end of its probe
_JAPANESE = LazyPattern(
    r"(?:\u6c0f\u540d|\u540d\u524d|\u304a\u540d\u524d|\u59d3\u540d|\uc131\uba85|\uc774\ub984|\u8054\u7cfb\u4eba|\u6536\u4ef6\u4eba|\u62c5\u5f53\u8005|\u53d7\u53d6\u4eba)[\"*]{0,3}[ \t]{0,2}[:=|\uff1a][ \t\"|]{0,4}(?P<v>[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]{2,8}(?:[ \u3000][\u3040-\u30ff\u4e00-\u9fff]{1,6})?)(?=[\s\"|,\u3001\u69d8]|$)"
)
_NOBODY = COMMON_WORDS | SHARED_NAMES | NO_PERSONS
_NO_NAME = COMMON_WORDS | frozenset(
    """
    support team service services department office desk group system systems management admin customer sales marketing engineering
    product products project development operations release manager security platform design review build deploy test tests
    default string value type required optional unknown none null true false new old first last full name field
    """.split()  # noqa: SIM905
)


def _is_name(value: str) -> bool:
    return is_person(value) and not _NO_NAME.intersection(value.lower().split(" "))


def _make_finder(pattern: LazyPattern[str], *probes: str) -> Detector:
    """Build the detector of the names in the groups `v` and `w` of a pattern."""

    def find(view: TextView) -> Iterator[Span]:
        for match in pattern.finditer(view.text):
            group = match.lastgroup or "v"
            if _is_name(match[group]):
                yield Span(*match.span(group), "PERSON")

    return make_probed_detector(find, *probes)


def find_speakers(view: TextView) -> Iterator[Span]:
    """Find names and nicknames before what was said in a chat."""
    for match in _SAID.finditer(view.text):
        group = next(each for each in ("n", "v", "w") if match[each])
        if (group == "n" or _is_name(match[group])) and match[group].lower() not in _NOBODY:
            yield Span(*match.span(group), "USER" if group == "n" else "PERSON")
    nicks = [match for match in _NICK.finditer(view.text) if match["n"].lower() not in _NOBODY]
    if len(nicks) > 1:
        yield from (Span(*match.span("n"), "USER") for match in nicks)


def find_listed(view: TextView) -> Iterator[Span]:
    """Find names in lists below a heading, and in the fields of bibliographies."""
    text = view.text
    for head in _HEADED.finditer(text):
        for item in _ITEM.finditer(text, *head.span("items")):
            if _is_name(item["v"]):
                yield Span(*item.span("v"), "PERSON")
    for field in _CITED.finditer(text):
        at = field.start("items")
        for part in re.split(r"(\s+and\s+)", field["items"]):
            name = part.strip()
            plain = " ".join(reversed(name.split(", ", 1)))
            if re.fullmatch(PERSON, plain) and _is_name(plain):
                start = at + part.index(name)
                yield Span(start, start + len(name), "PERSON")
            at += len(part)


def find_in_forms(view: TextView) -> Iterator[Span]:
    """Find whole names after labels of forms; after `Name:` where another field of a person stands near."""
    text = view.text
    for low, high in view.windows():
        for found in _VALUE.finditer(text, low, min(len(text), high + _LONGEST)):
            start = _LABEL_START.search(text, max(0, found.start() - _LABEL), found.start())
            label = text[start.end() if start else found.start() : found.start()].strip(' \t*_"')
            if _is_name_of(label, found, text):
                yield Span(*found.span("v"), "PERSON")


def _is_name_of(label: str, found: re.Match[str], text: str) -> bool:
    """Tell whether a value after a label is a name, in view of the fields around it."""
    value, start, end = found["v"], found.start(), found.end()
    if " " not in value:
        partner = _PARTS_OF_NAMES.fullmatch(label) and _PARTNER.search(
            text, max(0, start - _NEAR), end + _NEAR
        )
        return bool(partner) and value.lower() not in _NO_NAME
    if not _is_name(value):
        return False
    return bool(_WHOLE.fullmatch(label) or (_ANY.fullmatch(label) and _is_among_fields(text, start, end)))


def find_eastern_names(view: TextView) -> Iterator[Span]:
    """Find names after labels in Japanese, Chinese and Korean."""
    if _EASTERN_LABEL.search(view.text):
        for match in _JAPANESE.finditer(view.text):
            yield Span(*match.span("v"), "PERSON")


def _is_among_fields(text: str, start: int, end: int) -> bool:
    """Tell whether a label of another field of a person stands near a part of the text."""
    return holds_field(text, max(0, start - _NEAR), start) or holds_field(text, end, end + _NEAR)


def holds_field(text: str, start: int, end: int) -> bool:
    """Tell whether the label of a field stands in a part of the text, in any case.

    Searching in small letters is seven times as fast as in any case.
    """
    before = min(1, start)
    part = text[start - before : end]
    small = part.lower() if part.isascii() else part.translate(_ALSO_SMALL).lower()
    return _FIELD.search(small, before) is not None


ACCOUNTS = _make_finder(
    _ACCOUNT_OBJECT,
    r"\"(?:login|username|screen_name|handle|is_bot|display_?[nN]ame|email)\"\s?:[^{}]*\"(?:name|real_?[nN]ame|display_?[nN]ame)\"\s?:\s?\"[A-Z?\xc0-\xde]",
    r"\"(?:name|real_?[nN]ame|display_?[nN]ame)\"\s?:\s?\"[A-Z?\xc0-\xde][^{}]*\"(?:login|username|screen_name|handle|e?mail|phone)\"\s?:",
)
"""The detector of names in objects that describe an account, which reads JSON as a whole."""
DISPLAYED = _make_finder(
    _DISPLAYED,
    r"\"(?:real_?[nN]ame|display_?[nN]ame|realname_normalized|real_name_normalized)\"\s?:\s?\"[A-Z?\xc0-\xde]",
)
"""The detector of names that a service shows, which reads JSON as a whole."""
_LAST_WORDS = (
    r"(?:regards|wishes|best|cheers|thanks|thank you|again|a lot|so much|sincerely|yours|truly|faithfully|take care|mfg|lg|mvh|gr\xfc(?:\xdf|ss)en?|gr\xfc(?:\xdf|ss)|hochachtungsvoll|cordialement|amicalement|\xe0 (?:vous|toi)|salutations"
    r"|saludos?|cordiale?s?|mente|abrazo|cumprimentos|abra\xe7os?|saluti|groet(?:en|jes)?|pozdrawiam|powa\?aniem|h\xe4lsning(?:ar)?|hilsen|terveisin|pozdrav(?:em|om)?|szacunku|zlettel|cu stim\?|mla|sevgiler(?:imle)?|bisous|bises|abbracci|distingu\xe9es|sauda\xe7\xf5es|liefs|kram|\?{6})"
)
_LABEL_END = r"[*_\"]*[ \t]*[:|=?][ \t*_|\"]*"
DETECTORS: tuple[Detector, ...] = (
    _make_finder(_CLOSED, rf"(?i){_LAST_WORDS}[,.!]?[ \t]*\r?\n[\s>-]*(?-i:{_CAPITAL})"),
    _make_finder(
        _TITLED,
        rf"(?:Mr|Mrs|Ms|Mx|Herrn?|Frau|Mme|Mlle|Madame|Monsieur|Se\xf1ora?|Sr|Sra|Signora?|Sig|Pan\xed|Pani?|Prof|Dr)\.? {_CAPITAL}",
    ),
    make_probed_detector(
        find_speakers,
        rf"\d:\d\d(?::\d\d)?(?:.{{0,3}}[APap]\.?[Mm]\.?)?[\])]?[ -]*(?:{_CAPITAL}[^\n]*: |<[A-Za-z_])",
        r"[a-z?\xdf-\xff][ \t]+\[?\d{1,2}:\d\d(?::\d\d)?(?:[^\n]?[APap]\.?[Mm]\.?)?\]?[ \t]*(?:\r|\n|$)",
        r"(?:^|\n)[ \t>]*<[A-Za-z_][\w|-]{2,31}> [^\n<>]*\n",
    ),
    _make_finder(_NOTED, rf"(?:TODO|FIXME|XXX|HACK|NOTE|BUG)\({_CAPITAL}"),
    make_probed_detector(
        find_listed,
        r"(?i)(?:author|editor)s?[ \t]*=[ \t]*[{\"]",
        r"(?i)(?:contributors?|authors?|maintainers?|team|members|credits|thanks|to|acknowledge?ments|attendees|participants|present|committers|mentors|reviewers)[*_: \t]*\r?\n[-=~^\s]*(?:[-*+?]|\d{1,3}[.)])[ \t]",
    ),
    make_probed_detector(
        find_in_forms,
        rf"(?i)(?:complet|completo|apellidos?|nombre|nome|cognome|nom|name|nazwisko|achternaam|inhaber(?:in)?|versicherte[rn]?|nehmer(?:in)?|ansprechpartner(?:in)?|ansprechperson|mitarbeiter(?:in)?|patient(?:in|e)?|kund(?:e|in)|empf\xe4nger(?:in)?|antragsteller(?:in)?|auftraggeber(?:in)?|sachbearbeiter(?:in)?|verantwortliche[rn]?|versicherten|kunden|patienten){_LABEL_END}(?-i:{_CAPITAL})",
        rf"(?i)(?:titular|cuenta|titulaire|compte|destinataire|b\xe9n\xe9ficiaire|salari\xe9e?|employ\xe9e?|beneficiari[oa]|destinatari[oa]|emplead[oa]|paciente|pac[ij]ent(?:ka)?|intestatario|dipendente|paziente|titolare|klient(?:ka)?|pracownik|odbiorca|begunstigde|werknemer|naam|namn|navn|nimi|p\?\xedjmen\xed){_LABEL_END}(?-i:{_CAPITAL})",
        rf"(?i)(?:holder|contact|kin|beneficiary|applicant|recipient|insured|guardian|employee|tenant|landlord|passenger|attendee|candidate|interviewer|physician|doctor|nurse|attorney|witness|customer|member|payer|payee|spouse|ed by|en by|ed to|owner|client|kontakt|user|student|author|guest|agent|manager|supervisor|person){_LABEL_END}(?-i:{_CAPITAL}[^\n:]* {_CAPITAL})",
        located=True,
    ),
    make_probed_detector(find_eastern_names, r"\?\?[\"*]*[ \t]*[:=|?][ \t\"|]*\?\?"),
    ACCOUNTS,
    DISPLAYED,
)
DECLARING: tuple[Detector, ...] = (ACCOUNTS, DISPLAYED)
"""The detectors that read JSON as a whole."""
