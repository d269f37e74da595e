"""Detect secrets by their own form or by what takes them: made-up passwords, codes, links, constant keys.

Each rule gives at most five false alarms in a megabyte of source code and one in a megabyte of logs.
"""

from tracemill.privacy.core.entropy import has_all_kinds, is_password, is_random, is_stand_in
from tracemill.privacy.core.placeholder_keys import find_keyed_placeholders
from tracemill.privacy.core.rule import (
    Detector,
    build_rule_pattern,
    make_anywhere_detector,
)

_REACH = 560  # characters of a value behind the end of its probe
_CODES = (
    r"(?i:(?:verification|security|log ?-?in|sign-?in|one[ -]time|confirmation|2fa|mfa|otp|access)"
    r"[ -]?(?:pass)?code(?: is|:| =)[ \t]{1,3}[\"'`]?)"
)
_ONE_TIME = rf"{_CODES}(?P<v>\d{{4,8}})(?![\w-])"
_LINKS = r"(?:reset|verify|confirm|invite|magic|activate|unsubscribe)[^\s\"'<>]{0,40}[?&/=][A-Za-z0-9_-]{20}"
_LINK = (
    r"(?i:https?://[^\s\"'<>]{1,120}/[^\s\"'<>?]{0,40}(?:reset|verify|confirm|invite|magic|activate|unsubscribe)[^\s\"'<>]{0,40}[?&/=])"
    r"(?P<v>[A-Za-z0-9_-]{20,200})"
)
_TAKERS = (
    r"(?:Fernet|AESGCM|AES\.new|AESCCM|ChaCha20\w*|SecretBox|SigningKey|Cipher|createCipheriv|createHmac"
    r"|hmac\.new|HMAC|Hashids|from_mnemonic"
    r"|(?:[Ll]ogin|[Aa]uthenticate|[Ee]ncrypt|[Dd]ecrypt|[Ss]ign|[Uu]nlock)\w{0,20})"
    r"\(\s{0,4}(?:[\w.]{1,40},\s{0,4}|[\"'][^\"'\n]{0,64}[\"'],\s{0,4})?b?[\"']"
)
_GIVEN = rf"{_TAKERS}(?P<v>[^\"'\s]{{10,512}})[\"']"
_BYTES = r"\bb[\"'](?P<v>[A-Za-z0-9_+/-]{43}=)[\"']"
_MADE_UP = (
    r"(?<![\w!#$%^&*+/=.@~\\-])(?P<v>[A-Z][a-z]{2,14}[@_-]?\d{2,6}[!#$%&*@?]{1,3})"
    r"(?![\w!#$%^&*+/=(~-])(?!\.\w)"
)
_NAME = build_rule_pattern(r"[A-Za-z_$]+\d{0,3}|(?:[\w$]+[./_-])+[\w$]*|[\w./-]+\.[a-z]{1,5}|\d[\d.,_-]*")


def _is_code(value: str) -> bool:
    return len(set(value)) > 2


def _is_constant(value: str) -> bool:
    if is_stand_in(value) or find_keyed_placeholders(value) or _NAME.fullmatch(value):
        return False
    return is_random(value) or (is_password(value) and has_all_kinds(value))


DETECTORS: tuple[Detector, ...] = (
    make_anywhere_detector("SECRET", _ONE_TIME, rf"{_CODES}\d{{4}}", _is_code, behind=_REACH),
    make_anywhere_detector("SECRET", _LINK, rf"(?i){_LINKS}", is_random, behind=_REACH),
    make_anywhere_detector("SECRET", _GIVEN, _TAKERS, _is_constant, behind=_REACH),
    make_anywhere_detector("SECRET", _BYTES, r"b[\"'][A-Za-z0-9_+/-]{43}=[\"']", is_random, behind=_REACH),
    make_anywhere_detector("SECRET", _MADE_UP, r"[A-Z][a-z]{2,14}[@_-]?\d{2,6}[!#$%&*@?]", behind=_REACH),
)
"""The detectors of redaction, which the publish gate runs too."""
