# ruff: noqa: E501 (patterns)
"""Strict rules of the gate for secrets that nothing announces.

Those are words of letters, digits and signs, random words of 16 characters or more, and whatever the rules
find once a text is decoded.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import unquote

from tracemill.privacy.core.entropy import (
    changes_case_often,
    entropy,
    has_all_kinds,
    is_stand_in,
    shape_wordiness,
)
from tracemill.privacy.core.placeholder_keys import find_keyed_placeholders
from tracemill.privacy.core.rule import Span, build_rule_pattern
from tracemill.privacy.publish_gate.strict_rules import is_labelled_id
from tracemill.privacy.secrets.drawn_tokens import is_drawn_part

_LEFT, _RIGHT = r"(?<![\w+/=.@#$%&~\\-])(?<!\bh1:)", r"(?![\w+/=%@(~-])(?!\.\w)"
_NO_BLOCK = r"(?!\r?\n[ \t]*(?:[A-Za-z0-9+/]{20}|-----END))"  # the next line is Base64 too
_RANDOM = build_rule_pattern(
    rf"{_LEFT}(?P<v>(?=[A-Za-z0-9+/]*\d)[A-Za-z0-9+/]{{16,88}}={{0,2}}){_RIGHT}{_NO_BLOCK}"
)
_CAPITALS = build_rule_pattern(rf"{_LEFT}(?P<v>(?=[A-Z]*[2-7])[A-Z2-7]{{24,64}}){_RIGHT}")
_MADE = build_rule_pattern(
    r"(?<![\w!#$%^&*+/=.@~\\-])(?P<v>(?=[A-Za-z0-9]*[!#%^*$@])(?=[A-Za-z!#%^*$@]*\d)(?=[A-Z\d!#%^*$@]*[a-z])(?=[a-z\d!#%^*$@]*[A-Z])[A-Za-z0-9!#%^*$@]{10,32})(?![\w!#$%^&*+/=(~-])(?!\.\w)"
)
_ABOUT = (
    r"(?i:passw|\bpass\b|passphrase|passcode|sshpass|secret|credential|\bcreds\b|log(?:ging|ged)?[ -]?(?:in|form)|sign(?:ed)? in|unlock|\bopens?\b|wi-?fi|hotspot"
    r"|\badmin\b|\broot\b|superuser|sudo|keystore|\bvault\b|zugang|anmeld|kennung|\bpw\b|\bpwd\b|\bsftp\b|\bftp\b|kennwort|passwort|contrase|senha|\bauth\b)"
)
_CHOSEN = r"(?:[A-Za-z]{3,12}[-_.!][A-Za-z]{3,12}\d{2,4}|(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{12,32}|[A-Za-z0-9]{3,24}[!#%^*$@][A-Za-z0-9!#%^*$@]{2,24})"
_NEAR = build_rule_pattern(
    rf"{_ABOUT}[^\n]{{0,32}}?(?:[\s\"'`(]|[:=/] ?)(?P<v>(?<![\w+/=.$@-]){_CHOSEN})(?![\w+/=(\[{{-])(?!\.\w)"
)
_HEX = build_rule_pattern(
    r"(?<![\w+/=.@#$%:-])(?P<v>(?:[0-9a-f]{32}|[0-9a-f]{48}|[0-9a-f]{64}))(?![\w.-]| [ *][\w./])"
)  # no line of a list of checksums
_ALGORITHM = re.compile(r"(?i)sha\d|md5|utf|base\d|http|oauth|ipv\d|x86|win\d|v\d|python|node")
_NO_HEX = re.compile(
    r"(?i)sha-?\d|md5|hash|digest|checksum|commit|uuid|etag|\bids?\b|_id|rev|integrity|fingerprint|blob|tree|cache|container|image|layer|trace|span|build|artifact|version|index|oid|object"
)
_OF_HEX = re.compile(
    r"(?i)\bauth|session|\bkey\b|\bsealed|credential|secret|\btoken\b|cookie|bearer|licen[cs]e|activat|\b40[13]\b"
)

_ENCODED = build_rule_pattern(
    r"(?<![\w+/%-])(?:(?P<hex>(?:[0-9a-f]{2}){16,2048})|(?P<b64>[A-Za-z0-9+/_-]{20,4096}={0,2})|(?P<url>(?=[\w.~*'()-]{0,200}%[2-7][0-9A-Fa-f])(?:[\w.~*'()-]|%[0-9A-Fa-f]{2}){8,2000}))(?![\w+/=%-])"
)
_LEAST_DECODED = 10


def find_unannounced(text: str) -> Iterator[Span]:
    """Yield possible secrets that no label announces."""
    fixed = find_keyed_placeholders(text)
    for span in _secrets(text):
        if not any(start < span.end and span.start < end for start, end in fixed):
            yield span


def _secrets(text: str) -> Iterator[Span]:
    for match in _RANDOM.finditer(text):
        if _is_random(match["v"]) and not is_labelled_id(text, match) and not _of_base64(match["v"]):
            yield Span(*match.span("v"), "STRICT_RANDOM")
    for match in _CAPITALS.finditer(text):
        value = match["v"]
        if sum(map(str.isdigit, value)) >= 2 and entropy(value) >= 3.6 and not is_labelled_id(text, match):
            yield Span(*match.span("v"), "STRICT_RANDOM")
    for match in _MADE.finditer(text):
        value = match["v"]
        if sum(map(str.isdigit, value)) >= 2 and changes_case_often(value):
            yield Span(*match.span("v"), "STRICT_MADE_UP")
    for match in _NEAR.finditer(text):
        value = match["v"]
        digits = sum(map(str.isdigit, value))
        if digits >= 2 and not is_stand_in(value) and _is_chosen(value):
            yield Span(*match.span("v"), "STRICT_NEAR")
    for match in _HEX.finditer(text):
        line = text[text.rfind("\n", 0, match.start()) + 1 : match.end() + 40].partition("\n")[0]
        around = line[-400:]
        if _OF_HEX.search(around) and not _NO_HEX.search(around) and len(set(match["v"])) > 8:
            yield Span(*match.span("v"), "STRICT_HEX")


def _is_random(value: str) -> bool:
    """Tell whether a word has capitals, small letters and digits in no order, and is no path."""
    plain = value.rstrip("=")
    if not has_all_kinds(plain) or is_stand_in(plain) or entropy(plain) < 3.4:
        return False
    digits = sum(map(str.isdigit, plain))
    if digits >= 2 and changes_case_often(plain) and shape_wordiness(plain) < 0.35:
        return True
    return len(plain) >= 20 and is_drawn_part(plain.replace("+", "").replace("/", ""))


def _is_chosen(value: str) -> bool:
    """Tell whether a word near one about passwords is a phrase with a number, or letters in no order."""
    if value.isalnum():
        return has_all_kinds(value) and shape_wordiness(value) < 0.5
    return not _ALGORITHM.search(value)


def find_in_decoded(text: str, find: Callable[[str], Iterable[Span]]) -> Iterator[Span]:
    """Yield the encoded parts of a text in which `find` finds something once they are decoded."""
    for match in _ENCODED.finditer(text):
        plain = _decoded(match)
        if len(plain) >= _LEAST_DECODED and any(True for _ in find(plain)):
            yield Span(*match.span(), "STRICT_ENCODED")


def _decoded(match: re.Match[str]) -> str:
    """Return what an encoded text says, "" where it says nothing."""
    if match["b64"]:
        return _of_base64(match[0])
    try:
        plain = (
            unquote(match[0], errors="strict") if match["url"] else bytes.fromhex(match[0]).decode("utf-8")
        )
    except ValueError:
        return ""
    return plain if _is_text(plain) else ""


def _of_base64(value: str) -> str:
    """Return the text that is encoded as Base64, "" for other bytes."""
    bare = value.rstrip("=")
    others = b"-_" if "-" in bare or "_" in bare else None
    try:
        plain = base64.b64decode(bare + "=" * (-len(bare) % 4), altchars=others, validate=True).decode(
            "utf-8"
        )
    except (binascii.Error, ValueError):
        return ""
    return plain if _is_text(plain) else ""


def _is_text(plain: str) -> bool:
    return all(each.isprintable() or each in "\r\n\t" for each in plain)
