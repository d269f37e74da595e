"""Numbers that are somebody's: telephones, bank accounts, payment cards, social security."""

import re
from collections.abc import Iterator

from privacy.rules import Detector, Span, View, on
from privacy.words import BANK_COUNTRIES

_PHONE_START = r"(?:(?<![\w.+/-])|(?<=\\[nrt]))"
_PHONE_END = r"(?![\w-]|\.\d)"
_PHONE_WORLD = re.compile(
    _PHONE_START + r"\+[1-9]\d{0,2}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{1,6}(?:[ .-]\d{2,8}){1,4}" + _PHONE_END
    + "|" + _PHONE_START + r"\+(?!1234567)[1-9]\d{9,13}" + _PHONE_END
)  # fmt: skip
_PHONE_AREA = re.compile(_PHONE_START + r"(?:1[ .-])?\([2-9]\d{2}\)\s?[2-9]\d{2}[ .-]\d{4}" + _PHONE_END)
_PHONE_ROW = re.compile(_PHONE_START + r"(?:1-)?[2-9]\d{2}(?P<s>[.-])[2-9]\d{2}(?P=s)\d{4}" + _PHONE_END)
_PHONE_NATIONAL = re.compile(
    _PHONE_START + r"(?<![0-9a-f]{2} )(?:0[67](?P<s>[ .])\d\d(?:(?P=s)\d\d){3}(?! [0-9a-f]{2}\b)|"
    r"07\d{3} \d{6}|0\d{2,3} \d{4} \d{4}|"
    r"00[1-9]\d{1,2} \d{1,4}(?: \d{2,8}){1,3})"
    + _PHONE_END
)  # fmt: skip
_NATIONAL = (b"00 00 00 00 00", b"00.00.00.00.00", b"00000 000000", b"000 0000 0000", b"0000 0000 0000")
_PHONE_SAID = re.compile(
    r"(?i)(?:phone|telefon|telephone|tel|mobile|cell|fax|whatsapp|sms)(?:[ _-]?(?:number|no|nr))?\.?"
    r"[\"'`]?(?:[ \t]{0,4}[:=][ \t]{0,4}|[ \t]{1,3}(?:is[ \t])?)[\"'`]?"
    r"(?P<v>\+?\(?\d{1,5}\)?(?:[ ./-]{0,2}\(?\d{1,8}\)?){1,6})(?![\w-]|\.\d)"
)
_COUNTRIES = tuple(code.encode() + b"00" for code in sorted(BANK_COUNTRIES))
_IBAN = re.compile(
    r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?:[A-Z0-9]{11,30}|(?: [A-Z0-9]{4}){2,7}(?: [A-Z0-9]{1,3})?)"
    r"(?![A-Za-z0-9])"
)
_CARDS = (b"0000 0000 0000 0000", b"0000-0000-0000-0000", b"0000000000000000", b"0000 000000 00000")
_CARD = re.compile(
    r"(?<![\w.+/-])(?:(?:4\d|5[1-5]|2[2-7]|6[05])\d\d(?P<s>[ -]?)\d{4}(?P=s)\d{4}(?P=s)\d{4}|"
    r"3[47]\d\d \d{6} \d{5})(?![\w-]|\.\d)"
)  # fmt: skip
_SOCIAL = b"000-00-0000"
_SSN = re.compile(r"(?<![\w.+/-])(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}(?![\w-]|\.\d)")
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


def find_phones(view: View) -> Iterator[Span]:
    """Telephone numbers in international form, in North American form, or after a word that says so."""
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
            if match := _PHONE_NATIONAL.match(text, at):
                yield Span(*match.span(), "PHONE")
    for anchor in (b"000-0000", b"000.0000"):
        for at in view.positions(anchor):
            for start in (at - 6, at - 4):
                if start >= 0 and (match := _PHONE_ROW.match(text, start)):
                    yield Span(*match.span(), "PHONE")
                    break


def _is_added_line(text: str, match: re.Match[str]) -> bool:
    """A `+` that begins a line is a diff's, unless the number is in groups or all there is."""
    if match.start() and text[match.start() - 1] != "\n":
        return False
    return len(re.findall(r"\d+", match[0])) < 3 and match.end() - match.start() < len(text)


def find_said_phones(view: View) -> Iterator[Span]:
    """Numbers of nine digits or more after a word that says they are a telephone's."""
    for literal in _PHONE_WORDS:
        for at in view.positions(literal):
            match = _PHONE_SAID.match(view.text, at)
            if match and _counts(match["v"], 9):
                yield Span(*match.span("v"), "PHONE")


def find_accounts(view: View) -> Iterator[Span]:
    """International bank account numbers, by their check digits (ISO 13616)."""
    for anchor in _COUNTRIES:
        for at in view.positions(anchor):
            match = _IBAN.match(view.text, at)
            if match and _is_iban(match[0].replace(" ", "")):
                yield Span(*match.span(), "IBAN")


def find_numbers(view: View) -> Iterator[Span]:
    """Payment cards by their check digit (ISO 7812), and United States social security numbers."""
    for anchor in _CARDS:
        for at in view.positions(anchor):
            match = _CARD.match(view.text, at)
            if match and _is_card(re.sub(r"\D", "", match[0])):
                yield Span(*match.span(), "CARD")
    for at in view.positions(_SOCIAL):
        if match := _SSN.match(view.text, at):
            yield Span(*match.span(), "SSN")


def _is_card(digits: str) -> bool:
    doubled = [int(c) * (1 + at % 2) for at, c in enumerate(reversed(digits))]
    return len(set(digits)) > 3 and sum(n - 9 if n > 9 else n for n in doubled) % 10 == 0


def _is_iban(value: str) -> bool:
    if not 15 <= len(value) <= 34:
        return False
    return int("".join(str(int(c, 36)) for c in value[4:] + value[:4])) % 97 == 1


def _counts(number: str, least: int) -> bool:
    return least <= sum(c.isdigit() for c in number) <= 15


DETECTORS: tuple[Detector, ...] = (
    on(find_phones, b"+0", b"(000)", b"000-0000", b"000.0000", *_NATIONAL),
    on(find_said_phones, *_PHONE_WORDS),
    on(find_accounts, *_COUNTRIES),
    on(find_numbers, *_CARDS, _SOCIAL),
)
