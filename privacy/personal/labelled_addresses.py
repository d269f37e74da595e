# ruff: noqa: E501, RUF001 (patterns, words in other scripts)
"""Detect postal addresses of any country behind a label for one, and below a person's name."""

import re
from collections.abc import Iterator

from tracemill.privacy.core.lazy_pattern import LazyPattern
from tracemill.privacy.core.rule import Detector, Span, TextView, make_probed_detector
from tracemill.privacy.core.word_lists import COMMON_WORDS
from tracemill.privacy.personal.labelled_data import PERSON
from tracemill.privacy.personal.unannounced_data import is_full_name

_REACH = 200  # characters of an address behind the end of its probe
_MOST_LINES = 4
# Labels that mean a postal address alone. `address` by itself is judged by the form of the street.
_LATIN = (
    r"(?:(?<=[\"'])(?:street|addr(?:ess)?|(?:address|street)[ _-]?line|line)[ _-]?\d?(?=[\"'])|(?:home|postal|mailing|billing|shipping|delivery|residential|registered|permanent|current|correspondence|invoice|private|work|office|business|return|street|physical)[ _-]?address(?:[ _-]?line)?[ _-]?\d?|place of residence|residence|lives? (?:at|in)|resid(?:es|ing) (?:at|in)"
    r"|\w{0,12}(?:adresse|anschrift)|wohnort|wohnhaft(?: in)?|wohnsitz|domicile|adresse (?:postale|du domicile|personnelle|de (?:livraison|facturation|correspondance))|domicilio(?: \w{3,12})?|direcci[o\xf3]n(?: de (?:env[i\xed]o|facturaci[o\xf3]n|entrega))?(?: postal)?|indirizzo(?: di (?:residenza|casa|spedizione|fatturazione))?|residenza"
    r"|endere[c\xe7]o(?: de (?:entrega|cobran[c\xe7]a)| postal| residencial)?|morada(?: fiscal)?|resid\xeancia|adres(?: \w{4,16})?|miejsce zamieszkania|zamieszka\u0142[ya]|woonadres|postadres|(?:\w{2,10})?adress?en?|(?:\w{2,8})?osoite|adresa(?: \w{4,12})?|bydli\u0161t\u011b|trval\xe9 bydli\u0161t\u011b|trval\xfd pobyt|lakc\xedm(?:e)?|(?:\w{3,12} )?c\xedme?|sz\xe1ll\xedt\xe1si c\xedm"
    r"|domiciliu|adresi?|ikamet(?:gah)?(?: adresi)?|(?:ev|teslimat|fatura|posta) adresi|prebivali\u0161te|naslov(?: stanovanja)?|elukoht|aadress|adrese|dz\u012bvesvieta|adresas|heimilisfang|heimili|alamat(?: \w{3,10})?|\u0111\u1ecba ch\u1ec9|tirahan|seoladh|cyfeiriad)"
)
_OTHER = (
    r"(?:адрес(?:а|у)?(?: (?:проживания|регистрации|доставки|места жительства|проживання|реєстрації|доставки))?|место жительства|місце проживання|прописка|адреса|διεύθυνση|διεύθυνση κατοικίας|κατοικία|כתובת(?: (?:מגורים|למשלוח|הבית))?|מען|(?:ال)?عنوان|محل الإقامة|آدرس|نشانی|(?:घर का )?पता|ठिकाना|ঠিকানা|முகவரி|ที่อยู่(?:จัดส่ง)?"
    r"|住所|現住所|ご住所|送付先(?:住所)?|配送先(?:住所)?|お届け先(?:住所)?|自宅住所|所在地|地址|住址|家庭住址|通讯地址|通訊地址|联系地址|收货地址|收貨地址|收件地址|邮寄地址|戶籍地址|户籍地址|现住址|居住地址|주소|집 ?주소|자택 ?주소|배송지(?: ?주소)?|거주지|거주 ?주소|도로명 ?주소|우편 ?주소|수령지|მისამართი|հասցե)"
)
_SIGNS = r"[\"'`*_\])]{0,3}[ \t\u00a0]{0,3}"
_OPEN = r"[ \t]{0,4}\\*[\"'`*_|(]{0,3}[ \t]{0,2}"
_BREAK = r"[ \t]*\r?\n[ \t]{0,8}"
_LABELLED = LazyPattern(
    rf"(?i:(?<![^\W_])(?:{_LATIN}|(?P<o>{_OTHER}))){_SIGNS}(?:(?:[:=|\uff1a]|>){_OPEN}(?P<v>[^\n\"'<>|;{{}}=\[\]]{{5,140}})|:?(?P<b>{_BREAK})(?P<w>[^\n\"'<>|;{{}}=\[\]]{{5,80}}))"
)
_NUMBER = LazyPattern(
    r"(?<![\w.:/-])(?:[A-Za-z\u0410-\u042f\u2116#]{1,4}\.?)?\d{1,5}[A-Za-z\u0410-\u044f]?(?:[-/]\d{1,4}[A-Za-z]?)?(?![\w:]|\.\d)|\d[\u4e00-\u9fff\uac00-\ud7af\u3040-\u30ff-]|[\u4e00-\u9fff\uac00-\ud7af]\d"
)
_WORD = LazyPattern(
    r"(?<![\w.])(?:[^\W\d_a-z\xdf-\xff][^\W\d_]{2,}|[\u0430-\u044f]{2,}\. ?[\u0410-\u042f]|[\u05d0-\u05ea\u0621-\u06d3\u0900-\u0bff\u0e01-\u0e4e\u4e00-\u9fff\uac00-\ud7af\u3040-\u30ff]{2,})"
)
_NO_ADDRESS = LazyPattern(
    r"(?i)\b(?:ip|port|version|step|page|chapter|section|level|class|bytes?|bits?|localhost|register|memory|offset|null|none|true|false|test|utf|https?|error|v\d|line \d|function|return|import|string|must|should|invalid|required|field|default|example)\b|0x|\d\.\d|@|://|/[a-z]+/|[_\\$#]{2}|\w_\w|\w\(|::"
)
# A postcode and what stands around it, on the line of the town.
_POSTCODE = r"(?:(?:[A-Z]{1,2}-)?\d{4,6}(?:-\d{3,4})?|\d{3} \d{2}|\d{2}-\d{3}|\u3012?\d{3}-\d{4}|\d{4} ?[A-Z]{2}|[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}|[A-Z]\d[A-Z] ?\d[A-Z]\d|[A-Z]\d{2} ?[A-Z\d]{4}|LV-\d{4}|LT-\d{5}|\d{3} ?\d{3})"
_TOWN = r"[^\W\d_][^\W\d_.'\u2019-]*(?:[ .'\u2019/-]{1,2}[^\W\d_]+){0,4}\.?"
_PLACE = LazyPattern(
    rf"(?P<c>{_POSTCODE}),? (?P<t>{_TOWN})(?: \d{{1,2}})?(?:, [^\W\d_][\w .'-]{{1,30}})?|(?P<u>{_TOWN})(?P<r>,? (?:[A-Z]{{2,3}},? )|(?: -|,) ?[A-Z]{{2}},? |,? |)(?P<d>{_POSTCODE})(?:,? [^\W\d_][\w .'-]{{1,30}})?"
)
_REGION = LazyPattern(r" [A-Z]{2,3},? \d{4}$")
_YEAR = LazyPattern(r"(?:19|20)\d\d")
_PERSON_LINE = LazyPattern(PERSON)
_LINE = LazyPattern(r"[ \t]{0,8}(?P<v>[^\n]{3,80}?)[ \t]*\r?(?:\n|$)")
_STREET_LINE = LazyPattern(r"[^\n=(){}<>\[\]_@$\\\"|;:*`]{4,70}(?:: ?\d[^\n=(){}<>\[\]_@$\\\"|;*`]{0,24})?")
_BLOCK_LINE = LazyPattern(r"\d[^\n\d=(){}<>]{0,32}\r?\n[ \t]{0,8}[^\n=(){}<>;\"]{0,40}\d")


def is_street_line(line: str) -> bool:
    """Tell whether a line has words of a name and a number, as a street has, and no sign of code."""
    return bool(_WORD.search(line) and _NUMBER.search(line)) and not _NO_ADDRESS.search(line)


def is_place_line(line: str) -> bool:
    """Tell whether a line is a town with its postcode."""
    found = _PLACE.fullmatch(line)
    if found is None:
        return False
    town, code = found["t"] or found["u"], found["c"] or found["d"]
    has_region = _REGION.search(line) is not None
    if not _WORD.search(town) or (_YEAR.fullmatch(code) and not has_region):
        return False
    return not _NO_ADDRESS.search(line)


def find_labelled_addresses(view: TextView) -> Iterator[Span]:
    """Find addresses behind a label that means nothing else, and the lines that follow."""
    text = view.text
    for low, high in view.windows():
        for found in _LABELLED.finditer(text, low, min(len(text), high + _REACH)):
            group = "v" if found["v"] else "w"
            value = found[group].rstrip(" \t\r,.)*`_\\")
            if not is_street_line(value):
                continue
            end = found.start(group) + len(value)
            following = _end_of_place(text, found.end(group))
            if group == "w" and not following and not found["o"]:
                continue
            yield Span(found.start(group), end, "ADDRESS")
            if following:
                yield from _spans_of_lines(text, found.end(group), following)


def _end_of_place(text: str, at: int) -> int:
    """Return the end of the town among the lines that follow; 0 where there is none."""
    if text[at : at + 1] not in ("\n", "\r"):
        return 0
    at = text.find("\n", at) + 1
    for _ in range(_MOST_LINES - 1):
        line = _LINE.match(text, at) if at else None
        if line is None:
            return 0
        if is_place_line(line["v"].rstrip(",")):
            return line.end("v")
        if not _STREET_LINE.fullmatch(line["v"]):
            return 0
        at = line.end()
    return 0


def _spans_of_lines(text: str, start: int, end: int) -> Iterator[Span]:
    for line in re.finditer(r"[^\s][^\n\r]*", text[start:end]):
        yield Span(start + line.start(), start + line.end(), "ADDRESS")


def find_blocks_below_names(view: TextView) -> Iterator[Span]:
    """Find a name, a street and a town with its postcode on three lines."""
    text = view.text
    for low, high in view.windows():
        for found in _BLOCK_LINE.finditer(text, low, min(len(text), high + _REACH)):
            start = text.rfind("\n", 0, found.start()) + 1
            above = text.rfind("\n", 0, max(0, start - 1)) + 1
            if start == above:
                continue
            name, street = text[above : start - 1].strip(), text[start : text.find("\n", start)].strip()
            if not _STREET_LINE.fullmatch(street) or not is_street_line(street):
                continue
            end = _end_of_place(text, text.find("\n", start))
            if end and _PERSON_LINE.fullmatch(name) and is_full_name(name):
                at = above + text[above:start].index(name)
                yield Span(at, at + len(name), "PERSON")
                yield from _spans_of_lines(text, start, end)


# A street with its number, a comma, and the town: at the end of a line or of a quoted text.
_ON_ONE_LINE = LazyPattern(
    r"(?<![\w.,/-])(?P<s>\d{1,5}[A-Za-z]?,? (?:[a-z]{2,12}\.? )?[A-Z\xc0-\xde\u0100-\u017d\d][^\n,;:=<>(){}\[\]|\"]{2,40}"
    r"|(?:ul\. |al\. )?[A-Z\xc0-\xde\u0100-\u017d][^\n,;:=<>(){}\[\]|\"\d]{2,40}(?:,)? \d{1,4}[A-Za-z]?(?:/\d{1,4})?),[ ]"
    r"(?P<t>[A-Z\xc0-\xde\u0100-\u017d\d][^\n;:=<>(){}\[\]|\"]{5,60}?)(?=[.,;]?[ \t]*(?:\r?\n|$|[\"']))"
)


# A street's name is of two words or more, or one that ends as streets do.
_STREET_NAME = LazyPattern(
    r"[^\W\d_][^\s,]*[ .][^\s\d]|(?i:\w{2,}(?:stra(?:\xdf|ss)e|str\.|weg|platz|allee|gasse|damm|ring|ufer|straat|laan|gracht|plein|gatan|v\xe4gen|vej|gade|katu))\b"
)


def _is_street(text: str) -> bool:
    return is_street_line(text) and _STREET_NAME.search(text) is not None


# Small words that names of towns hold; others go on with a sentence.
_GOES_ON = LazyPattern(
    r" (?!(?:am|an|aan|auf|bei|da|de|del|den|der|di|do|im|in|la|le|les|ob|of|on|sur|the|under|upon|y)\b)[a-z\xdf-\xff]"
)


def _is_no_town(place: str) -> bool:
    """Tell whether a place goes on with a sentence, or is a number of things: `30000 Rows`."""
    if _GOES_ON.search(place):
        return True
    words = re.findall(r"[^\W\d_]+", place.lower())
    return any(word in COMMON_WORDS or word.rstrip("s") in COMMON_WORDS for word in words)


# A street of one word, its number, a postcode of five digits or of the Netherlands, and a town.
_SHORT = LazyPattern(
    r"(?<![\w.,/-])(?P<s>(?P<w>[A-Z\xc0-\xde][^\W\d_]{3,30}) \d{1,3} ?[a-z]?), (?P<t>(?:\d{5}|\d{4} [A-Z]{2}) (?P<u>[A-Z\xc0-\xde][^\W\d_]{2,30}))(?![\w(=:/]|\.\w)"
)
_NAME_BEFORE = LazyPattern(rf"(?<![\w.-])(?P<v>{PERSON})(?:, |,?[ \t]*\r?\n[ \t]*)$")
_BEFORE = 80  # characters before an address in which a name begins


def find_short_addresses(view: TextView) -> Iterator[Span]:
    """Find a street of one word with its number and its town, and a name directly before it."""
    text = view.text
    for low, high in view.windows():
        for found in _SHORT.finditer(text, low, min(len(text), high + _REACH)):
            if _is_no_town(f"{found['w']} {found['u']}") or _NO_ADDRESS.search(found[0]):
                continue
            yield Span(found.start("s"), found.end("t"), "ADDRESS")
            name = _NAME_BEFORE.search(text[max(0, found.start() - _BEFORE) : found.start()])
            if name and is_full_name(name["v"]):
                start = max(0, found.start() - _BEFORE) + name.start("v")
                yield Span(start, start + len(name["v"]), "PERSON")


def find_addresses_on_one_line(view: TextView) -> Iterator[Span]:
    """Find a street with its number and a town with its postcode, which take the rest of a line."""
    for low, high in view.windows():
        for found in _ON_ONE_LINE.finditer(view.text, low, min(len(view.text), high + _REACH)):
            if _is_street(found["s"]) and is_place_line(found["t"]) and not _is_no_town(found["t"]):
                yield Span(found.start("s"), found.end("t"), "ADDRESS")


def _bytes_of(words: str) -> str:
    """Return the pattern of words in the raw plane."""
    return re.sub(r"\\u[0-9a-f]{4}|[\u0100-\uffff]", r"\\?", words)


BEHIND_LABELS = make_probed_detector(
    find_labelled_addresses,
    r"(?i)(?:street[\"']|line[ _-]?\d[\"']|address(?:[ _-]?line)?[ _-]?\d?|residence|adresse|anschrift|wohn[a-z]+(?: in)?|domicil(?:e|io|iu)|direcci[o\xf3]n|facturaci[o\xf3]n|env[i\xed]o|indirizzo|residenza|endere[c\xe7]o|morada|resid\xeancia|adres|zamieszkania|[a-z]{4,16}owy|adress?en?|osoite|adresa|bydli\?t\?|pobyt|lakc\xedme?|c\xedme?|ikamet(?:gah)?|adresi|naslov|aadress|adrese|adresas|alamat|\?{2}a ch\?|livraison|facturation|postal[ea]?)[\"'`*_\])]*[ \t\xa0]*(?:[:=|>?]|\r?\n)[\s\"'`*_|(\\]*[A-Z0-9?\xc0-\xdf]",
    r"\?\?[\"*)]*[ \t]*(?:[:=|>?]|\n)[ \t\"|]*[0-9?A-Z]",
    located=True,
)
"""The detector of addresses behind labels, which also reads JSON as a whole."""
DETECTORS: tuple[Detector, ...] = (
    BEHIND_LABELS,
    make_probed_detector(
        find_addresses_on_one_line,
        r"\d[^\n;:=<>(){}|\"]*, (?:[A-Z]{1,2}-)?\d{2,6}(?:[ -]\d{2,4})?(?: ?[A-Z]{2})?,? [A-Z?\xc0-\xde]",
        r"\d[^\n;:=<>(){}|\"]*, [A-Z?\xc0-\xde][^\n\d;:=<>(){}|\"]{2,40}(?:\d{4}|[A-Z]\d{1,2}[A-Z]? ?\d[A-Z]{2})",
        located=True,
    ),
    make_probed_detector(
        find_short_addresses,
        r"[a-z?\xdf-\xff] \d{1,3} ?[a-z]?, (?:\d{5}|\d{4} [A-Z]{2}) [A-Z?\xc0-\xde]",
        located=True,
    ),
    make_probed_detector(
        find_blocks_below_names,
        r"\d[^\n\d=(){}<>]{0,32}\r?\n[ \t]*(?:[A-Z]{1,2}-)?\d{2,6}(?:[ -]\d{2,4})?(?: ?[A-Z]{2})?,? [A-Z?\xc0-\xde]",
        r"\d[^\n\d=(){}<>]{0,32}\r?\n[ \t]*(?:[A-Z\xc0-\xde][a-z?\xdf-\xff]|\?\?|\?\. )[^\n=(){}<>;:\"\d]{1,40}(?:\d{2}-?\d{2}|\d[A-Z]? ?\d[A-Z]|\d[A-Z] ?\d)",
        located=True,
    ),
)
