"""Detect telephone, bank account, payment card and social security numbers."""

import re
from collections.abc import Iterator

from tracemill.privacy.core.rule import Detector, Span, TextView, build_rule_pattern, make_probed_detector
from tracemill.privacy.core.word_lists import BANK_NUMBER_SIZES, DIGITS_ONLY_BANKS

_PHONE_START = r"(?:(?<![\w.+/-])|(?<=\\[nrt]))"
_PHONE_END = r"(?![\w-]|\.\d)"
_PHONE_WORLD = build_rule_pattern(
    _PHONE_START + r"\+[1-9]\d{0,2}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{1,6}(?:[ .-]\d{2,8}){1,4}" + _PHONE_END
    + "|" + _PHONE_START + r"\+(?!1234567)[1-9]\d{9,13}" + _PHONE_END
)  # fmt: skip
_PHONE_AREA = build_rule_pattern(
    _PHONE_START + r"(?:1[ .-])?\([2-9]\d{2}\)\s?[2-9]\d{2}[ .-]\d{4}" + _PHONE_END
)
_PHONE_ROW = build_rule_pattern(
    _PHONE_START + r"(?:1-)?[2-9]\d{2}(?P<s>[.-])[2-9]\d{2}(?P=s)\d{4}" + _PHONE_END
)
_PHONE_NATIONAL = build_rule_pattern(
    _PHONE_START + r"(?<![0-9a-f]{2} )(?:0[67](?P<s>[ .])\d\d(?:(?P=s)\d\d){3}(?! [0-9a-f]{2}\b)|"
    r"0[1-9]\d{1,3} ?/ ?\d{2,3} \d{2} \d{2}|07\d-\d{3} \d{2} \d{2}|01[5-7]\d[-/]\d{7,8}|"
    r"07\d{3} \d{6}|0[1-9]\d{1,2} \d{4} \d{4}|"
    r"00[1-9]\d{1,2} \d{1,4}(?: \d{2,8}){1,3})"
    + _PHONE_END
)  # fmt: skip
_CODE_BEFORE = build_rule_pattern(r"(?<![0-9A-Za-z])(?=[A-Fa-f]*[0-9])[0-9A-Fa-f]{4,8}:? {1,2}$")
_CODE_AFTER = build_rule_pattern(r" [0-9A-Fa-f]{4,5}(?![0-9A-Za-z])")
_NATIONAL = (
    b"00 00 00 00 00",
    b"00.00.00.00.00",
    b"00000 000000",
    b"000 0000 0000",
    b"0000 0000 0000",
    b"0000 00 00",
    b"0000-0000000",
    b"0000/0000000",
    b"000-000 00 00",
    *(
        b"0" * area + slash + rest
        for area in (3, 4, 5)
        for slash in (b" / ", b"/")
        for rest in (b"000 00 00", b"00 00 00")
    ),
    b"0000 000 00",
    b"00000 00 00",
)
_PHONE_SAID = build_rule_pattern(
    r"(?i)(?:phone|telefon|telephone|tel|mobile|cell|fax|whatsapp|sms)(?:[ _-]?(?:number|no|nr))?\.?"
    r"[\"'`]?(?:[ \t]{0,4}[:=][ \t]{0,4}|[ \t]{1,3}(?:is[ \t])?)[\"'`]?"
    r"(?P<v>\+?\(?\d{1,5}\)?(?:[ ./-]{0,3}\(?\d{1,8}\)?){1,6})(?![\w-]|\.\d)"
)
_IBAN_START = build_rule_pattern(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}")
_IBAN = build_rule_pattern(
    r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?:[A-Z0-9]{11,30}|(?: [A-Z0-9]{1,4}){3,8})(?![A-Za-z0-9])"
)
_FINGERPRINT = build_rule_pattern(r"[A-Z0-9]{4}(?: [0-9A-F]{4}){8,}")
_CARDS = (b"000000000000000", b"0000 0000 0000 0000", b"0000-0000-0000-0000", b"0000 000000 00000")
_CARD = build_rule_pattern(
    r"(?<![\w.+/-])(?:(?:4\d|5[1-5]|2[2-7]|6[05])\d\d(?P<s>[ -]?)\d{4}(?P=s)\d{4}(?P=s)\d{4}|"
    r"3[47]\d\d(?P<t>[ -]?)\d{6}(?P=t)\d{5})(?![\w-]|\.\d)"
)  # fmt: skip
_CARD_WORD = re.compile(
    r"(?i)(?<![a-z])(?:\w{0,12}card|cc|visa|mastercard|master|amex|american express|maestro|credit|debit"
    r"|kreditkarte|karte|cart[a\xe3]o|carte|tarjeta|carta|pan)"
    r"(?:[ _-]?(?:number|num|no|nr|nummer|n[u\xfa]mero|#))?[^\w\n]{0,8}(?:\w{2,12}[^\w\n]{1,4}){0,2}$"
)
"""Words before 16 digits in a row that make them a card number; one in ten has a valid check digit."""
_SOCIAL = b"000-00-0000"
_SSN = build_rule_pattern(r"(?<![\w.+/-])(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}(?![\w-]|\.\d)")
_PHONE_WORDS = (
    b"phone",
    b"telefon",
    b"tel:",
    b"tel ",
    b"tel.",
    b"mobile",
    b"fax",
    b"whatsapp",
    b"sms",
    b"cell",
)


def find_phones(view: TextView) -> Iterator[Span]:
    """Find telephone numbers in international, North American and some national forms."""
    text = view.text
    for at in view.positions(b"+0"):
        match = _PHONE_WORLD.match(text, at)
        if match and _counts(match[0], 10) and not _is_added_line(text, match):
            yield Span(*match.span(), "PHONE")
    for at in view.positions(b"(000)"):
        match = _PHONE_AREA.match(text, at) or (_PHONE_AREA.match(text, at - 2) if at > 1 else None)
        if match:
            yield Span(*match.span(), "PHONE")
    for anchor in _NATIONAL:
        for at in view.positions(anchor):
            match = _PHONE_NATIONAL.match(text, at)
            if match and not _is_dumped(text, match):
                yield Span(*match.span(), "PHONE")
    for anchor in (b"000-0000", b"000.0000"):
        for at in view.positions(anchor):
            for start in (at - 6, at - 4):
                if start >= 0 and (match := _PHONE_ROW.match(text, start)):
                    yield Span(*match.span(), "PHONE")
                    break


def _is_dumped(text: str, match: re.Match[str]) -> bool:
    """Tell whether the digits are groups of a memory dump or of a table of codes.

    One group is all zeros, all groups begin with zero, or more groups follow.
    """
    groups = re.findall(r"\d+", match[0])
    if not all(group.strip("0") for group in groups) or all(group[0] == "0" for group in groups):
        return True
    if match[0].startswith("00") and all(len(group) == 4 for group in groups):
        return True
    near = _CODE_BEFORE.search(text, max(0, match.start() - 12), match.start())
    return " " in match[0] and bool(near or _CODE_AFTER.match(text, match.end()))


def _is_added_line(text: str, match: re.Match[str]) -> bool:
    """Tell whether a `+` at the start of a line is a diff's mark.

    It is not where the number is in groups or is the whole text.
    """
    if match.start() and text[match.start() - 1] != "\n":
        return False
    return len(re.findall(r"\d+", match[0])) < 3 and match.end() - match.start() < len(text)


def find_said_phones(view: TextView) -> Iterator[Span]:
    """Find numbers of nine digits or more after a word for telephones."""
    for literal in _PHONE_WORDS:
        for at in view.positions(literal):
            match = _PHONE_SAID.match(view.text, at)
            if match and _counts(match["v"], 9):
                yield Span(*match.span("v"), "PHONE")


def find_accounts(view: TextView) -> Iterator[Span]:
    """Find international bank account numbers by country size and check digits (ISO 13616)."""
    text = view.text
    for low, high in view.windows():
        for start in _IBAN_START.finditer(text, low, high):
            match = _IBAN.match(text, start.start())
            size = _account_size(match[0]) if match and not _FINGERPRINT.match(text, start.start()) else 0
            if size:
                yield Span(start.start(), start.start() + size, "IBAN")


def _account_size(text: str) -> int:
    """Return the size of the account number at the start of a text, blanks included; 0 for none."""
    wanted, end, plain = BANK_NUMBER_SIZES.get(text[:2], 0), 0, ""
    while end < len(text) and len(plain) < wanted:
        plain += text[end].strip()
        end += 1
    if len(plain) != wanted or text[end : end + 1].isalnum():
        return 0
    if text[:2] in DIGITS_ONLY_BANKS and not plain[2:].isdigit():
        return 0
    return end if has_account_check_digits(plain) else 0


def has_account_check_digits(number: str) -> bool:
    """Return whether the check digits of an account number hold (ISO 13616); letters are capitals."""
    return int("".join(str(int(c, 36)) for c in number[4:] + number[:4])) % 97 == 1


def find_numbers(view: TextView) -> Iterator[Span]:
    """Find payment cards by check digit (ISO 7812), and United States social security numbers."""
    for anchor in _CARDS:
        for at in view.positions(anchor):
            match = _CARD.match(view.text, at)
            if match is None or not _is_card(re.sub(r"\D", "", match[0])) or _is_dumped(view.text, match):
                continue
            if not match[0].isdigit() or _CARD_WORD.search(view.text, max(0, at - 60), at):
                yield Span(*match.span(), "CARD")
    for at in view.positions(_SOCIAL):
        if match := _SSN.match(view.text, at):
            yield Span(*match.span(), "SSN")


def _is_card(digits: str) -> bool:
    doubled = [int(c) * (1 + at % 2) for at, c in enumerate(reversed(digits))]
    return len(set(digits)) > 3 and sum(n - 9 if n > 9 else n for n in doubled) % 10 == 0


def _counts(number: str, least: int) -> bool:
    return least <= sum(c.isdigit() for c in number) <= 15


_SAID_PROBE = (
    r"(?i)(?:phone|telefon|tel|mobile|cell|fax|whatsapp|sms)(?:[ _-]?(?:number|no|nr))?\.?[\"'`]?"
    r"(?:\s*[:=]|[ \t])\s*(?:is\s)?[\"'`]?\+?\(?\d[\d ./()-]{7}"
)
DETECTORS: tuple[Detector, ...] = (
    make_probed_detector(
        find_phones,
        r"\+[1-9]\d{0,2}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{1,6}[ .-]\d\d",
        r"\+[1-9]\d{9}",
        r"\([2-9]\d{2}\)\s?[2-9]\d{2}[ .-]\d{4}",
        r"[2-9]\d{2}(?:-[2-9]\d{2}-|\.[2-9]\d{2}\.)\d{4}",
        r" \d\d \d\d \d\d|\.\d\d\.\d\d\.\d\d|07\d{3} \d{6}|01[5-7]\d[-/]\d{7}|0[1-9]\d{1,2} \d{4} \d{4}",
        r"\d ?/ ?\d{2,3} \d\d \d\d|07\d-\d{3} \d\d \d\d",
        r"00[1-9]\d{1,2} \d{1,4}(?: \d{2,8}){1,3}",
    ),
    make_probed_detector(find_said_phones, _SAID_PROBE),
    make_probed_detector(
        find_accounts,
        r"[A-Z]{2}\d\d[A-Z0-9]{11}",
        r"[A-Z]{2}\d\d [A-Z0-9]{1,4} [A-Z0-9]",
        located=True,
    ),
    make_probed_detector(
        find_numbers,
        r"\d{16}",
        r"3[47]\d{13}",
        r"\d{4} \d{4} \d{4} \d",
        r"\d{4}-\d{4}-\d{4}-\d",
        r"\d{4} \d{6} \d{5}",
        r"\d{3}-\d\d-\d{4}",
    ),
)
