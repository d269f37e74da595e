# ruff: noqa: E501 (patterns)
"""Detect Base64 or hex that encodes a secret: `echo ... | base64 -d`, `powershell -enc`, dumps."""

import base64
import binascii
import re
from collections.abc import Iterator

from tracemill.privacy.core.rule import Detector, Span, TextView, build_rule_pattern, make_probed_detector
from tracemill.privacy.core.secret_names import secret_name_kind
from tracemill.privacy.core.spellings import base64_spellings
from tracemill.privacy.secrets.token_scan import find_tokens

_LEAST = 24  # characters of encoded text, in the alphabets of Base64
# Groups of Base64 whose three bytes are printable ASCII; these letters have the bits for it.
_GROUP = r"[I-Za-fCD][CDEFGHSTUVWXijklmnyz0123][ABEFIJMNQRUVYZcdghklopstwx014589][A-Za-z0-9+/]"
_BASE64 = build_rule_pattern(
    rf"(?<![A-Za-z0-9+/_-])(?:{_GROUP}){{6}}[A-Za-z0-9+/]{{0,4000}}={{0,2}}(?![A-Za-z0-9+/_-])"
)
_WIDE = build_rule_pattern(
    r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/][AQgw][AB][A-Za-z0-9+/]A[A-Za-z0-9+/]{2}A[A-Za-z0-9+/]{32,4000}={0,2}(?![A-Za-z0-9+/])"
)
_HEX = build_rule_pattern(r"(?<![0-9A-Za-z])(?:[2-7][0-9a-f]|0a|0d){20,2000}(?![0-9A-Za-z])")
_PAIR = build_rule_pattern(
    r"(?m)(?:^|[\s;,{])[\"']?(?P<name>[A-Za-z_][\w.-]{2,48})[\"']?[ \t]*[=:][ \t]*[\"']?(?P<v>[^\s\"']{6,256})"
)

# Encoded text that holds a secret has one of these words.
_WORDS = (
    *(
        "ghp_",
        "gho_",
        "ghs_",
        "github_pat_",
        "glpat-",
        "sk-ant",
        "sk-proj",
        "sk_live",
        "AKIA",
        "AIza",
        "xoxb",
        "xoxp",
    ),
    *(
        "npm_",
        "pypi-",
        "PASS",
        "pass",
        "Pass",
        "SECRET",
        "secret",
        "Secret",
        "TOKEN",
        "token",
        "Token",
        "_KEY",
        "_key",
    ),
    *("apiKey", "sk-or-"),
)
_IN_BASE64 = sorted({piece for word in _WORDS for piece in base64_spellings(word.encode(), 4)})


_LOGIN = build_rule_pattern(r"[a-z]://[^\s:/@]{0,64}:[^\s:/@${<]{6,128}@[\w.-]")


def find_encoded(view: TextView) -> Iterator[Span]:
    """Find encoded text that holds a token or a value under a secret's name; all of it."""
    runs = list(view.long_runs("data", _LEAST))
    for pattern, read in ((_BASE64, _from_base64), (_WIDE, _from_wide), (_HEX, _from_hex)):
        for match in (match for run in runs for match in pattern.finditer(view.text, *run)):
            plain = read(match[0])
            if plain and (kind := _kind_in(plain)):
                yield Span(*match.span(), kind)


def _from_base64(value: str) -> str:
    try:
        data = base64.b64decode(value[: len(value) // 4 * 4] if not value.endswith("=") else value)
    except (binascii.Error, ValueError):
        return ""
    return _printable(data)


def _from_wide(value: str) -> str:
    try:
        plain = base64.b64decode(value[: len(value) // 4 * 4] if not value.endswith("=") else value).decode(
            "utf-16-le"
        )
    except (binascii.Error, ValueError):
        return ""
    return plain if plain.isascii() else ""


def _from_hex(value: str) -> str:
    return _printable(bytes.fromhex(value)) if len(value) % 2 == 0 else ""


def _printable(data: bytes) -> str:
    text = data.decode("latin-1")
    return (
        text
        if text.isascii() and text.replace("\n", "").replace("\r", "").replace("\t", "").isprintable()
        else ""
    )


def _kind_in(plain: str) -> str | None:
    token = next(find_tokens(TextView(plain)), None)
    if token and token.kind != "JWT":
        return token.kind
    if _LOGIN.search(plain):
        return "URL_PASSWORD"
    for pair in _PAIR.finditer(plain):
        if kind := secret_name_kind(pair["name"], pair["v"], True):
            return kind
    return token.kind if token else None


DETECTORS: tuple[Detector, ...] = (
    make_probed_detector(
        find_encoded,
        "|".join(map(re.escape, _IN_BASE64)),
        rf"(?:{_GROUP}){{8}}",
        r"(?i:-e(?:nc(?:odedcommand)?|c)?)\s+[A-Za-z0-9+/]{40}",
        "|".join(word.encode().hex() for word in _WORDS),
        r"(?:[2-7][0-9a-f]){20}",
    ),
)
