"""Personal data by its form: e-mail addresses, machines in prompts, IP and MAC addresses, phones; and
large encoded data, which may hold anything."""

import ipaddress
import re
from collections.abc import Iterator

from privacy.randomness import is_base64_blob
from privacy.rules import Detector, Span, View
from privacy.words import DOMAINS, PUBLIC_ADDRESSES, ROLES

_LOCAL = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._%+-")
_AT = re.compile(
    r"@(?P<host>(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})\.){1,6}(?P<tld>[A-Za-z]{2,18}))(?![\w(]|\.[A-Za-z0-9]|-[a-z])"
)
_PERSON = re.compile(
    r"(?i)(?:author|committer|commit|tagger|by)(?::[ \t]{0,8}|[ \t])(?P<v>[^\W\d_][\w.' -]{1,60}?)[ \t]<$"
)
_PROMPT = re.compile(r"@(?P<host>[A-Za-z0-9][\w.-]{1,62}):\s?(?=[~/])")
_SAMPLE_HOST = re.compile(
    r"(?i)(?:^|\.)(?:example\.(?:com|org|net|edu|io)|.*\.(?:test|invalid|example|localhost)|"
    r"domain\.(?:com|tld)|yourdomain\.com|foo\.(?:com|bar)|bar\.com|email\.com|test\.com)$"
)
_HEXES = bytes(ord("h") if chr(byte) in "0123456789abcdefABCDEF" else byte for byte in range(256))
_IP4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d)")
_IP4_CONTEXT = re.compile(
    r"(?i)(?:\bip|host|addr|server|client|remote|ssh|ping|peer|listen|://|@|bind|inet|dns|connect)[^\n]{0,24}$"
    r"|(?:from|to|via)[ :]$"
)
_PACKAGE_BEFORE = re.compile(r"(?i)(?:version\W{1,6}|==\s?|[a-z0-9][-_]v?|\bv)$")
_VERSION_BEFORE = re.compile(
    r"(?i)(?:v|ver|version|release|build|[<>~^!=]=|[~^]|chrome|/[\w.-]*/?|-|_|==|@)\s?[\"']?$"
)
_MAC = re.compile(r"(?<![\w:.-])[0-9A-Fa-f]{2}(?P<s>[:-])(?:[0-9A-Fa-f]{2}(?P=s)){4}[0-9A-Fa-f]{2}(?![\w:-])")
_IP6 = re.compile(r"(?<![\w:.])(?:[0-9A-Fa-f]{1,4}:){1,7}(?::?[0-9A-Fa-f]{1,4}){1,7}(?![\w:.])")
_PHONE = re.compile(
    r"(?<![\w.+/-])(?:\+[1-9]\d{0,2}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{1,6}(?:[ .-]\d{2,6}){1,4}|"
    r"\+[1-9]\d{10,12}|(?:1[\s.-])?\([2-9]\d{2}\)\s?[2-9]\d{2}[\s.-]\d{4}|"
    r"(?:1-)?[2-9]\d{2}([.-])[2-9]\d{2}\1\d{4})(?![\w-]|\.\d)"
)
_BLOB_CLASS = bytes(
    ord("x") if byte < 128 and (chr(byte).isalnum() or chr(byte) in "+/=_-") else byte for byte in range(256)
)
BLOB = 256  # characters of encoded data in a row that are replaced
_WRAPPED = b"\n" + b"x" * 60
_BLOB = re.compile(r"[A-Za-z0-9+/_-]{256,}={0,2}")
_BLOB_LINES = re.compile(r"(?:[A-Za-z0-9+/]{60,76}\r?\n){6,}[A-Za-z0-9+/]{1,76}={0,2}")


def find_emails(view: View) -> Iterator[Span]:
    """Addresses of people (`EMAIL`) and `user@machine:` of prompts and copies (`HOST`)."""
    text = view.text
    for at in view.positions(b"@"):
        start = at
        while start and at - start < 64 and text[start - 1] in _LOCAL:
            start -= 1
        while start < at and text[start] in ".-%+":
            start += 1
        if start == at:
            continue
        if text[start - 1 : start] == "\\" and text[start] in "nrt" and at - start > 1:
            start += 1
        if (match := _AT.match(text, at)) and _is_person(text[start:at], match):
            yield Span(start, match.end(), "EMAIL")
            if person := _PERSON.search(text, max(0, start - 100), start):
                yield Span(*person.span("v"), "PERSON")
        elif (
            (prompt := _PROMPT.match(text, at)) and "." not in prompt["host"] and text[start:at] not in ROLES
        ):
            yield Span(*prompt.span("host"), "HOST")


def _is_person(local: str, match: re.Match[str]) -> bool:
    domain = match["tld"].lower() in DOMAINS
    return domain and local.lower() not in ROLES and not _SAMPLE_HOST.search(match["host"])


def find_ip4(view: View) -> Iterator[Span]:
    """IPv4 addresses that are somebody's: no versions, loopback, masks, documentation addresses."""
    digits = view.digits
    if b".0." not in digits and b".00." not in digits and b".000." not in digits:
        return
    for match in _IP4.finditer(view.text):
        before = view.text[max(0, match.start() - 40) : match.start()]
        if _is_address(match[0], before, view.text[match.end() : match.end() + 6]):
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
    if not address.is_global or address.is_multicast or value in PUBLIC_ADDRESSES:
        return False
    if _IP4_CONTEXT.search(before) or re.match(r":\d{2,5}\b", after):
        return "version" not in before.lower()
    return max(numbers) > 31 and numbers[0] > 11 and not _VERSION_BEFORE.search(before)


def find_hardware(view: View) -> Iterator[Span]:
    """MAC addresses (`MAC`) and global or link-local IPv6 addresses (`IP`)."""
    if b":" not in view.raw and b"0-" not in view.digits:
        return
    shapes = view.raw.translate(_HEXES)
    if b"hh:hh:hh:hh:hh:hh" in shapes or b"hh-hh-hh-hh-hh-hh" in shapes:
        for match in _MAC.finditer(view.text):
            if len(set(match[0].lower())) > 4:
                yield Span(*match.span(), "MAC")
    if b":hhhh:" in shapes or b"hhhh::" in shapes or b":hhh:" in shapes:
        for match in _IP6.finditer(view.text):
            if _is_ip6(match[0]):
                yield Span(*match.span(), "IP")


def _is_ip6(value: str) -> bool:
    try:
        address = ipaddress.IPv6Address(value)
    except ValueError:
        return False
    if address.ipv4_mapped or value.lower().startswith(("2001:db8", "ffff")) or len(value) < 10:
        return False
    return address.is_global or address.is_link_local or value.lower().startswith(("fd", "fc"))


def find_phones(view: View) -> Iterator[Span]:
    """Telephone numbers in international form with separators, or in North American form."""
    digits = view.digits
    if (
        b"000-0000" not in digits
        and b"000.0000" not in digits
        and b"+0" not in digits
        and b") 000" not in digits
    ):
        return
    for match in _PHONE.finditer(view.text):
        digits_in = sum(c.isdigit() for c in match[0])
        added_line = match[0][0] == "+" and view.text[match.start() - 1 : match.start()] in ("", "\n")
        if 10 <= digits_in <= 15 and not added_line:
            yield Span(*match.span(), "PHONE")


def find_blobs(view: View) -> Iterator[Span]:
    """Encoded data of `BLOB` characters or more, in one row or in wrapped lines."""
    if len(view.raw) < BLOB:
        return
    classes = view.raw.translate(_BLOB_CLASS)
    if b"x" * BLOB in classes:
        for match in _BLOB.finditer(view.text):
            if is_base64_blob(match[0]):
                yield Span(*match.span(), "BLOB")
    if _WRAPPED in classes:
        for match in _BLOB_LINES.finditer(view.text):
            if is_base64_blob(match[0].replace("\n", "")):
                yield Span(*match.span(), "BLOB")


DETECTORS: tuple[Detector, ...] = (
    Detector(find_emails, (b"@",)),
    Detector(find_ip4),
    Detector(find_hardware),
    Detector(find_phones),
    Detector(find_blobs),
)
