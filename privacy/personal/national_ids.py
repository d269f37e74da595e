# ruff: noqa: E501 (tables)
"""Detect national identity numbers by label, form of the country and check digits."""

import re
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import NamedTuple

from tracemill.privacy.core.rule import (
    Detector,
    Span,
    TextView,
    build_words_pattern,
    fold,
    make_probed_detector,
)
from tracemill.privacy.personal.labelled_data import TAGS

_MIN_DIGITS = 5


class _Number(NamedTuple):
    """The form of a number and the module of python-stdnum that checks it; "" where none does."""

    form: re.Pattern[str]
    check: str
    kind: str


# Labels separated by `|`, the form, the module that checks it.
_TABLE = r"""
steuer-id|steuerid|steuer id|steueridentifikationsnummer|steuer-identifikationsnummer|steuerliche identifikationsnummer|idnr|taxid|tax id|tax_id|tin = \d{2} ?\d{3} ?\d{3} ?\d{3} = de.idnr
steuernummer|steuer-nr|steuer-nummer|stnr = \d{2,3}/\d{3,4}/\d{4,5} =
ahv|avs|ahv-nr|ahvn13|oasi|sozialversicherungsnummer|sv-nummer|no avs|numero avs = 756\.?\d{4}\.?\d{4}\.?\d{2} = ch.ssn
bsn|burgerservicenummer|sofinummer|sofi-nummer = \d{9}|\d{3}[. ]\d{3}[. ]\d{3}|\d{4}[. ]\d{2}[. ]\d{3} = nl.bsn
nir|insee|nss|secu|s\xe9cu|securite sociale|s\xe9curit\xe9 sociale|securite_sociale|carte vitale = [1-478] ?\d{2} ?\d{2} ?\d[\dAB] ?\d{3} ?\d{3} ?\d{2} = fr.nir
spi|numero fiscal|num\xe9ro fiscal = [0-3]\d ?\d{2} ?\d{3} ?\d{3} ?\d{3} = fr.nif
sin|social insurance|social_insurance|socialinsurance|assurance sociale|nas = \d{3}[ -]?\d{3}[ -]?\d{3} = ca.sin
tfn|tax file|tax_file|taxfile = \d{3} ?\d{3} ?\d{2,3} = au.tfn
medicare = [2-6]\d{3} ?\d{5} ?\d{1,2} =
nhs = \d{3}[ -]?\d{3}[ -]?\d{4} = gb.nhs
utr|unique taxpayer = \d{5} ?\d{5} = gb.utr
tckn|tc kimlik|t.c. kimlik|tc_kimlik|tckimlik|tc no|kimlik|kimlik no = [1-9]\d{10} = tr.tckimlik
rut|rol unico tributario|rol \xfanico tributario|cedula de identidad|c\xe9dula de identidad = \d{1,2}\.?\d{3}\.?\d{3}-?[\dKk] = cl.rut
curp = [A-Za-z]{4}\d{6}[HMhm][A-Za-z]{5}[A-Za-z0-9]\d = mx.curp
rfc = (?-i:[A-Z\xd1&]{4}\d{6}[A-Z0-9]{3}) = mx.rfc
rrn|resident registration|resident_registration|residentregistration = \d{6}-?[1-8]\d{6} =
my number|mynumber|my_number|individual number = \d{4}[ -]?\d{4}[ -]?\d{4} = jp.in_
personnummer|personnr|pnr|samordningsnummer = (?:19|20)?\d{6}[-+]?\d{4} = se.personnummer
hetu|henkilotunnus|henkil\xf6tunnus|sotu|hlotunnus = \d{6}[-+A-FU-Ya-fu-y]\d{3}[0-9A-Ya-y] = fi.hetu
fodselsnummer|f\xf8dselsnummer|foedselsnummer|fodselsnr|f\xf8dselsnr|fnr|personnummer|d-nummer = \d{6} ?\d{5} = no.fodselsnummer
cpr|cpr-nr|cpr nr|cprnr|personnummer = [0-3]\d[01]\d{3}-?\d{4} = dk.cpr
kennitala = \d{6}-?\d{4} = is_.kennitala
cnp|cod numeric personal = [1-9]\d{12} = ro.cnp
egn = \d{10} = bg.egn
svnr|sv-nr|svnummer|sv-nummer|sozialversicherungsnummer|sozialversicherungsnr|versicherungsnummer = \d{4} ?\d{6} = at.vnr
rentenversicherungsnummer|rvnr|sozialversicherungsnummer|sv-nummer|versicherungsnummer = \d{2} ?\d{6} ?[A-Z] ?\d{3} =
rodne cislo|rodn\xe9 c\xedslo|rodn\xe9 |rodne_cislo|rodnecislo = \d{6}/?\d{3,4} = cz.rc
rijksregisternummer|registre national|rijksregister|insz|niss|numero national|num\xe9ro national = \d{2}\.?\d{2}\.?\d{2}-?\d{3}\.?\d{2} = be.nn
nif|contribuinte = [1-3]\d{2} ?\d{3} ?\d{3} = pt.nif
oib = \d{11} = hr.oib
isikukood = [1-8]\d{10} = ee.ik
asmens kodas|asmens_kodas = [1-8]\d{10} = lt.asmens
personas kods|personas_kods = \d{6}-?\d{5} =
emso|em\u0161o|jmbg|maticni broj = \d{13} = si.emso
amka = \d{11} = gr.amka
pps|ppsn = \d{7}[A-Wa-w][A-IWa-iw]? = ie.pps
ird = \d{2,3}[- ]?\d{3}[- ]?\d{3} = nz.ird
nric|fin = (?-i:[STFGM]\d{7}[A-Z]) =
mykad|nric = \d{6}-?\d{2}-?\d{4} =
teudat zehut|teudat_zehut|zehut = \d{8,9} = il.idnr
sa id|rsa id|id number|id_number|idnumber|identity number|identity_number = \d{13} = za.idnr
id number|id_number|idnumber|resident id|shenfenzheng|identity card|identity_card = \d{17}[\dXx] = iso7064.mod_11_2
cuit|cuil = \d{2}-?\d{8}-?\d = ar.cuit
cedula|c\xe9dula|nuip = \d{3}\.?\d{3}\.?\d{4}|\d{1,2}\.\d{3}\.\d{3} =
itin = 9\d{2}-?\d{2}-?\d{4} = us.itin
inn = \d{12} = ru.inn
snils = \d{3}-?\d{3}-?\d{3}[ -]?\d{2} =
nik = \d{16} =
cnic = \d{5}-?\d{7}-?\d = pk.cnic
national id|national_id|nationalid|national identity|national identification|nationalidentity|personal id|personal_id|personal identification|identity number|identity_number|taxid|tax id|tax_id|tax number|tax_number|taxnumber|taxpayer id|taxpayer_id|taxpayerid|government id|government_id|governmentid|identity card|identity_card = [A-Z]{0,4}-?\d[\dA-Z./ -]{4,18}[\dA-Z] =
driver's license|driver's licence|driver\u2019s license|driver\u2019s licence|drivers license|drivers licence|driver license|driver licence|driving license|driving licence|drivers_license|driver_license|driver_licence|driving_licence|driving_license|driverslicense|driverlicense|driverlicence|drivinglicence|drivinglicense|licence de conduire|permis de conduire|carnet de conducir|licencia de conducir|patente di guida|f\xfchrerschein|fuhrerschein|fuehrerschein|f\xfchrerscheinnummer|rijbewijs|prawo jazdy|k\xf6rkort|korkort|carteira de habilita\xe7\xe3o|cnh = (?-i:[A-Z]{0,5}[- ]?\d[\dA-Z -]{4,18}[\dA-Z]) =
"""
# The same in scripts outside Latin-1.
_SCRIPTS = r"""
\u8eab\u4efd\u8bc1\u53f7\u7801|\u8eab\u4efd\u8bc1\u53f7|\u8eab\u4efd\u8bc1|\u8eab\u5206\u8b49|\u516c\u6c11\u8eab\u4efd\u53f7\u7801 = \d{17}[\dXx] = iso7064.mod_11_2
\uc8fc\ubbfc\ub4f1\ub85d\ubc88\ud638|\uc8fc\ubbfc\ubc88\ud638 = \d{6}-?[1-8]\d{6} =
\u30de\u30a4\u30ca\u30f3\u30d0\u30fc|\u500b\u4eba\u756a\u53f7 = \d{4}[ -]?\d{4}[ -]?\d{4} = jp.in_
\u0435\u0433\u043d|\u0415\u0413\u041d = \d{10} = bg.egn
\u0438\u043d\u043d|\u0418\u041d\u041d = \d{12} = ru.inn
\u0441\u043d\u0438\u043b\u0441|\u0421\u041d\u0418\u041b\u0421 = \d{3}-?\d{3}-?\d{3}[ -]?\d{2} =
\u05ea\u05e2\u05d5\u05d3\u05ea \u05d6\u05d4\u05d5\u05ea = \d{8,9} = il.idnr
\u03b1\u03bc\u03ba\u03b1|\u0391\u039c\u039a\u0391 = \d{11} = gr.amka
\u043f\u0430\u0441\u043f\u043e\u0440\u0442|\u041f\u0430\u0441\u043f\u043e\u0440\u0442|\u62a4\u7167|\u65c5\u5238|\uc5ec\uad8c = (?-i:[A-Z]{0,2}\d{2} ?\d{2} ?\d{5,6}|[A-Z]{1,2}\d{7,8}) =
"""
_WORD = r"(?:number|num|no|nr|nummer|numero|n\xfamero|num\xe9ro|numaras\u0131|numarasi|tunnus|broj|code|id|is|ist|est|es|der|de|of|the|du|f\xfcr|for|n\xba|n\xb0)"
_BETWEEN = re.compile(
    rf"(?i)(?:(?-i:Number|No|Nr|Num|Code|Id|ID|Value)|s)?(?![a-z])[\"'`]?(?:[ \t_.:=(/#-]{{1,3}}{_WORD}(?![a-z]))*{TAGS}"
    r"[ \t.:=(#\xba\xb0/)>|\uff1a*-]{0,4}[\"'`]?[ \t]{0,4}[:=*]{0,3}[ \t]{0,4}[\"'`(\[]{0,2}"
)
_END = r"(?![\w-]|\.\d)"


def _unescaped(text: str) -> str:
    return re.sub(r"\\(?:u([0-9a-f]{4})|x([0-9a-f]{2}))", lambda m: chr(int(m[1] or m[2], 16)), text)


def _read(table: str) -> dict[str, list[_Number]]:
    found: dict[str, list[_Number]] = {}
    for line in table.strip("\n").split("\n"):
        labels, form, check = (each.strip() for each in line.split(" =", 2))
        kind = "PASSPORT" if "\\u62a4" in labels else "NATIONAL_ID"
        number = _Number(re.compile(rf"(?i)(?:{form}){_END}"), check, kind)
        for label in _unescaped(labels).split("|"):
            found.setdefault(label.strip(), []).append(number)
    return found


def _folded(label: str) -> Iterator[bytes]:
    """Yield the spellings of a label in the folded plane of a text."""
    yield from {fold(label), fold(label.upper())}


_LATIN, _OTHER = _read(_TABLE), _read(_SCRIPTS)
_LABEL = re.compile(build_words_pattern(each for label in _LATIN for each in _folded(label)))
_OTHER_LABEL = re.compile("|".join(sorted(map(re.escape, _OTHER), key=len, reverse=True)))
_SUFFIX = re.compile(r"(?:Number|No|Nr|Num|Code|Id|ID|Value)|s?(?![^\W_])")


def _is_valid(check: str, value: str) -> bool:
    if check:
        is_valid: Callable[[str], bool] = import_module(f"stdnum.{check}").is_valid
        return is_valid(value)
    digits = [each for each in value if each.isdigit()]
    return len(digits) >= _MIN_DIGITS and len(set(digits)) > 2


def find_national_ids(view: TextView) -> Iterator[Span]:
    """Find national identity numbers after their labels."""
    text, folded = view.text, view.plane("fold")
    for low, high in view.windows():
        for found in _LABEL.finditer(folded, low, high):
            start, end = found.span()
            edge = not start or not text[start - 1].isalnum()
            if (edge or (text[start].isupper() and text[start - 1].islower())) and _SUFFIX.match(text, end):
                yield from _behind(text, end, _LATIN.get(text[start:end].lower(), ()))


def find_labelled_in_other_scripts(view: TextView) -> Iterator[Span]:
    """Find the same after labels in Chinese, Japanese, Korean, Cyrillic, Greek and Hebrew."""
    for low, high in view.windows():
        for found in _OTHER_LABEL.finditer(view.text, low, high):
            yield from _behind(view.text, found.end(), _OTHER[found[0]])


def _behind(text: str, at: int, numbers: Iterable[_Number]) -> Iterator[Span]:
    """Yield the number after a label that ends at `at`."""
    if between := _BETWEEN.match(text, at):
        for number in numbers:
            found = number.form.match(text, between.end())
            if found and _is_valid(number.check, found[0]):
                yield Span(*found.span(), number.kind)
                return


_SHORT = 5  # shorter labels are part of many words
_DIGIT_BEHIND = r"(?:number|nummer|num|no|nr|id|code|value|s)?[^A-Za-z0-9\n][^\n]{0,24}[0-9]"


def _probes(numbers: dict[str, list[_Number]]) -> tuple[str, ...]:
    """Return probes for labels of one byte a letter; short labels need a digit after them."""
    latin = [label for label in numbers if all(ord(c) < 256 for c in label)]
    short = "|".join(re.escape(label) for label in latin if len(label) < _SHORT)
    long = "|".join(re.escape(label) for label in latin if len(label) >= _SHORT)
    return (
        rf"(?i)(?:^|[^a-z])(?:{short}|em\?o){_DIGIT_BEHIND}",
        rf"(?i)(?:{long}|driver\?s licen[cs]e)",
    )


DETECTORS: tuple[Detector, ...] = (
    make_probed_detector(find_national_ids, *_probes(_LATIN), located=True),
    make_probed_detector(
        find_labelled_in_other_scripts, r"\?{2}[^\n0-9]{0,12}[0-9][0-9A-Z -]{6}", located=True
    ),
)
