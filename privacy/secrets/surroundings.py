"""Detect secrets by their surroundings: `password: ...`, `Bearer ...`, `://user:...@host`.

Each detector starts from a literal in the lower-cased text, so its pattern is matched at a few places and
never searched. Values are checked by `privacy.core.entropy`, which tells `password=get_password()` and
`token: str` from a secret.
"""

import re
from collections.abc import Iterator

from tracemill.privacy.core.entropy import (
    is_base64_login,
    is_mixed_case,
    is_random,
    is_stand_in,
    is_token,
    is_uuid,
)
from tracemill.privacy.core.rule import (
    Detector,
    Span,
    TextView,
    build_rule_pattern,
    make_near_detector,
    make_probed_detector,
)
from tracemill.privacy.core.secret_names import KEY_ADJECTIVE
from tracemill.privacy.core.word_lists import WEAK_PASSWORDS
from tracemill.privacy.secrets import assignments, structures
from tracemill.privacy.secrets.assignments import find_assignments, is_digest_in_table

_BEARER = build_rule_pattern(
    r"(?i)bearer(?:(?:[ \t]|%20|\+){1,3}|\\*[\"'`]?[ \t]{0,3}[:=][ \t]{0,3}\\*[\"'`]?"
    r"|[ \t]?\\*[\"'`][ \t]{0,3}[+.,][ \t]{0,3}\\*[\"'`])(?P<v>[A-Za-z0-9._~+/=-]{16,4096})"
)
_BASIC = build_rule_pattern(r"(?i)basic[ \t]{1,3}(?P<v>[A-Za-z0-9+/]{8,512}={0,2})(?![\w+/=])")
_URL = build_rule_pattern(r"://[^\s/:@\"'<>?#]{0,128}:(?P<v>[^\s@\"'<>]{3,256})@(?=[\w\[])")
_URL_USER = build_rule_pattern(r"://(?P<v>[A-Za-z0-9_-]{20,256})(?::[^\s/@]{0,64})?@[\w.-]")
_SPOKEN = build_rule_pattern(
    r"(?i)(?:s|_[a-z_]{1,20})?\b"
    r"(?![\"'` ]{0,3}[=:]|[^\n]{0,40}(?:sha\d|hash|digest|checksum|commit|fingerprint|etag|\bids?\b|uuid))"
    r"[ :\"'`|*]{1,4}(?:[a-z][a-z'-]{0,14}[ :=]{1,3}){0,4}[\"'`(]{0,2}"
    r"(?P<v>(?<![\w/+.-])[A-Za-z0-9_+/-]{16,512}={0,2})"
)
_NUMBERED = build_rule_pattern(r"[A-Za-z]+(?:[_-]\d+)+")
_SPOKEN_WORDS = (b"password", b"passphrase", b"token", b"secret", b"key")
_PPK = build_rule_pattern(r"(?i)private-lines: \d{1,3}(?P<v>(?:(?:\\r|\\n|\s)+[A-Za-z0-9+/=]{16,64})+)")
_COOKIE = build_rule_pattern(r"(?i)cookie\\*[\"']?\s{0,3}[:=,]\s{0,3}\\*[\"']?(?P<v>[^\"'\r\n\\]{8,4096})")
_COOKIE_VALUE = build_rule_pattern(r"=(?P<v>[^;\s,\"'\\]{16,})")
_KEY_TITLE = r"(?:(?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1)"
_PEM = build_rule_pattern(
    rf"-----BEGIN {_KEY_TITLE}-----(?P<body>[\s\S]{{40,16000}}?)-----END {_KEY_TITLE}-----"
)
_PEM_CUT = build_rule_pattern(
    rf"-----BEGIN {_KEY_TITLE}-----"
    r"(?:(?:\s|\\+[nr]|[\"'+→|\d])*[A-Za-z0-9+/=]{32,})+"
)
_AWS_PAIR = build_rule_pattern(r"(?<![\w/+])(?P<v>[A-Za-z0-9/+]{40})(?![\w/+=])")


def _is_credential(value: str) -> bool:
    return not is_stand_in(value) and (any(c.isdigit() for c in value) or is_mixed_case(value))


def _is_url_password(value: str) -> bool:
    return value.lower() not in WEAK_PASSWORDS and not re.search(
        r"^[$%{*<\[]|\$\{|\{\{|x{3}|\*{3}|\.{3}|/\w+/.*/", value
    )


def _is_spoken(value: str) -> bool:
    return (
        is_token(value)
        and not is_uuid(value)
        and not _NUMBERED.fullmatch(value)
        and (len(value) >= 32 or is_mixed_case(value) or sum(map(str.isdigit, value)) >= 4)
    )


def _always(_: str) -> bool:
    return True


def find_spoken(view: TextView) -> Iterator[Span]:
    """Find a random value a few words after `password`, `API key` and the like."""
    text = view.text
    for word in _SPOKEN_WORDS:
        for at in view.positions(word):
            if word == b"key" and not KEY_ADJECTIVE.search(text, max(0, at - 12), at):
                continue
            match = _SPOKEN.match(text, at + len(word)) if text[at - 1 : at] != "/" else None
            if match and _is_spoken(match["v"]) and not is_digest_in_table(text, at, match["v"]):
                yield Span(*match.span("v"), "SECRET")


def find_private_keys(view: TextView) -> Iterator[Span]:
    """Find PEM and OpenSSH private keys, whole or cut off, with real or escaped newlines."""
    for at in view.positions(b"-----begin"):
        match = _PEM.match(view.text, at)
        if match and _is_key_body(match["body"]):
            yield Span(*match.span(), "PRIVATE_KEY")
        elif cut := _PEM_CUT.match(view.text, at):
            yield Span(*cut.span(), "PRIVATE_KEY")


def _is_key_body(body: str) -> bool:
    plain = re.sub(r"\s|\\+[nrt]|[\"'+,→|]|\d{1,4}(?:→|\t)|[A-Z][\w-]+: [^\n\\]*", "", body)
    code = sum(c.isalnum() or c in "+/=" for c in plain)
    return len(plain) >= 40 and code >= 0.9 * len(plain)


def find_cookies(view: TextView) -> Iterator[Span]:
    """Find random values of `Cookie` and `Set-Cookie` headers."""
    for at in view.positions(b"cookie"):
        header = _COOKIE.match(view.text, at)
        if header is None:
            continue
        for value in _COOKIE_VALUE.finditer(view.text, *header.span("v")):
            if is_random(value["v"]) or (len(value["v"]) >= 20 and sum(map(str.isdigit, value["v"])) >= 3):
                yield Span(*value.span("v"), "COOKIE")


def find_aws_secrets(view: TextView, keys: list[Span]) -> Iterator[Span]:
    """Find AWS secret keys: forty characters near a key id, without a prefix."""
    for key in keys:
        low, high = max(0, key.start - 200), key.end + 200
        for match in _AWS_PAIR.finditer(view.text, low, high):
            if is_mixed_case(match["v"]):
                yield Span(*match.span("v"), "AWS_SECRET")


def find_paired_keys(view: TextView) -> Iterator[Span]:
    """Find keys of an id in hex, a dot and a mixed part."""
    for at in view.positions(_HEX_DOT, "hexes"):
        match = _PAIRED.match(view.text, at)
        if match and is_mixed_case(match[0][33:]):
            yield Span(*match.span(), "API_KEY")


_HEX_DOT = b"h" * 32 + b"."
_PAIRED = build_rule_pattern(r"(?<![A-Za-z0-9])[0-9a-f]{32}\.[A-Za-z0-9]{16}(?![A-Za-z0-9])")
_SPOKEN_PROBE = (
    r"(?i)(?:password|passphrase|token|secret|[a-z][ _-]key)(?:s|_[a-z_]+)?"
    r"(?:[ \"'`]+|[ \"'`]*[|*][ :\"'`|*]*)(?:[a-z][a-z'-]{0,14}[ :=]+){0,4}[\"'`(]{0,2}"
    r"(?:[0-9][\w+/-]{7}|[\w+-](?:[\w+/-]{0,7}[0-9][\w+/-]{7}|[\w+/-]{7,}[0-9]|[\w+/-]{19}))"
)
DETECTORS: tuple[Detector, ...] = (
    make_probed_detector(find_private_keys, r"(?i)-----begin (?:[a-z0-9 ]*private key|openvpn static)"),
    make_probed_detector(find_assignments, *assignments.PROBES, located=True),
    make_probed_detector(
        find_cookies, r"(?i)cookie\\*[\"']?\s*[:=,]\s*\\*[\"']?[^\"'\r\n\\]*=[^;\s,\"'\\]{16}"
    ),
    *structures.DETECTORS,
    make_near_detector(
        b"bearer", _BEARER, "BEARER_TOKEN", _is_credential, probe=r"(?i)bearer[^\w\n]*(?:%20)*[\w.~+/=-]{16}"
    ),
    make_near_detector(
        b"basic", _BASIC, "BASIC_AUTH", is_base64_login, probe=r"(?i)basic\s+[A-Za-z0-9+/]{8}"
    ),
    make_near_detector(
        b"://", _URL, "URL_PASSWORD", _is_url_password, probe=r"://[^\s/:@\"'<>#]*:[^\s@\"'<>]{3,}@"
    ),
    make_near_detector(b"://", _URL_USER, "URL_TOKEN", is_random, probe=r"://[\w-]{20,}(?::[^\s/@]*)?@"),
    make_near_detector(b"private-lines", _PPK, "PRIVATE_KEY", _always, probe=r"(?i)private-lines: \d"),
    make_probed_detector(find_spoken, _SPOKEN_PROBE),
    make_probed_detector(find_paired_keys, r"[0-9a-f]{32}\."),
)
