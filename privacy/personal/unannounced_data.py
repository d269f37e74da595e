# ruff: noqa: E501 (patterns)
"""Detect personal data that no label announces: names after a role or a title, national numbers, addresses.

Each rule gives at most five false alarms in a megabyte of source code and one in a megabyte of logs.
"""

import re
from collections.abc import Callable
from importlib import import_module

from tracemill.privacy.core.lazy_pattern import LazyPattern
from tracemill.privacy.core.number_forms import DATE
from tracemill.privacy.core.rule import Detector, build_rule_pattern, make_anywhere_detector
from tracemill.privacy.core.word_lists import BANK_NUMBER_SIZES, COMMON_WORDS, DOMAINS
from tracemill.privacy.personal.labelled_data import PERSON, is_person
from tracemill.privacy.personal.phones_and_accounts import has_account_check_digits

_REACH = 160  # characters of a value behind the end of its probe
_NO_NAMES = COMMON_WORDS | frozenset(
    """
    optional required string str bool int float none true false any union dict literal
    support team service services department office group systems management product products
    development operations release security platform design review test tests default old last name
    standard annex api sdk center centre monitoring side first given middle full family display user
    analysis perspective feedback experience engagement onboarding dashboard portal success requirements
    birth number country street city state postal zip
    """.split()  # noqa: SIM905
)
_CAPITAL = r"[A-Z?\xc0-\xde]"
_ROLES = (
    r"(?:assignee|reviewer|reporter|owner|approver|maintainer|colleague|manager|supervisor|team lead|tech lead|teammate|customer|client|patient|guest|tenant|passenger|employee"
    r"|contractor|requester|submitter|stakeholder|interviewer|applicant|candidate"
    r"|client[ea]|pacient[ea]|usuari[oa]|utente|colega|collega|coll\xe8gue|kolleg(?:e|in|en)|kund(?:e|in|en)|mandant(?:in|en)?|patient(?:in|en|e)|mieter(?:in|s)?|mitarbeiter(?:in|s)?|klient(?:a|ka|ki|ce)?|pacjent(?:a|ka|ki)?|klant|pati\xebnt|paziente|dipendente|locataire|salari\xe9e?|employ\xe9e?"
    r"|emplead[oa]|funcion\xe1ri[oa]|inquilin[oa]|alumn[oa]|alun[oa]|sch\xfcler(?:in|s)?|\xe9l\xe8ve|student(?:e|essa|in|ka)|estudiante|z\xe1kazn\xedk|asiakas|potilas|medewerker|werknemer|huurder|abogad[oa]|anw\xe4lt(?:in)?|anwalt|avocate?|m\xe9dic[oa]|\xe4rztin|according to|signed|regards|best wishes|sincerely|thanks|best|cheers|cc|per|attn)"
)
# `owner Ada Lovelace`, `Owner: Ada`, `**Owner:** Ada`, `| owner | Ada`.
_AFTER_ROLE = r"(?:[,:]?[ \n]|[\"'`*_]{0,3}[ \t]{0,3}[:|][ \t]{0,3}[\"'`*_]{0,3}[ \t]{0,2})"
_ROLE = LazyPattern(rf"(?i:\b{_ROLES}){_AFTER_ROLE}(?P<v>{PERSON})(?![\w(./:-])")
_DEALT = (
    r"(?:talk(?:ed|ing)? (?:to|with)|spoke (?:to|with)|spoken (?:to|with)|met(?: with)?|ask(?:ed)?|ping(?:ed)?|told|tell|call|phone|contact|e-?mail"
    r"|(?:reviewed|approved|requested|reported|assigned|written|signed off|escalated|raised) (?:by|to)|on behalf of|bcc)"
)
_NAMED_FIELD = r"(?i:contact|owner|manager|employee|customer|person|assignee|reporter):\s{1,12}name: [\"']?"
_DEALT_WITH = LazyPattern(rf"(?:(?i:\b{_DEALT}\b[: ])[ \t]?|{_NAMED_FIELD})(?P<v>{PERSON})(?![\w(./:-])")
_TITLES = r"(?:(?:Mr|Mrs|Ms|Mme|Mlle|Herrn?|Frau|Se\xf1ora?)\.? |M\. |Dear (?:Dr\.? )?)"
_TITLED = LazyPattern(rf"\b{_TITLES}(?P<v>{PERSON})")
_LAST_NAME = LazyPattern(
    r"\b(?:Mrs?|Ms|Mme|Mlle|Herrn?|Frau)\.? (?:Dr\.? |Prof\.? ){0,2}(?P<v>[A-Z\xc0-\xde][a-z\xdf-\xff]{2,20}(?:-[A-Z\xc0-\xde][a-z\xdf-\xff]{2,20})?)(?![\w(=:/]|\.\w)"
)
_WROTE = LazyPattern(
    rf"(?<![^\n>*_ ])(?P<v>{PERSON})[*_]{{0,2}}(?: <[^<>\n]{{3,80}}>)? (?:wrote|writes|schrieb|a \xe9crit|escribi\xf3|ha scritto|escreveu)(?: (?:on|am|le|el) [^\n]{{4,40}})?:"
)
_THINGS = r"(?:iPhone|iPad|MacBook|AirPods|laptop|account|machine|computer|desk|phone|inbox|email|e-mail|password|team|request|contract|salary|badge|calendar)"
_OF_PERSON = LazyPattern(rf"(?P<v>{PERSON})['\u2019]s {_THINGS}\b")
_CALLS = r"(?i:call|ring|phone|dial|text|fon|tel\.?|cell|mobile|signal|whatsapp)"
_CALLED = build_rule_pattern(
    rf"\b(?:{_CALLS}|(?i:(?:my|his|her|their|our) (?:\w{{2,10}} )?number is|gsm)) (?P<v>\+?\(?\d{{2,5}}\)?[ .-]\d{{2,4}}(?:[ .-]?\d{{2,4}}){{1,3}})(?![\w-]|\.\d)"
)
_HOME = LazyPattern(
    r"(?<![\w.:/-])(?P<v>\d{1,4}[A-Za-z]? (?:[A-Z\xc0-\xde][a-z\xdf-\xff]{2,20} ){1,3}?(?:[A-Z][a-z]{2,12}), (?:[A-Z\xc0-\xde][a-z\xdf-\xff]{2,20} ?){1,2},? [A-Z0-9]{0,3} ?\d{4,6})(?![\w-]|\.\d)"
)
_MOBILE = build_rule_pattern(
    r"(?<![\w.:/+-])(?<!\d )(?P<v>01[5-7]\d[ /-]\d{7,8}|01[5-7]\d[ /-]\d{3,4} \d{3,4}|07\d{3} \d{3} ?\d{3}|[67]\d{2}(?: \d{2}){3})(?![\w:/-]|\.\d| \d)"
)
_BORN_IN_JAPAN = LazyPattern(r"(?P<v>(?:19|20)\d\d\u5e74\d{1,2}\u6708\d{1,2}\u65e5)(?=\u751f| ?\u51fa\u751f)")
_EVENT_PLACE = LazyPattern(
    r"(?<![^\n])LOCATION(?:;[^:\n]{1,40})?:(?P<v>(?:[A-Z\xc0-\xde][\w\xdf.'\u2019-]{1,24} ){0,3}[A-Z\xc0-\xde][\w\xdf.'\u2019-]{2,24} \d{1,4}[a-z]?|\d{1,4}[a-z]? [A-Z\xc0-\xde][\w'\u2019-]{1,24}(?: [A-Z\xc0-\xde][\w'\u2019-]{1,24}){1,3})(?=\\?[,\r\n]|$)"
)
_HOUSE_LINE = LazyPattern(
    r"(?:<br ?/?>|\\\\|[{>])[ \t]*(?P<v>[A-Z\xc0-\xde][^<>\n\d{}\\]{2,40} \d{1,4}[a-z]?)(?=(?:<br ?/?>|\\\\)[ \t]*(?:[A-Z]{1,2}-)?\d{4,5} [A-Z\xc0-\xde])"
)
_THOROUGHFARE = LazyPattern(
    r"(?<![\w.:/-])(?P<v>\d{1,4}[A-Za-z]? (?!(?:Main|Franklin) )(?:[A-Z\xc0-\xde][a-z\xdf-\xff'\u2019]{2,20} ){1,3}(?:Street|Avenue|Road|Lane|Boulevard|Terrace|Crescent)"
    r"|\d{1,4}(?: ?bis| ?ter)?,? (?:rue|avenue|boulevard|chemin|impasse|all\xe9e|quai|ruelle) (?:de la |de l['\u2019]|du |des |de |d['\u2019])?[A-Z\xc0-\xde][\w'\u2019-]{1,24}(?: (?:(?:de|du|des|la|le) )?[A-Z\xc0-\xde][\w'\u2019-]{1,24}){0,3})(?=, [A-Z\xc0-\xde])"
)
_ACCOUNT = LazyPattern(
    r"(?i)(?<![A-Z0-9])(?P<v>[A-Z]{2}\d\d(?:(?P<joint>[ -])[A-Z0-9]{4}(?:(?P=joint)[A-Z0-9]{4}){1,6}(?:(?P=joint)[A-Z0-9]{1,3})?|(?:[A-Z]{4})?\d{8,30}))(?![A-Z0-9])"
)
_BORN = LazyPattern(
    rf"(?<![\w./-])(?P<v>{DATE})(?:,? (?:in|\xe0|en|a|em|w|i|te) [A-Z\xc0-\xde][\w-]{{1,30}})? (?:geboren|auf die Welt|zur Welt|geb\.|born|is my birthday|is (?:his|her) birthday|geb[uo]ren|f\xf6dd|f\xf8dt|syntynyt|est ma date de naissance|nac\xed|nasci|urodzi|Geburtstag|habe ich Geburtstag)"
)
_BIRTHS = r"(?:geb(?:\.|oren)(?: am)?|born(?: on)?|n[\xe9e]e? le|nacid[oa](?: el)?|nat[oa] il|nascid[oa] em|ur\.|\*)"
_NAMED_AT_BIRTH = LazyPattern(rf"(?<![\w.])(?P<v>{PERSON})(?:,? \(|,? ){_BIRTHS} ?(?={DATE})")
_SPELLED = LazyPattern(
    r"(?i)(?<![\w.])(?P<v>[\w+-]{1,40}(?:(?:\.| dot | ?(?:\(dot\)|\[dot\]) ?)[\w+-]{1,40}){0,3} ?(?:\bat\b|\(at\)|\[at\]) ?[a-z][\w-]{1,40}(?: ?(?:\bdot\b|\(dot\)|\[dot\]) ?[a-z][\w-]{1,40}){0,2} ?(?:\bdot\b|\(dot\)|\[dot\]) ?[a-z]{2,18})\b"
)

# Written forms of national numbers and the modules of python-stdnum that check them.
_NUMBERS = (
    (r"\d{8}[A-HJ-NP-TV-Z]", "es.dni"),
    (r"[XYZ]\d{7}[A-HJ-NP-TV-Z]", "es.nie"),
    (r"\d{1,2}\.\d{3}\.\d{3}-[\dK]", "cl.rut"),
    (r"756\.\d{4}\.\d{4}\.\d{2}", "ch.ssn"),
    (r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] \d\d \d\d \d\d [A-D]", ""),
    (r"\d{3} \d{3} \d{4}", "gb.nhs"),
    (r"[2-9]\d{3} \d{4} \d{4}", "in_.aadhaar"),
    (r"\d{2} \d{3} \d{3} \d{3}", "de.idnr"),
    (r"[A-Z]{6}\d\d[A-EHLMPRST]\d\d[A-Z]\d{3}[A-Z]", "it.codicefiscale"),
    (r"\d{2}\.\d{2}\.\d{2}-\d{3}\.\d{2}", "be.nn"),
    (r"[A-Z]{4}\d{6}[HM][A-Z]{5}[A-Z0-9]\d", "mx.curp"),
    (r"\d{2}-\d{8}-\d", "ar.cuit"),
    (r"\d{6}[-+A]\d{3}[0-9A-FHJ-NPR-Y]", "fi.hetu"),
    (r"[1-478] \d{2} \d{2} \d[\dAB] \d{3} \d{3} \d{2}", "fr.nir"),
    (r"\d{6}-\d{4}", "se.personnummer"),
    (r"[1-9]\d{5}(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{3}[\dX]", "cn.ric"),
    (r"[1-8]-\d{4}-\d{5}-\d\d-\d", "th.pin"),
)


def is_full_name(value: str) -> bool:
    """Tell a name from a type, from program words and from a label."""
    words = value.lower().split(" ")
    owned = any(word.endswith(("'s", "\u2019s")) for word in words)
    return not owned and is_person(value) and not _NO_NAMES.intersection(words)


def _is_last_name(value: str) -> bool:
    return not any(part in _NO_NAMES for part in value.lower().split("-")) and is_person(value)


def _is_number_to_call(value: str) -> bool:
    return 7 <= sum(map(str.isdigit, value)) <= 15


def _is_account(value: str) -> bool:
    """Tell whether a text is an account number (ISO 13616), in any case, with any separators."""
    plain = re.sub(r"[ -]", "", value).upper()
    return len(plain) == BANK_NUMBER_SIZES.get(plain[:2]) and has_account_check_digits(plain)


def _is_spelled_address(value: str) -> bool:
    return value[-18:].lower().rpartition("dot")[2].strip(" )]") in DOMAINS


def _has_check_digit(module: str) -> Callable[[str], bool]:
    return lambda value: import_module(f"stdnum.{module}").is_valid(value)


def _make_number_detector(form: str, module: str) -> Detector:
    pattern = LazyPattern(rf"(?<![\w.:/+-])(?<!\d )(?P<v>{form})(?![\w:/-]|\.\d| \d)")
    check = _has_check_digit(module) if module else None
    return make_anywhere_detector("NATIONAL_ID", pattern, form, check, behind=_REACH)


DETECTORS: tuple[Detector, ...] = (
    *(
        make_anywhere_detector(kind, pattern, probes, check, behind=_REACH)
        for kind, pattern, check, probes in (
            ("PERSON", _ROLE, is_full_name, rf"(?i:{_ROLES}){_AFTER_ROLE}{_CAPITAL}"),
            ("PERSON", _DEALT_WITH, is_full_name, (rf"(?i:{_DEALT})[: ][ \t]?{_CAPITAL}", rf"{_NAMED_FIELD}{_CAPITAL}")),
            ("PERSON", _TITLED, is_full_name, rf"{_TITLES}{_CAPITAL}"),
            ("PERSON", _LAST_NAME, _is_last_name, rf"(?:Mrs?|Ms|Mme|Mlle|Herrn?|Frau)\.? (?:Dr\.? |Prof\.? )*{_CAPITAL}"),
            ("PERSON", _WROTE, is_full_name, r"[a-z?\xdf-\xff][*_]{0,2}(?: <[^<>\n]+>)? (?:wrote|writes|schrieb|a \xe9crit|escribi\xf3|ha scritto|escreveu)[ :]"),
            ("PERSON", _OF_PERSON, is_full_name, rf"['?\x92]s {_THINGS}"),
            ("PHONE", _CALLED, _is_number_to_call, rf"(?i:{_CALLS}|number is|gsm) \+?\(?\d{{2,5}}\)?[ .-]\d"),
            ("BIRTH_DATE", _BORN, None, r"\d (?:(?:in|\xe0|en|a|em|w|i|te) [A-Z\xc0-\xde?][^\s]+ )?(?:geboren|auf die Welt|zur Welt|geb\.|born|is (?:my|his|her) birthday|geb[uo]ren|f\xf6dd|f\xf8dt|syntynyt|est ma date de naissance|nac\xed|nasci|urodzi|Geburtstag|habe ich)"),
            ("PERSON", _NAMED_AT_BIRTH, is_full_name, rf"[a-z?\xdf-\xff],? \(?{_BIRTHS} ?\d"),
            ("ADDRESS", _HOME, None, r"[A-Z][a-z]{2,12}, [A-Z\xc0-\xde][A-Za-z \xdf-\xff]{2,42},? [A-Z0-9]{0,3} ?\d{4}"),
            ("ADDRESS", _THOROUGHFARE, None, r"\d[A-Za-z]? [A-Z\xc0-\xde][^\n,]{2,80} (?:Street|Avenue|Road|Lane|Boulevard|Terrace|Crescent), [A-Z\xc0-\xde]|\d(?: ?bis| ?ter)?,? (?:rue|avenue|boulevard|chemin|impasse|all\xe9e|quai|ruelle) [^\n,]{2,80}, [A-Z\xc0-\xde]"),
            ("BIRTH_DATE", _BORN_IN_JAPAN, None, r"\d\?\d{1,2}\?\d{1,2}\?"),
            ("ADDRESS", _EVENT_PLACE, None, r"LOCATION[^\n:]*:[^\n]*\d"),
            ("ADDRESS", _HOUSE_LINE, None, r" \d{1,4}[a-z]?(?:<br ?/?>|\\\\)[ \t]*(?:[A-Z]{1,2}-)?\d{4,5} [A-Z\xc0-\xde]"),
            ("PHONE", _MOBILE, None, r"01[5-7]\d[ /-]\d{3}|07\d{3} \d{3} ?\d{3}|[67]\d{2}(?: \d{2}){3}"),
            ("IBAN", _ACCOUNT, _is_account, (r"(?i)[A-Z]{2}\d\d(?:[A-Z]{4})?\d{8}", r"(?i)[A-Z]{2}\d\d(?: [A-Z0-9]{4} [A-Z0-9]|-[A-Z0-9]{4}-[A-Z0-9])")),
            ("EMAIL", _SPELLED, _is_spelled_address, r"(?i)(?:at|\(at\)|\[at\]) ?[a-z][\w.() \[\]-]{1,120}(?:dot|\(dot\)|\[dot\]) ?[a-z]{2}"),
        )
    ),
    *(_make_number_detector(*each) for each in _NUMBERS),
)  # fmt: skip
"""The detectors of redaction, which the publish gate runs too."""
