"""Personal data by its form: e-mail, IP and MAC addresses; and large encoded data."""

import ipaddress
import re
from collections.abc import Iterator

from privacy.randomness import is_base64_blob
from privacy.rules import Detector, Span, View, after_escape, on
from privacy.words import DOMAINS, PUBLIC_ADDRESSES, ROLES, SAMPLE_NAMES, SHARED_NAMES

_LOCAL = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._%+-")
_AT = re.compile(
    r"@(?P<host>(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})\.){1,6}(?P<tld>[A-Za-z]{2,18}))(?![\w(]|\.[A-Za-z0-9]|-[a-z])"
)
_AT_ENCODED = re.compile(_AT.pattern.replace("@", "%40", 1))
_PERSON = re.compile(
    r"(?i)(?:author|committer|commit|tagger|by|from|to|cc|bcc|sender|maintainer)"
    r"(?::[ \t]{0,8}|[ \t])(?P<v>[^\W\d_][\w.' -]{1,60}?)[ \t]<$"
)
_SAMPLE_HOST = re.compile(
    r"(?i)(?:^|\.)(?:example\.(?:com|org|net|edu|io)|.*\.(?:test|invalid|example|localhost)|"
    r"domain\.(?:com|tld)|yourdomain\.com|foo\.(?:com|bar)|bar\.com|email\.com|test\.com)$"
)
_LEFT = r"(?:(?<![\w.])|(?<=\\[nrt]))"
_IP4 = re.compile(_LEFT + r"(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d|-[a-z])", re.ASCII)
_IP4_CONTEXT = re.compile(
    r"(?i)(?:\bip|host|addr|server|client|remote|ssh|ping|peer|listen|://|@|bind|inet|dns|connect)[^\n]{0,24}$"
    r"|(?:from|to|via)[ :]$"
)
_PACKAGE_BEFORE = re.compile(r"(?i)(?:version\W{1,6}|==\s?|[a-z0-9][-_]v?|\bv)$")
_RELEASE_BEFORE = re.compile(r"(?i)version|updat|upgrad|bump|releas")
_VERSION_BEFORE = re.compile(
    r"(?i)(?:v|ver|version|release|build|[<>~^!=]=|[~^]|chrome|/[\w.-]*/?|-|_|==|@)\s?[\"']?$"
)
_MAC = re.compile(
    r"(?:(?<![\w:.-])|(?<=\\[nrt]))[0-9A-Fa-f]{2}(?P<s>[:-])(?:[0-9A-Fa-f]{2}(?P=s)){4}[0-9A-Fa-f]{2}(?![\w:-])"
)
_MAC_DOTTED = re.compile(r"(?<![\w.-])[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}(?![\w.-])")
_DOTTED = b"hhhh.hhhh.hhhh"
_IP6 = re.compile(
    r"(?:(?<![\w:.])|(?<=\\[nrt]))(?:[0-9A-Fa-f]{1,4}:){1,7}(?::?[0-9A-Fa-f]{1,4}){1,7}(?![\w:.])"
)
BLOB = 256  # characters of encoded data in a row that are replaced
_WRAPPED = b"\n" + b"x" * 60
_BLOB = re.compile(r"[A-Za-z0-9+/_-]{256,}={0,2}")
_BLOB_LINES = re.compile(r"(?:[A-Za-z0-9+/]{60,76}\r?\n){6,}[A-Za-z0-9+/]{1,76}={0,2}")


def find_emails(view: View) -> Iterator[Span]:
    """Addresses of people (`EMAIL`), and the name before one (`PERSON`)."""
    text = view.text
    for at in (*view.positions(b"@"), *view.positions(b"%00")):
        match = _AT.match(text, at) or _AT_ENCODED.match(text, at)
        if match is None:
            continue
        start = _local_start(text, at)
        if start < at and _is_person(text[start:at], match):
            yield Span(start, match.end(), "EMAIL")
            person = _PERSON.search(text, max(0, start - 100), start)
            if person and person["v"][0].isupper():
                yield Span(*person.span("v"), "PERSON")


def _local_start(text: str, at: int) -> int:
    start = at
    while start and at - start < 64 and text[start - 1] in _LOCAL:
        start -= 1
    while start < at and text[start] in ".-%+":
        start += 1
    return min(at, after_escape(text, start))


def _is_person(local: str, match: re.Match[str]) -> bool:
    local = local.lower()
    if match["tld"].lower() not in DOMAINS or local in ROLES:
        return False
    return not _SAMPLE_HOST.search(match["host"]) or local not in SHARED_NAMES | SAMPLE_NAMES


def find_ip4(view: View) -> Iterator[Span]:
    """IPv4 addresses that are somebody's: no versions, loopback, masks, documentation addresses."""
    text, last = view.text, -1
    digits = view.plane("fold")
    for anchor in _OCTETS:
        for at in view.positions(anchor):
            start = at
            while start and at - start < 12 and digits[start - 1] in b"0.":
                start -= 1
            match = _IP4.match(text, start) if start != last else None
            last = start
            if match and _is_address(
                match[0], text[max(0, start - 40) : start], text[match.end() : match.end() + 12]
            ):
                yield Span(*match.span(), "IP")


def _is_address(value: str, before: str, after: str) -> bool:
    octets = value.split(".")
    if any(int(octet) > 255 or (len(octet) > 1 and octet[0] == "0") for octet in octets):
        return False
    address = ipaddress.IPv4Address(value)
    numbers = [int(octet) for octet in octets]
    if numbers[3] == 0 and after.startswith("/"):
        return False  # a network, not a machine
    if _PACKAGE_BEFORE.search(before):
        return False
    if address.is_private and numbers[0] in (10, 172, 192) and numbers[:3] not in ([192, 0, 2], [192, 0, 0]):
        return numbers[3] not in (0, 255) or numbers[1:3] != [0, 0]
    sample = numbers[:3] in ([192, 0, 2], [198, 51, 100], [203, 0, 113])
    if not (address.is_global or sample) or address.is_multicast or value in PUBLIC_ADDRESSES:
        return False
    if sample or _IP4_CONTEXT.search(before) or re.match(r":\d{2,5}\b| - [\w-]+ \[", after):
        return not _RELEASE_BEFORE.search(before)
    return max(numbers) > 31 and numbers[0] > 11 and not _VERSION_BEFORE.search(before)


def find_macs(view: View) -> Iterator[Span]:
    """Hardware addresses."""
    for anchor in _HARDWARE:
        for at in view.positions(anchor, "hexes"):
            match = _MAC.match(view.text, at)
            if match and len(set(match[0].lower())) > 4:
                yield Span(*match.span(), "MAC")


def find_dotted_macs(view: View) -> Iterator[Span]:
    """Hardware addresses in three groups of four, as switches show them."""
    for at in view.positions(_DOTTED, "hexes"):
        match = _MAC_DOTTED.match(view.text, at)
        if match and any(c.isdigit() for c in match[0]) and any(c.isalpha() for c in match[0]):
            yield Span(*match.span(), "MAC")


def find_ip6(view: View) -> Iterator[Span]:
    """Global, unique local and link-local IPv6 addresses."""
    hexes, done = view.plane("hexes"), -1
    for at in sorted(at for anchor in _HEXTETS for at in view.positions(anchor, "hexes")):
        if at < done:
            continue
        start = at
        while start and at - start < 40 and hexes[start - 1] in b"h:":
            start -= 1
        done = at + 1
        match = _IP6.search(view.text, start, at + 60)
        if match:
            done = match.end()
            if _is_ip6(match[0]):
                yield Span(*match.span(), "IP")


def _is_ip6(value: str) -> bool:
    try:
        address = ipaddress.IPv6Address(value)
    except ValueError:
        return False
    if address.ipv4_mapped or value.lower().startswith("ffff") or len(value) < 7:
        return False
    if value.lower().startswith("2001:db8"):
        return len(value) >= 10
    return address.is_global or address.is_link_local or value.lower().startswith(("fd", "fc"))


def find_blobs(view: View) -> Iterator[Span]:
    """Encoded data of `BLOB` characters or more, in one row or in wrapped lines."""
    if len(view.raw) < BLOB:
        return
    classes = view.plane("data")
    if b"x" * BLOB in classes:
        for match in _BLOB.finditer(view.text):
            if is_base64_blob(match[0]):
                yield Span(*match.span(), "BLOB")
    if _WRAPPED in classes:
        for match in _BLOB_LINES.finditer(view.text):
            if is_base64_blob(match[0].replace("\n", "")):
                yield Span(*match.span(), "BLOB")


_OCTETS = (b".0.", b".00.", b".000.")
_HARDWARE = (b"hh:hh:hh:hh:hh:hh", b"hh-hh-hh-hh-hh-hh")
_HEXTETS = (b":hhhh:", b"hhhh::", b":hhh:")
DETECTORS: tuple[Detector, ...] = (
    on(find_emails, b"@", b"%00"),
    on(find_ip4, *_OCTETS, plane="fold"),
    on(find_macs, *_HARDWARE, plane="hexes"),
    on(find_dotted_macs, _DOTTED, plane="hexes"),
    on(find_ip6, *_HEXTETS, plane="hexes"),
    on(find_blobs, _WRAPPED[1:], plane="data"),
)
