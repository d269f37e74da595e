"""Detect e-mail, IP and MAC addresses by their form, and large encoded data."""

import base64
import ipaddress
import re
from collections.abc import Iterator

from tracemill.privacy.core.entropy import is_base64_blob, is_sealed
from tracemill.privacy.core.rule import (
    Detector,
    Span,
    TextView,
    build_rule_pattern,
    make_probed_detector,
    skip_rule_escape,
)
from tracemill.privacy.core.word_lists import (
    DOMAINS,
    PUBLIC_ADDRESSES,
    ROLES,
    SAMPLE_HARDWARE,
    SAMPLE_NAMES,
    SHARED_NAMES,
)

_LOCAL = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._%+-")
# The sign itself, or as URLs, HTML and code write it; host names in any alphabet.
_AT = re.compile(
    r"(?:@|%40|&#64;|&#x40;|\\u0040|\\x40)"
    r"(?P<host>(?:[^\W_](?:[^\W_]|-){0,62}\.){1,6}(?P<tld>[A-Za-z]{2,18}))(?![A-Za-z0-9(]|_\w|\.[A-Za-z0-9]|-[a-z])"
)
_NOBODY = SHARED_NAMES | SAMPLE_NAMES
_PERSON = re.compile(  # names are written in any alphabet
    r"(?i)(?:author|committer|commit(?! by )|tagger|by|from|to|cc|bcc|sender|maintainer)"
    r"(?:\\*\"?:[ \t]{0,8}\\*\"?|[ \t])(?P<v>[^\W\d_][\w.' -]{1,60}?)[ \t]<$"
    r"|(?<![\s\S])(?P<x>(?-i:(?![a-z]))[^\W\d_][\w.' -]{1,60}?)[ \t]<$"  # a string of JSON by itself
    r"|(?<![^\n])[ \t]*\d{1,6}\t(?P<w>[^\W\d_][\w.' -]{1,60}?)[ \t]<$"  # `git shortlog`
)
_SAMPLE_HOST = build_rule_pattern(
    r"(?i)(?:^|\.)(?:example\.(?:com|org|net|edu|io)|.*\.(?:test|invalid|example|localhost)|"
    r"domain\.(?:com|tld)|yourdomain\.com|foo\.(?:com|bar)|bar\.com|email\.com|test\.com)$"
)
_LEFT = r"(?:(?<![\w.])|(?<=\\[nrt]))"
_IP4 = build_rule_pattern(_LEFT + r"(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d|-[a-z])")
# Words right before an address, or some words before it, that announce one.
_IP4_SAID = build_rule_pattern(
    r"(?i)(?:\bip(?:v?4)?|addr(?:ess)?|inet|ssh|ping|host(?:name)?|peer|dns)[ \t\"'=:(\[]{1,4}$|://$|@$"
)
_IP4_CONTEXT = build_rule_pattern(
    r"(?i)\bip|host|addr|server|client|remote|ssh|ping|peer|listen|://|@|bind|inet|dns|connect|"
    r"(?:from|to|via)[ :]$"
)
_CONTEXT_REACH = 32  # characters before an address that are searched for such a word
_LEADING_ZERO = build_rule_pattern(r"(?:^|\.)0\d")
_AFTER_ADDRESS = build_rule_pattern(r":\d{2,5}\b| - [\w-]+ \[")
# Code before the addresses reserved for documentation and tests (RFC 5737, RFC 3849).
_IN_CODE = build_rule_pattern(
    r"(?i)ip(?:v[46])?_?(?:address|network|interface)?\([bru]?\\*[\"']?$|>>> |\.\. |[a-z]\w*\([\"']$"
)
_SAMPLES = ([192, 0, 2], [198, 51, 100], [203, 0, 113])  # RFC 5737
# First numbers of networks for special purposes (RFC 6890).
_SPECIAL = frozenset((0, 10, 100, 127, 169, 172, 192, 198, 203, *range(224, 256)))
# A version: after a sign or word of packages, after `Chrome/`, in brackets or in a column after a name.
_PACKAGE_BEFORE = build_rule_pattern(
    r"(?i)(?:version\W{1,6}|==\s?|[a-z0-9][-_]v?|\bv|(?<!tcp)(?<!udp)[a-z]/)$"
)
_NAMED_BEFORE = build_rule_pattern(r"^[ \t]*(?=[\w.+-]*[A-Za-z])[\w.+-]+(?:[ \t]+| ?\()$")
_RELEASE_BEFORE = build_rule_pattern(r"(?i)version|updat|upgrad|bump|releas")
_STEPS = ("to ", "from ", "to v", "from v")
_RAISED_BEFORE = build_rule_pattern(r"(?i)(?:updat|upgrad|downgrad|bump|patch|releas)\w*[ :]")
_VERSION_BEFORE = build_rule_pattern(
    r"(?i)(?:v|ver|version|release|build|[<>~^!=]=|[~^]|chrome|/[\w.-]*/?|-|_|==|@)\s?[\"']?$"
)
# `react 17.0.2 -> `: a version follows.
_CHANGED_BEFORE = build_rule_pattern(
    r"^[ \t]*(?:[-*+][ \t]+)?(?=[\w.@/+-]*[A-Za-z])[\w.@/+-]+[ \t(:]+v?\d+(?:\.\d+)+\S*[ \t]*"
    r"(?:->|=>|to|\W)[ \t]*v?$"
)
_MAC = build_rule_pattern(
    r"(?:(?<![\w:.-])|(?<=\\[nrt]))[0-9A-Fa-f]{2}(?P<s>[:-])(?:[0-9A-Fa-f]{2}(?P=s)){4}[0-9A-Fa-f]{2}(?![\w:-])"
)
_WRAPPED_HEX = build_rule_pattern(
    r"(?:[0-9A-Fa-f]{2}:){3}\s*$"
)  # the line before ends in the middle of a number
_MAC_DOTTED = build_rule_pattern(r"(?<![\w.-])[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}(?![\w.-])")
_DOTTED = b"hhhh.hhhh.hhhh"
_IP6 = build_rule_pattern(
    r"(?:(?<![\w:.])|(?<=\\[nrt]))(?:[0-9A-Fa-f]{1,4}:){1,7}(?::?[0-9A-Fa-f]{1,4}){1,7}(?![\w:.])"
)
BLOB = 256  # least characters of encoded data in a row that are replaced
_IN_A_ROW, _WRAPPED = b"x" * BLOB, b"\n" + b"x" * 60
_RUN = re.compile(rb"x+")
_BLOB = build_rule_pattern(r"[A-Za-z0-9+/_-]{256,}={0,2}")
_PUBLIC = build_rule_pattern(r"[\"']n[\"']\s?:\s?[\"'](?=[\w-])|ssh-rsa (?=AAAAB3)")
_URL_SAFE = str.maketrans("+/", "-_")
_BLOB_LINES = build_rule_pattern(r"(?:[A-Za-z0-9+/]{60,76}\r?\n){6,}[A-Za-z0-9+/]{1,76}={0,2}")


def find_emails(view: TextView) -> Iterator[Span]:
    """Find addresses of people (`EMAIL`), and the name before one (`PERSON`)."""
    text = view.text
    for start, _, end in iter_addresses(view):
        yield Span(start, end, "EMAIL")
        person = _person_before(text, start)
        if person and person[group := person.lastgroup or "v"][0].isupper():
            yield Span(*person.span(group), "PERSON")


def iter_addresses(view: TextView) -> Iterator[tuple[int, int, int]]:
    """Yield the start, the sign and the end of each address of a person."""
    text = view.text
    for at in (at for sign in _SIGNS for at in view.positions(sign)):
        if match := _AT.match(text, at):
            start = _local_start(text, at)
            if start < at and is_person(text[start:at], match):
                yield start, at, match.end()


def _person_before(text: str, start: int) -> re.Match[str] | None:
    if text[start - 2 : start] not in (" <", "\t<"):
        return None
    line = max(text.rfind("\n", 0, start) + 1, start - 100, 0)
    return _PERSON.search(text, line, start)


def _local_start(text: str, at: int) -> int:
    start = at
    if text[at - 1 : at] == '"' and (opening := text.rfind('"', max(0, at - 64), max(0, at - 1))) >= 0:
        quoted = text[opening + 1 : at - 1]
        return opening + 1 if quoted and not set(quoted) & set(":=,<>\\\n") else at
    while start and at - start < 64 and (text[start - 1] in _LOCAL or _is_letter(text[start - 1])):
        start -= 1
    while start < at and text[start] in ".-%+_":
        start += 1
    return min(at, skip_rule_escape(text, start))


def _is_letter(character: str) -> bool:
    return not character.isascii() and character.isalnum() and character < "\u3040"


def is_person(local: str, match: re.Match[str]) -> bool:
    """Tell whether an address is a person's, by its local part and the match's `host` and `tld`."""
    local = local.lower()
    if not any(c.isalnum() for c in local):
        return False
    if match["tld"].lower() not in DOMAINS or local in ROLES:
        return False
    return not _SAMPLE_HOST.search(match["host"]) or (local not in _NOBODY and " " not in local)


def find_ip4(view: TextView) -> Iterator[Span]:
    """Find IPv4 addresses other than versions, loopback, masks and documentation addresses."""
    text, digits = view.text, view.plane("fold")
    for four in _OCTETS.finditer(digits):
        start = four.start()
        while start and four.start() - start < 2 and digits[start - 1] == _ZERO:
            start -= 1
        match = _IP4.match(text, start)
        if match and _is_address(match[0], text, start):
            yield Span(*match.span(), "IP")


def _is_address(value: str, text: str, start: int) -> bool:
    first, second, third, last = numbers = [int(octet) for octet in value.split(".")]
    if max(numbers) > 255 or _LEADING_ZERO.search(value):
        return False
    after = text[start + len(value) : start + len(value) + 12]
    network = last == 0 and after.startswith("/")
    if network and (third < 10 or second == 0):
        return False  # a network of examples and defaults
    low = max(0, start - 40)
    before = text[max(text.rfind("\n", low, start) + 1, low) : start]
    if _PACKAGE_BEFORE.search(before[-14:]) or (before.endswith(_STEPS) and _RAISED_BEFORE.search(before)):
        return False
    if value in PUBLIC_ADDRESSES or first == second == third == last:
        return False
    if first == 10 or (first == 172 and 16 <= second < 32) or (first == 192 and second == 168):
        return last not in (0, 255) or (second, third) != (0, 0)
    sample = numbers[:3] in _SAMPLES
    if sample and (after.startswith("/") or _IN_CODE.search(before)):
        return False
    if not sample and first in _SPECIAL and not _is_global(value):
        return False
    near = before[-_CONTEXT_REACH:]
    if sample or _IP4_SAID.search(near) or _AFTER_ADDRESS.match(after):
        return not _RELEASE_BEFORE.search(before)
    if max(numbers) < 32 or (sum(n > 99 for n in numbers) < 2 and _is_version(before)):
        return False  # a version or a section
    if _IP4_CONTEXT.search(near):
        return not _RELEASE_BEFORE.search(before)
    return first > 11 and not _VERSION_BEFORE.search(before)


def _is_version(before: str) -> bool:
    return bool(_NAMED_BEFORE.search(before) or _CHANGED_BEFORE.search(before))


def _is_global(value: str) -> bool:
    address = ipaddress.IPv4Address(value)
    return address.is_global and not address.is_multicast


def find_macs(view: TextView) -> Iterator[Span]:
    """Find hardware addresses."""
    for anchor in _HARDWARE:
        for at in view.positions(anchor, "hexes"):
            match = _MAC.match(view.text, at)
            if match and is_hardware(match[0]) and not _WRAPPED_HEX.search(view.text, max(0, at - 60), at):
                yield Span(*match.span(), "MAC")


def is_hardware(value: str) -> bool:
    """Tell whether a hardware address is not made up."""
    plain = re.sub(r"[^0-9a-f]", "", value.lower())
    return len(set(plain)) > 3 and plain not in SAMPLE_HARDWARE


def find_dotted_macs(view: TextView) -> Iterator[Span]:
    """Find hardware addresses in three groups of four, as switches print them."""
    for at in view.positions(_DOTTED, "hexes"):
        match = _MAC_DOTTED.match(view.text, at)
        if match and any(c.isdigit() for c in match[0]) and any(c.isalpha() for c in match[0]):
            yield Span(*match.span(), "MAC")


def find_ip6(view: TextView) -> Iterator[Span]:
    """Find global, unique local and link-local IPv6 addresses."""
    hexes, done = view.plane("hexes"), -1
    for at in sorted(at for anchor in _HEXTETS for at in view.positions(anchor, "hexes")):
        if at < done:
            continue
        start = at
        while start and at - start < 40 and hexes[start - 1] in b"h:":
            start -= 1
        done = at + 1
        match = _IP6.match(view.text, start)
        if match:
            done = match.end()
            if _is_ip6(match[0]) and not _is_documented(view.text, match):
                yield Span(*match.span(), "IP")


def _is_documented(text: str, match: re.Match[str]) -> bool:
    """Tell whether an address reserved for documentation stands in code or names a network."""
    if not match[0].lower().startswith("2001:db8"):
        return False
    before = text[max(text.rfind("\n", 0, match.start()) + 1, match.start() - 40) : match.start()]
    return text[match.end() : match.end() + 1] == "/" or bool(_IN_CODE.search(before))


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


def _is_public(text: str, blob: re.Match[str]) -> bool:
    """Tell whether encoded data is a public key, a certificate or a ciphertext, by what begins it."""
    if is_sealed(blob[0]) or _PUBLIC.search(text, max(0, blob.start() - 16), blob.start() + 8):
        return True
    return base64.urlsafe_b64decode(blob[0][:8].translate(_URL_SAFE))[4:] in (b"0\x82", b"0\r")


def find_blobs(view: TextView) -> Iterator[Span]:
    """Find encoded data of `BLOB` characters or more, on one line or wrapped."""
    if len(view.raw) < BLOB:
        return
    text, classes = view.text, view.plane("data")
    at = classes.find(_IN_A_ROW)
    while at >= 0:
        run = _RUN.match(classes, at)
        end = run.end() if run else at + BLOB
        for match in _BLOB.finditer(text, at, end):
            if is_base64_blob(match[0]) and not _is_public(text, match):
                yield Span(*match.span(), "BLOB")
        at = classes.find(_IN_A_ROW, end)
    at = classes.find(_WRAPPED)
    while at >= 0 and (match := _BLOB_LINES.search(text, text.rfind("\n", 0, at) + 1)):
        if is_base64_blob(match[0].replace("\n", "")):
            yield Span(*match.span(), "BLOB")
        at = classes.find(_WRAPPED, match.end())


_SIGNS = (b"@", b"%00", b"&#00;", b"&#x00;", b"\\u0000", b"\\x00")
_OCTETS, _ZERO = re.compile(rb"0\.0{1,3}\.0{1,3}\.0"), ord("0")
_HARDWARE = (b"hh:hh:hh:hh:hh:hh", b"hh-hh-hh-hh-hh-hh")
_HEXTETS = (b":hhhh:", b"hhhh::", b":hhh:")
DOMAIN_PROBE = r"(?:[A-Za-z0-9\x80-\xff?][A-Za-z0-9\x80-\xff?-]*\.)+[A-Za-z]{2}"
"""A probe for the host of an address."""
_WRITTEN_SIGN = r"(?:%40|&#64;|&#x40;|\\u0040|\\x40)"
DETECTORS: tuple[Detector, ...] = (
    make_probed_detector(
        find_emails, rf"[\w.%+\"\x80-\xff?-]@{DOMAIN_PROBE}", rf"{_WRITTEN_SIGN}{DOMAIN_PROBE}"
    ),
    make_probed_detector(find_ip4, r"(?:\d{1,3}\.){3}\d"),
    make_probed_detector(find_macs, r"[0-9A-Fa-f]{2}(?:(?::[0-9A-Fa-f]{2}){5}|(?:-[0-9A-Fa-f]{2}){5})"),
    make_probed_detector(find_dotted_macs, r"[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}"),
    make_probed_detector(find_ip6, r"[0-9A-Fa-f:]:[0-9A-Fa-f]{3,4}:[0-9A-Fa-f:]|[0-9A-Fa-f]{4}::[0-9A-Fa-f]"),
    make_probed_detector(find_blobs, r"[A-Za-z0-9+/=_\r\n-]{256}"),  # wrapped lines match this too
)
