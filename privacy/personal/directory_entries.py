"""Detect names and addresses in vCard and LDIF entries of address books and directories."""

import base64
import binascii
import re
from collections.abc import Iterator

from tracemill.privacy.core.rule import Detector, Span, TextView, make_probed_detector
from tracemill.privacy.personal.labelled_data import PERSON, is_person

_CARD = re.compile(
    r"(?im)^(?:item\d+\.)?(?P<key>FN|N|NICKNAME|ADR|LABEL|BDAY|TEL)(?:;[^:\n]*)?:(?P<v>[^\r\n]+)"
)
_CARD_END = re.compile(r"(?i)END:VCARD")
_KINDS = {"ADR": "ADDRESS", "LABEL": "ADDRESS", "BDAY": "BIRTH_DATE", "TEL": "PHONE"}
_ENTRY = re.compile(
    r"(?m)^(?P<key>(?i:cn|commonName|sn|surname|givenName|displayName|gecos|street|streetAddress|postalAddress|homePostalAddress|registeredAddress"
    r"|telephoneNumber|mobile|homePhone))(?P<sign>::?)[ \t]+(?P<v>[^\r\n]+)"
)
_ENTRY_NAME = re.compile(r"(?m)^dn:[ \t]+[^\n]*")
_LAST_FIRST = r"[A-Z\xc0-\xde\u0100-\u017d][^\W\d_]{1,24}\\?, [A-Z\xc0-\xde\u0100-\u017d][^\W\d_]{1,24}"
_IN_NAME = re.compile(rf"(?i:(?<![a-z])cn)=(?P<v>{PERSON}|{_LAST_FIRST})(?=[,+\s]|$)")
_FULL_NAMES = frozenset(("cn", "commonname", "displayname", "gecos"))
_PARTS = frozenset(("sn", "surname", "givenname"))
_ONE_NAME = re.compile(r"[^\W\d_][^\W\d_'.\u2019-]*(?:[ '\u2019-][^\W\d_]+){0,3}")


def find_cards(view: TextView) -> Iterator[Span]:
    """Find names, addresses, birth dates and telephone numbers in vCards (RFC 6350)."""
    text = view.text
    for at in view.positions(b"begin:vcard"):
        end = _CARD_END.search(text, at)
        for match in _CARD.finditer(text, at, end.start() if end else len(text)):
            yield from _of_card(match["key"].upper(), match)


def _of_card(key: str, match: re.Match[str]) -> Iterator[Span]:
    start, value = match.start("v"), match["v"]
    if key == "N":
        for part in re.finditer(r"[^;]+", value):
            if _ONE_NAME.fullmatch(part[0]):
                yield Span(start + part.start(), start + part.end(), "PERSON")
        return
    inner = value.strip("; ")
    if key == "TEL":
        inner = inner.removeprefix("tel:")
    if len(inner) > 2:
        at = start + value.index(inner)
        yield Span(at, at + len(inner), _KINDS.get(key, "PERSON"))


def find_entries(view: TextView) -> Iterator[Span]:
    """Find names, addresses and telephone numbers of persons in LDIF (RFC 2849)."""
    for name in _ENTRY_NAME.finditer(view.text):
        for match in _IN_NAME.finditer(view.text, *name.span()):
            if is_person(match["v"]):
                yield Span(*match.span("v"), "PERSON")
    for match in _ENTRY.finditer(view.text):
        key, value = match["key"].lower(), _plain(match)
        if key in _FULL_NAMES:
            kind = "PERSON" if re.fullmatch(f"{PERSON}|{_LAST_FIRST}", value) and is_person(value) else ""
        elif key in _PARTS:
            kind = "PERSON" if _ONE_NAME.fullmatch(value) else ""
        else:
            kind = "ADDRESS" if "ddress" in match["key"] or key == "street" else "PHONE"
        if kind:
            yield Span(*match.span("v"), kind)


def _plain(match: re.Match[str]) -> str:
    """Return the value of an attribute; after two colons it is decoded from Base64."""
    if match["sign"] == ":":
        return match["v"]
    try:
        return base64.b64decode(match["v"], validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return ""


DETECTORS: tuple[Detector, ...] = (
    make_probed_detector(find_cards, r"(?i)BEGIN:VCARD"),
    make_probed_detector(find_entries, r"(?:^|\n|\t|[^\x00-\x7f\w])dn: [a-zA-Z]+="),
)
