"""Strict rules of the gate for secrets: random values near words about secrets, and random words alone.

In redaction these rules would damage code and logs; a release has few such values, and each is reviewed.
"""

import re
from collections.abc import Iterator

from tracemill.privacy.core.chosen_passwords import (
    is_chosen_password,
    is_numbered_words,
    is_short_phrase,
)
from tracemill.privacy.core.entropy import (
    changes_case_often,
    entropy,
    has_all_kinds,
    is_password,
    is_random,
    is_stand_in,
    shape_wordiness,
)
from tracemill.privacy.core.placeholder_keys import find_keyed_placeholders
from tracemill.privacy.core.rule import Span, build_rule_pattern
from tracemill.privacy.secrets.drawn_tokens import is_drawn_part

_ABOUT = (
    r"(?i:passw(?:or)?d|passwd|\bpwd|\bpw\b|passphrase|passcode|secret|(?<!_)\btoken\b|api[ _-]?key"
    r"|access[ _-]?key|credential|\bcreds?\b|bearer|private[ _-]?key|signing[ _-]?key|encryption[ _-]?key"
    r"|passwort|kennwort|mot de passe|contrase\xf1a|senha|wachtwoord|l\xf6senord|has\u0142o|heslo|parola"
    r"|\u043f\u0430\u0440\u043e\u043b\u044c|\u041f\u0430\u0440\u043e\u043b\u044c|\u5bc6\u7801|\bauth\b"
    r"|\blog ?in\b|\bunlock|\bpin\b|\bsign ?in\b|\bpasscode"
    r"|send_keys|\bpsexec|\blftp\b|setuser|\bnet user\b|anmeld)"
)
_VALUE = r"(?P<v>(?<![\w+/=.$@-])[A-Za-z0-9+/_.!#$%^&*~=-]{10,512}(?![\w+/=]))"
_NEAR = build_rule_pattern(rf"{_ABOUT}(?P<gap>[^\n]{{0,40}}?[\s\"'`=:(,>\[]){_VALUE}")
_ALONE = build_rule_pattern(r"(?<![\w+/=.@#$%-])(?P<v>[A-Za-z0-9_-]{28,64})(?![\w+/=%-])(?!\.\w)")
_OF_BLOCK = build_rule_pattern(
    r"(?:[A-Za-z0-9+/]{28}|-----)[ \t]*\r?\n[ \t]*$"
)  # the line before is Base64 too
_FOLLOWED = build_rule_pattern(
    rf"{_VALUE}[\"'`]?,? (?:as|is|for|was) (?:the|my|our|your|a|an) (?:[\w-]{{1,20}} ){{0,3}}?{_ABOUT}"
)
_NO_SECRET = build_rule_pattern(
    r"(?i)(?:(?<![a-z])sha-?\d*|md5|hash|digest|checksum|commit|uuid|etag|nonce|(?<![a-z])ids?|version|revision|integrity|"
    r"fingerprint|public|signature|blob|tree|parent|cache)[\w-]*[\"'`]?\s{0,2}[=:( ]{1,2}\s{0,2}[\"'`]?$"
)
_MADE_UP = build_rule_pattern(
    r"(?=[^!#%*^&]*[!#%*^&])(?=\D*\d\D*\d)(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])^[^=/]{10,32}$"
)
_CODE = build_rule_pattern(r"&&|\*\*|[!=]=|%[sd]|&\w+;|#\d+$|&[a-z]|^[*#&]")
_ID = build_rule_pattern(
    r"(?:toolu|call|msg|chatcmpl|req|resp|gen|run|thread|asst|file|item|rs|fc|ws|step)[_-]\w+|[0-9a-f-]{36}|[0-9a-f]{16}|[0-9a-f]{40}"
)
_NAME = build_rule_pattern(r"[A-Za-z_$]+\d{0,3}|(?:[\w$]+[./_-])+[\w$]*|[\w./-]+\.[a-z]{1,5}|\d[\d.,_-]*")


def find_strictly(text: str) -> Iterator[Span]:
    """Yield possible secrets; a false finding costs a review, a missed one is published."""
    for match in _NEAR.finditer(text):
        start = match.start("v")
        if _may_be_secret(match["v"]) and not _NO_SECRET.search(text, max(0, start - 48), start):
            yield Span(*match.span("v"), "STRICT_NEAR")
    for match in _FOLLOWED.finditer(text):
        if _may_be_secret(match["v"]) or (is_random(match["v"]) and not is_stand_in(match["v"])):
            yield Span(*match.span("v"), "STRICT_NEAR")
    for match in _ALONE.finditer(text):
        if is_drawn_part(match["v"]) and not is_labelled_id(text, match):
            yield Span(*match.span("v"), "STRICT_RANDOM")


def is_labelled_id(text: str, match: re.Match[str]) -> bool:
    """Tell whether a random value is a digest, an id or a placeholder by its form or the words before it."""
    value = match["v"]
    if _ID.fullmatch(value) or is_stand_in(value) or find_keyed_placeholders(value):
        return True
    if _OF_BLOCK.search(text, max(0, match.start() - 80), match.start()):
        return True
    return bool(_NO_SECRET.search(text, max(0, match.start() - 48), match.start()))


def _may_be_secret(value: str) -> bool:
    plain = value.rstrip(".,!")
    if is_short_phrase(plain) or (is_chosen_password(plain) and is_numbered_words(plain)):
        return not find_keyed_placeholders(value)
    if _MADE_UP.search(value) and is_password(value) and not _CODE.search(value):
        return not find_keyed_placeholders(value)
    value = value.rstrip(".,!")
    if is_stand_in(value) or find_keyed_placeholders(value) or _ID.fullmatch(value) or _NAME.fullmatch(value):
        return False
    if "_" in value.strip("_") or value.startswith(("-", "$")):
        return False
    drawn = has_all_kinds(value) or (value.isalnum() and changes_case_often(value))
    return drawn and entropy(value) >= 3.2 and shape_wordiness(value) < 0.5
