# ruff: noqa: E501 (patterns)
"""Detect names of persons behind a role: in forms, JSON, XML, BibTeX, document metadata, SQL and greetings."""

import re
from collections.abc import Iterator

from tracemill.privacy.core.lazy_pattern import LazyPattern
from tracemill.privacy.core.rule import Detector, Span, TextView, make_anywhere_detector, make_probed_detector
from tracemill.privacy.core.word_lists import COMMON_WORDS, NO_PERSONS, SHARED_NAMES
from tracemill.privacy.personal.given_names import begins_with_given_name
from tracemill.privacy.personal.labelled_data import PERSON
from tracemill.privacy.personal.role_words import (
    LATIN_ROLES,
    is_holder_of_people,
    is_name_label,
    is_role_label,
    split_label,
)
from tracemill.privacy.personal.unannounced_data import is_full_name

_REACH = 120  # characters of a name behind the end of its probe
_BETWEEN = 48  # characters between a label and its separator
_LABEL = 48  # characters before a separator in which its label begins
_AROUND = 160  # characters before a bare label in which a role stands
# `: `, `": "`, `** : `, ` = {`, `" content="`, `">`, ` | `, ` (`; and what may stand between a label and it.
_SEPARATOR = r"[:\uff1a=|({](?:(?<![({])>?\s{0,3}[\[{]?\s{0,3}\\*[\"'`*_({]{0,3}[ \t]{0,2})?"
_BEFORE_SEPARATOR = LazyPattern(r"(?:[\"'] (?:content|value)|[\"'`*_\]]{0,3}[ \t\u00a0]{0,40})$")
_END = r"(?=\\*(?:[\"'`]|[ \t*_|})\]]{0,4}(?:[,;(<}\]\x1b]|\r?\n|$|&lt;)))"
_NAME = r"[A-Z\xc0-\xde\u0100-\u017d][^\W\d_]{1,24}(?:-[A-Z\xc0-\xde][^\W\d_]{1,24})?"
_LAST_FIRST = rf"{_NAME}, {_NAME}(?: [A-Z]\.)?"
_VALUE = LazyPattern(rf"{_SEPARATOR}(?P<v>{_LAST_FIRST}(?=[ \t\"'|*]*(?:\r?\n|$))|{PERSON}){_END}")
_NEXT = LazyPattern(
    rf"(?:[,;] (?:and |und )?| (?:and|und|et|y|e|i|og|och|en|&) )(?P<v>{PERSON})(?![\w(/]|\.\w)"
)
_BEFORE = LazyPattern(r"(?:[^\W\d_][\w'\u2019.()/\u00a0-]*[ _]){0,5}[^\W\d_][\w'\u2019.()/-]*$")
_ELEMENT = LazyPattern(
    rf"(?:<|&lt;)(?:[\w-]+:)?(?P<l>\w{{2,40}})(?:\s[^<>]{{0,80}})?(?:>|&gt;)\s{{0,3}}(?P<v>{PERSON}|{_LAST_FIRST})\s{{0,3}}(?:</|&lt;/)"
)
_INPUT = LazyPattern(
    rf">(?P<l>[^\W\d_][^<>\n:]{{2,40}}):?</label>\s{{0,40}}<input[^<>]{{0,120}}?value=[\"'](?P<v>{PERSON})[\"']"
)
_OPENED = LazyPattern(r"<(?:[\w-]+:)?(?P<l>\w{3,40})(?: [^<>]{0,80})?>(?!\s*[^\s<])")
_COMMAND = LazyPattern(r"[\\/](?P<l>[A-Za-z]{3,24})$")
_ROLE_NEAR = LazyPattern(
    r"[A-Za-z][\w-]{2,40}(?=[\"'`]?\]?[ \t]*(?:[:=]|=>)?\s*[\[{(]|[ \t]*:[ \t]*\n|\]{1,2}[ \t]*\n)"
)
_TABLES = r"(?:users?|customers?|clients?|patients?|persons?|people|employees?|staff|students?|pupils?|teachers?|members?|contacts?|guests?|authors?|tenants?|applicants?|candidates?|doctors?|drivers?|passengers?|subscribers?|profiles?)"
_TABLE_NAMED = LazyPattern(rf"(?i)(?:update|from|into|join)\s{{1,3}}[\"'`\[]?(?:\w+[._])?{_TABLES}\b")


def find_people_by_role(view: TextView) -> Iterator[Span]:
    """Find names behind a label, a key or an element that says what the person is."""
    text = view.text
    for low, high in view.windows():
        end = min(len(text), high + _REACH)
        for found in _VALUE.finditer(text, low, end):
            if is_full_name(name_in_order(found["v"])) and _is_labelled(text, found):
                yield Span(*found.span("v"), "PERSON")
                yield from _following_names(text, found.end("v"))
        for found in _INPUT.finditer(text, low, end):
            if is_full_name(found["v"]) and (
                is_role_label(found["l"]) or is_name_label(found["l"].split()[0])
            ):
                yield Span(*found.span("v"), "PERSON")
        for found in _ELEMENT.finditer(text, low, end):
            if is_full_name(name_in_order(found["v"])) and _is_element_of_person(text, found):
                yield Span(*found.span("v"), "PERSON")


def find_people_in_statements(view: TextView) -> Iterator[Span]:
    """Find names that a statement of SQL writes to a table of people, or searches there."""
    text = view.text
    for low, high in view.windows(_STATEMENT):
        for table in _TABLE_NAMED.finditer(text, low, high):
            stop = text.find(";", table.end(), table.end() + _STATEMENT)
            for found in _QUOTED.finditer(text, table.end(), stop if stop >= 0 else table.end() + _STATEMENT):
                if is_full_name(found["v"]) and begins_with_given_name(found["v"]):
                    yield Span(*found.span("v"), "PERSON")


def name_in_order(name: str) -> str:
    """Return a name with the first name first, and a last name in capitals as other names are written."""
    words = " ".join(reversed(name.split(", ", 1))).split(" ")
    if sum(map(str.isupper, words)) == 1:
        words = [word.title() if word.isupper() else word for word in words]
    return " ".join(words)


def _following_names(text: str, at: int) -> Iterator[Span]:
    """Yield the other names of a list: `A B, C D and E F`."""
    while (found := _NEXT.match(text, at)) and is_full_name(found["v"]):
        yield Span(*found.span("v"), "PERSON")
        at = found.end()


def _is_labelled(text: str, found: re.Match[str]) -> bool:
    start = found.start()
    if text[start] in "{(":
        command = _COMMAND.search(text[max(0, start - _LABEL) : start].removesuffix(" "))
        return bool(command) and is_role_label(command["l"])
    between = _BEFORE_SEPARATOR.search(text, max(0, start - _BETWEEN), start)
    start = between.start() if between else start
    before = text[max(0, start - _LABEL) : start]
    label = _BEFORE.search(before)
    if label is None:
        return False
    name = label[0].rstrip("( ")
    if is_role_label(name) or is_role_label(name.rpartition("(")[2]):
        return True
    if not is_name_label(name):
        return False
    if begins_with_given_name(found["v"]) or _is_among_people(text, start):
        return True
    return len(split_label(name)) == 1 and _has_personal_fields(text, start)


def _is_element_of_person(text: str, found: re.Match[str]) -> bool:
    """Tell whether an element is a role, or a name: a given name, or one inside an element of a person."""
    label = found["l"]
    if is_role_label(label):
        return True
    if not (is_name_label(label) or label in _NAME_ELEMENTS):
        return False
    if begins_with_given_name(found["v"]) or _has_personal_fields(text, found.start()):
        return True
    opened = list(_OPENED.finditer(text, max(0, found.start() - _AROUND), found.start()))
    return bool(opened) and any(
        is_holder_of_people(each["l"]) or each["l"] in _PARTIES for each in opened[-3:]
    )


def _is_among_people(text: str, start: int) -> bool:
    """Tell whether a bare `name` is a field of an object, or of a table, that describes a person."""
    before = text[max(0, start - _AROUND) : start]
    above = [each[0] for each in _ROLE_NEAR.finditer(before)]
    return bool(above and is_holder_of_people(above[-1])) or _TABLE_NAMED.search(before) is not None


def _has_personal_fields(text: str, at: int) -> bool:
    """Tell whether fields beside a name are those of a person, in an object, an element or a paragraph."""
    low, high = max(0, at - _BESIDE), min(len(text), at + _BESIDE)
    for opening, closing in (("{", "}"), ("\n\n", "\n\n")):
        low = max(low, text.rfind(opening, low, at) + 1)
        end = text.find(closing, at, high)
        high = end if end >= 0 else high
    return _PERSONAL_FIELD.search(text, low, high) is not None


_BESIDE = 240  # characters on either side of a name in which fields of the same person stand
_PERSONAL_FIELD = LazyPattern(
    r"(?i)(?<![^\W_])(?:e-?mail|adresse|anschrift|courriel|civilit[e\xe9]|direcci[o\xf3]n|indirizzo|endere[c\xe7]o|(?:home|work|cell|tele)?_?phone|mobile|tel|telefon[eo]?|t\xe9l\xe9phone|tel\xe9fono|celular|fax|dob|date_?of_?birth|birth_?(?:date|day)|geb|geburts\w+|nascimento|naissance|nacimiento"
    r"|passport\w*|ssn|cpf|pesel|nir|bsn|dni|iban|cvc|cvv|gender|sex|age|alter|nationality|salary|gehalt|kvnr|street|stra(?:\xdf|ss)e|plz|zip(?:_?code)?|post(?:al_?)?code)(?:[_ -]?(?:no|nr|number|address))?[\"'`]?(?:[ \t]{0,8}[:=]|>)[ \t]{0,4}[\"']?[^\s\"'<>,{}]"
)
"""Names of fields that records of persons have, with a value."""
_NAME_ELEMENTS = frozenset(("Nm", "nm", "displayName", "fullname", "fullName", "CommonName"))
_PARTIES = frozenset(("Dbtr", "Cdtr", "UltmtDbtr", "UltmtCdtr", "InitgPty", "Pty"))
"""Elements of a person in payments (ISO 20022)."""
_STATEMENT = 800  # characters of a statement behind the name of its table
_QUOTED = LazyPattern(rf"'(?P<v>{PERSON})'")
_GREETINGS = (
    r"(?:dear|hi|hello|hey|bonjour|bonsoir|salut|cher|ch\xe8re|hallo|liebe[rs]?|guten (?:tag|morgen|abend)|moin|gr\xfc\xdf (?:gott|dich)|hola|estimad[oa]|querid[oa]|buen(?:os|as) (?:d\xedas|tardes|noches)|ol\xe1|car[oa]|prezad[oa]|bom dia|boa tarde"
    r"|ciao|gentile|buongiorno|salve|egregio|beste|geachte|goedemorgen|goedendag|hej|hei|k\xe4ra|k\xe4re|k\xe6re|kj\xe6re|hyv\xe4|terve|cze\u015b\u0107|witaj|drog[ia]|szanown[ya]|dzie\u0144 dobry|dobr\xfd den|ahoj|v\xe1\u017een[\xfd\xe1]|mil[\xfd\xe1]|szia|kedves|tisztelt|drag[\u0103ae]?|stimat[\u0103e]?|bun\u0103|merhaba|say\u0131n|sevgili|zdravo|po\u0161tovan[ia])"
)
_GREETED = LazyPattern(
    rf"(?i:(?<![^\W_])(?<!\w-){_GREETINGS}),? (?:(?:Sr|Sra|Srta|Dr|Dra|Mr|Mrs|Ms|Herr|Frau|Herrn|Sig|Mme|M|Pani?|Madame|Monsieur|Se\xf1ora?|Senhora?)\.? )?(?P<v>{PERSON})(?=[ \t]*(?:[,!:;\u2014]|\\?[\"'<]|\r?\n|$))"
)
# Words before a person in a sentence.
_IN_SENTENCES = (
    r"(?:meu nome \xe9|me chamo|mijn naam is|ik heet|jag heter|mitt namn \xe4r|jeg hedder|mit navn er|jeg heter|nimeni on|nazywam si\u0119|mam na imi\u0119|jmenuji se|ben(?:im)? ad\u0131m|a nevem|numele meu este|m\u0103 numesc|zovem se|ime mi je|mi nombre es|il mio nome \xe8|mon nom est|hier spricht|hier ist"
    r"|(?:my|our|his|her|their|meine?|unsere?|mon|ma|mi|mijn|notre|nuestr[oa]) (?:wife|husband|son|daughter|mother|father|brother|sister|boss|manager|colleague|friend|doctor|teacher|neighbou?r|landlord|client|frau|mann|sohn|tochter|mutter|vater|chef|chefin|kollege|kollegin|arzt|vermieter|femme|mari|fils|fille|esposa|marido|hijo|hija|jefe|jefa)"
    r"|(?:ordered|placed|bought|paid|sold|filed|signed|witnessed|treated|referred|diagnosed|hired|employed|booked|invited|organi[sz]ed|hosted|presented|sent) by|bestellt von|bezahlt von|unterzeichnet von|behandelt von|(?:iphone|ipad|macbook|laptop|handy|phone) (?:of|von|de|di|van)"
    r"|reservation for|booking for|booked (?:for|by)|appointment (?:for|with)|on behalf of|in the matter of|represented by|issued to|registered to|belongs to|sold to|payable to|in memory of|care of|c/o"
    r"|in der sache|in sachen|vertreten durch|zimmer f\xfcr|reservierung f\xfcr|buchung f\xfcr|termin (?:f\xfcr|mit)|ausgestellt f\xfcr|r\xe9servation (?:pour|au nom de)|au nom de|repr\xe9sent\xe9e? par|rendez-vous avec|affaire|reserva (?:para|a nombre de)|a nombre de|representad[oa] por|cita con|reserva em nome de|em nome de"
    r"|prenotazione (?:per|a nome di)|a nome di|rappresentat[oa] da|reservering voor|op naam van|namens|in de zaak|rezerwacja dla|na nazwisko|w sprawie|bokning f\xf6r|varaus|rezervace pro|na jm\xe9no|vs\.|versus|gegen|contra|contre|contro|tegen)"
)
_NAMED_IN_SENTENCE = LazyPattern(
    rf"(?i:(?<!\w){_IN_SENTENCES}) (?:(?:Herrn?|Frau|Mr|Mrs|Ms|Mme|M|Dr)\.? )?(?P<v>{PERSON})(?![\w(/-]|\.\w)"
)
# Words before a person where the name begins with a common given name.
_BY = r"(?:by|von|par|por|door|przez|durch|av|af)"
_THINGS_FOR = r"(?:invoice|receipt|quote|bill|rechnung|angebot|facture|devis|factura|fattura|brief|letter|meeting|1:1|lunch|dinner|interview|call|termin|gespr\xe4ch|geburtstag|birthday|anniversary|anniversaire|cumplea\xf1os|patient(?:in)?|kund(?:e|in)|client|employee|mitarbeiter(?:in)?|dossier|akte|vertrag|contract|loan|policy|payment|\xfcberweisung|paiement|pago)"
_MADE_BY = LazyPattern(
    rf"(?i:(?<=\w ){_BY}|(?<!\w){_THINGS_FOR}(?: (?:for|an|f\xfcr|pour|para|with|mit|avec|con|of|von|de|to|von))?) (?P<v>{PERSON})(?![\w(/-]|\.\w)"
)
_FIELD_NAMES = frozenset(
    ("max", "will", "mark", "grace", "rose", "art", "bill", "guy", "frank", "christian", "jordan", "justin")
)


def is_surely_person(name: str) -> bool:
    """Tell whether a name begins with a common given name, and is none of words."""
    return (
        begins_with_given_name(name) and name.split(" ")[0].lower() not in _FIELD_NAMES and is_full_name(name)
    )


_VERSUS = LazyPattern(
    rf"(?<![^\W_])(?P<v>{PERSON})(?= (?:vs?\.|versus|gegen|contra|contre|contro|tegen|c/|mot|przeciwko) [A-Z\xc0-\xde])"
)
_PART_KEY = LazyPattern(
    r"(?<![\w.])[\"']?(?P<k>family|surname|given)[\"']?\s{0,3}:\s{0,3}\[?\s{0,40}[\"'](?P<v>[^\W\d_][^\"'\n\d]{1,40})[\"']|<(?:family|given) value=\"(?P<x>[^\W\d_][^\"\n\d]{1,40})\""
)
_NAMED_OBJECT = LazyPattern(r"\"\w*(?i:names?|contacts?|authors?|editors?)\"\s{0,3}:\s{0,3}\[?\s{0,40}$")
_OBJECT = 400  # characters on either side of a key within its object


def find_parts_of_names(view: TextView) -> Iterator[Span]:
    """Find `family` and `given` in an object of a name: HumanName (HL7 FHIR), CSL-JSON."""
    text = view.text
    for match in _PART_KEY.finditer(text):
        if match["x"]:
            yield Span(*match.span("x"), "PERSON")
            continue
        opening = text.rfind("{", max(0, match.start() - _OBJECT), match.start())
        closing = text.find("}", match.end(), match.end() + _OBJECT)
        inside = text[opening : max(closing, match.end())]
        others = ("family", "surname") if match["k"] == "given" else ("given",)
        if opening >= 0 and (
            any(other in inside for other in others)
            or _NAMED_OBJECT.search(text, max(0, opening - _LABEL), opening)
        ):
            yield Span(*match.span("v"), "PERSON")


_SERVICES = r"(?:github|gitlab|bitbucket|codeberg|twitter|instagram|insta|facebook|tiktok|telegram|discord|linkedin|mastodon|slack|skype|reddit|snapchat|bluesky|threads|youtube|twitch|steam|signal|line|kakaotalk|wechat|weixin|weibo|qq|vk|xing|medium|pinterest|tumblr|keybase|matrix|irc|venmo|paypal|cash ?app|psn|xbox|stack ?overflow|kaggle|hugging ?face|bsky)"
_HANDLES = r"(?:user(?:[ _-]?name)?|handle|nick(?:[ _-]?name)?|account|profile|login|screen[ _-]?name|tag|benutzer(?:name)?|konto|compte|cuenta|usuario|utente|nom d'utilisateur|pseudo(?:nyme)?|gebruiker(?:snaam)?|anv\xe4ndarnamn|brukernavn|brugernavn)"
_HANDLE = LazyPattern(
    rf"(?i:(?<![^\W_]){_SERVICES}(?:[ _-]{_HANDLES}(?: name)?[\"'`*_]{{0,3}}(?:: |[:=][ ]?[\"'`])@?|[ _-]?{_HANDLES}?[\"'`*_]{{0,3}}[:=]?[ ]?[\"'`]?@))(?P<v>[A-Za-z][\w.-]{{2,31}})(?=[\s\"'`,;)]|\.\s|\.?$)"
    r"|(?:linkedin\.com/in|xing\.com/profile)/(?P<w>[\w%-]{3,60})"
)


_NO_HANDLES = (
    COMMON_WORDS
    | SHARED_NAMES
    | NO_PERSONS
    | frozenset(
        [
            "required",
            "optional",
            "unknown",
            "missing",
            "none",
            "null",
            "pending",
            "active",
            "linked",
            "connected",
            "found",
            "string",
        ]
    )
)


def _is_handle(name: str) -> bool:
    return name.lower() not in _NO_HANDLES


_TOGETHER = 25  # labels in a probe: a scan takes longer for a hundred, and for all in one


def spell_in_raw(word: str) -> str:
    """Return the pattern of a word in the raw plane: accented letters in both cases, others as `?`."""
    found = []
    for letter in word:
        if letter.isascii():
            found.append({" ": "[ _-]?", "'": "['?]", ".": r"\."}.get(letter, letter))
        elif ord(letter) < 256:
            found.append(
                f"[{letter}{letter.upper()}]" if letter.upper() < "\u0100" and letter != "\xdf" else letter
            )
        else:
            found.append(r"\?")
    return "".join(found)


_CAPITAL = r"(?-i:[A-Z?\xc0-\xde])"
_SIGN = rf"(?:[ _-]?name|s)?[\"'`*_\]]*[ \t\xa0]*[:=|?]>?\s*[\[{{]?\s*\\*[\"'`*_({{]*[ \t]*{_CAPITAL}"
_STEMS = sorted({spell_in_raw(word.rpartition(" ")[2]) for word in LATIN_ROLES})
_COMPLEMENTS = r"(?:de|du|des|del|della|do|da|di|para|pour|per|of|for|van|von|der|[\xe0a]|al) [^\s:=|]+"


def _probes() -> Iterator[str]:
    for first in range(0, len(_STEMS), _TOGETHER):
        yield rf"(?i)(?:{'|'.join(_STEMS[first : first + _TOGETHER])}){_SIGN}"
    yield rf"(?i)(?:name|nom|nome|nombre|nimi|naam|navn|nazwisko|titular[ei]?|contact|contat?to|personn?[ae]?) {_COMPLEMENTS}{_SIGN}"
    yield rf"(?i)(?:author|creator|by|editor|contributor|manager|owner)(?:[\"'] content=[\"']| ?\(){_CAPITAL}"
    for first in range(0, len(_STEMS), _TOGETHER):
        yield rf"(?i)(?:{'|'.join(_STEMS[first : first + _TOGETHER])})(?:>|&gt;)\s*{_CAPITAL}"
    yield rf"\\(?:author|student|supervisor|advisor|examiner|professor|editor|name|signature){{{_CAPITAL}"
    yield rf"(?:[Nn]ame|Nm|nom|nombre|nome|CommonName)(?: [^<>]*)?(?:>|&gt;)\s*{_CAPITAL}"
    yield rf"</label>\s*<input[^<>]*value=[\"']{_CAPITAL}"
    yield rf"(?i)name[\"'`]?\s*(?::|=>?)\s*[\"']{_CAPITAL}[^\"'\n]* {_CAPITAL}"


def _first_words(words: str) -> str:
    return re.sub(r"\\u[0-9a-f]{4}|[\u0100-\uffff]", r"\\?", words)


BY_ROLE = make_probed_detector(find_people_by_role, *_probes(), located=True)
"""The detector of names behind roles, which also reads JSON as a whole."""
IN_STATEMENTS = make_probed_detector(
    find_people_in_statements,
    rf"(?i)(?:update|from|into|join)\s[^\s]{{0,20}}{_TABLES}[^a-z][^;]*'{_CAPITAL}",
    located=True,
)
"""The detector of names in statements of SQL, which also reads JSON as a whole."""
IN_PARTS = make_probed_detector(
    find_parts_of_names, r"(?:family|surname|given)[\"']?\s*:\s*\[?\s*[\"']", r"<(?:family|given) value=\""
)
"""The detector of names in parts, which reads JSON as a whole."""
DETECTORS: tuple[Detector, ...] = (
    BY_ROLE,
    IN_STATEMENTS,
    IN_PARTS,
    make_anywhere_detector(
        "USER", _HANDLE,
        (rf"(?i){_SERVICES}(?:[ _-]?{_HANDLES}(?: name)?)?[\"'`*_]*(?:[:=]|[ ]?@)[ ]?[\"'`]?@?[A-Za-z][\w.-]{{2}}", r"(?:linkedin\.com/in|xing\.com/profile)/"),
        _is_handle, behind=_REACH,
    ),
    make_anywhere_detector(
        "PERSON", _GREETED, rf"(?i){_first_words(_GREETINGS)},? {_CAPITAL}[^\s]+ {_CAPITAL}", is_full_name, behind=_REACH
    ),
    make_anywhere_detector(
        "PERSON", _NAMED_IN_SENTENCE,
        rf"(?i){_first_words(_IN_SENTENCES)} (?:(?:Herrn?|Frau|Mr|Mrs|Ms|Mme|M|Dr)\.? )?{_CAPITAL}[^\s]+ {_CAPITAL}",
        is_full_name, behind=_REACH,
    ),
    make_anywhere_detector(
        "PERSON", _MADE_BY,
        (rf"(?i)[a-z] {_BY} {_CAPITAL}[^\s]+ {_CAPITAL}", rf"(?i){_THINGS_FOR}(?: [a-z?\xfc]{{2,4}})? {_CAPITAL}[^\s]+ {_CAPITAL}"),
        is_surely_person, behind=_REACH,
    ),
    make_anywhere_detector(
        "PERSON", _VERSUS, rf"{_CAPITAL}[^\s]+ (?:vs?\.|versus|gegen|contra|contre|contro|tegen|przeciwko) [A-Z?\xc0-\xde]", is_full_name, behind=0
    ),
)  # fmt: skip
DECLARING: tuple[Detector, ...] = (BY_ROLE, IN_STATEMENTS, IN_PARTS)
