"""Secrets that only their surroundings give away: `password: ...`, `Bearer ...`, `://user:...@host`.

Each detector starts from a literal in the lower-cased text, so that its pattern is matched at a few
places and never searched. Values pass `randomness.py`, which tells `password=get_password()` and
`token: str` from a secret.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from privacy.randomness import (
    is_base64_login,
    is_mixed_case,
    is_password,
    is_plain_password,
    is_random,
    is_stand_in,
    is_token,
    is_uuid,
)
from privacy.rules import Detector, Span, View, near, on
from privacy.words import WEAK_PASSWORDS

_PASSWORD_NAME = re.compile(
    r"(?i)passw(?:or)?d|passphrase|passwd|(?<![a-z])p(?:ass|wd)(?![a-z])|_pass$|pwd$|(?-i:[a-z]P(?:ass|wd)$)"
)
_TOKEN_NAME = re.compile(
    r"(?i)secret|token|credential|(?:api|access|private|signing|encryption|auth|account|master|license|"
    r"service|client|storage|admin|root|session|webhook|jwt|hmac|app|deploy|consumer)[_\-.]?key|apikey|"
    r"authorization|(?<![a-z])auth$|_key(?:_base|_v?\d+|_[a-z]{2,4})?$|_pat$|connection[_-]?string"
)
_OTHER_NAME = re.compile(
    r"(?i)public|(?:hash|count|type|name|length|len|size|limit|id|ids|url|uri|path|file|dir|expires?|expiry|ttl|"
    r"field|label|regex|pattern|prefix|suffix|policy|index|idx|usage|kind|format|endpoint|header|version|"
    r"tokens|method|mode|class|error|message|text|prompt|hint|help|title|budget)$"
)
# Names under which a word or a number is a secret too.
_SETS = re.compile(
    r"(?i)passw(?:or)?d$|passwd$|passphrase$|(?<![a-z])p(?:ass|wd)$|pwd$|(?-i:[a-z]Pass$)|secret$|api_?key$|auth_?token$"
)
_NAME_CHARS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.")
_KEYWORDS = (b"pass", b"pwd", b"secret", b"token", b"key", b"credential", b"auth", b"_pat", b"connection")
_ASSIGN = re.compile(
    r"(?P<tail>[\w\-]{0,40})"
    r"(?P<close>\\*[\"'`]?\)?\]?)"
    r"(?P<sep>\s{0,4}(?::\s{0,3}[A-Za-z][\w.\[\]| ]{0,30}=|=>|:=|={1,3}|:|,(?=\s*\\*[\"']))"
    r"(?:[ \t]{0,4}(?![ \t\r\n])|\s{0,4}(?=\\*[\"']))"
    r"|\s(?:is|was)[: ]\s{0,2}|\s{1,4}\|\s{1,4}|>(?=[^<>\n]{4,200}</)|[ \t]{1,40}(?:--body[ =])?"
    r"|[ \t](?:to|as)[ \t]{1,2}(?=\\*[\"'`]))"
    r"(?P<scheme>(?:(?i:bearer|basic|token|apikey|bot|ssws|key)\s+)?)"
    r"(?:[frbuFRBU]{0,2}(?P<quote>\\*[\"'`])(?P<quoted>(?:\\.|[^\n\\]){4,1024}?)(?P=quote)"
    r"|(?P<bare>[^\s\"'`,;<>(){}\[\]|\\&]{6,1024}))"
)
_IDENTIFIER = re.compile(r"[a-z]+\d?(?:_[a-z]*\d?)+|[A-Z]+\d?(?:_[A-Z]*\d?)+")
_KEY_ADJECTIVE = re.compile(
    r"(?i)(api|access|secret|auth|private|license|account|service|encryption|"
    r"signing|app|application|admin|master|client|storage|deploy|webhook)[ _-]$"
)
_ENV_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_NAMED_VALUE = re.compile(
    r"(?:name|key):\s{1,4}[\"']?(?P<name>[\w.-]{3,60})[\"']?\s{0,3}\n\s{0,40}value:\s{1,4}[\"']?(?P<v>[^\s\"']{6,512})"
)
_ENV_LINE = re.compile(r"=(?P<v>[^\s\"'`\\]{6,512})(?=\\n|\\r|\s|$)")
_BEARER = re.compile(r"(?i)bearer(?:\s|%20|\+){1,3}(?P<v>[A-Za-z0-9._~+/=-]{16,4096})")
_BASIC = re.compile(r"(?i)basic\s{1,3}(?P<v>[A-Za-z0-9+/]{8,512}={0,2})(?![\w+/=])")
_URL = re.compile(r"://[^\s/:@\"'<>?#]{0,128}:(?P<v>[^\s@\"'<>]{3,256})@(?=[\w\[])")
_URL_USER = re.compile(r"://(?P<v>[A-Za-z0-9_-]{20,256})(?::[^\s/@]{0,64})?@[\w.-]")
_SPOKEN = re.compile(
    r"(?i)(?:s|_[a-z_]{1,20})?\b"
    r"(?![\"'` ]{0,3}[=:]|[^\n]{0,40}(?:sha\d|hash|digest|checksum|commit|fingerprint|etag|\bids?\b|uuid))"
    r"[ :\"'`|*]{1,4}(?:[a-z][a-z'-]{0,14}[ :=]{1,3}){0,4}[\"'`(]{0,2}"
    r"(?P<v>(?<![\w/+.-])[A-Za-z0-9_+/-]{16,512}={0,2})"
)
_SPOKEN_WORDS = (b"password", b"passphrase", b"token", b"secret", b"key")
_PPK = re.compile(r"(?i)private-lines: \d{1,3}(?P<v>(?:(?:\\r|\\n|\s)+[A-Za-z0-9+/=]{16,64})+)")
_COOKIE = re.compile(r"(?i)cookie\\*[\"']?\s{0,3}[:=,]\s{0,3}\\*[\"']?(?P<v>[^\"'\r\n\\]{8,4096})")
_COOKIE_VALUE = re.compile(r"=(?P<v>[^;\s,\"'\\]{16,})")
_PEM = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    r"(?P<body>[\s\S]{40,16000}?)-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
)
_PEM_CUT = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?:\s|\\+[nr]|[\"'+→|\d])*[A-Za-z0-9+/=]{32,})+"
)
_AWS_PAIR = re.compile(r"(?<![\w/+])(?P<v>[A-Za-z0-9/+]{40})(?![\w/+=])")


def is_secret_name(name: str) -> bool:
    """The name of a variable, key or flag that says its value is secret."""
    return bool(_kind_of(name))


def secret_kind(name: str, value: str, plain: bool = False) -> str | None:
    """PASSWORD or SECRET where a value under this name is one; None where it is ordinary text. `plain`:
    the whole value is set here, so that it may also be a word, a number or a phrase."""
    kind = _kind_of(name)
    whole = plain and (kind == "PASSWORD" or value.isdigit()) and bool(_SETS.search(name))
    if kind and whole and is_plain_password(value) and not _same_word(name, value):
        return kind
    if kind == "PASSWORD" and is_password(value):
        return kind
    if kind and is_token(value):
        return kind
    if name.lower().endswith("auth") and len(value) >= 12 and is_base64_login(value):
        return "BASIC_AUTH"
    return None


@lru_cache(maxsize=8192)
def _kind_of(name: str) -> str | None:
    if _OTHER_NAME.search(name):
        return None
    if _PASSWORD_NAME.search(name):
        return "PASSWORD"
    return "SECRET" if _TOKEN_NAME.search(name) else None


def _same_word(name: str, value: str) -> bool:
    return _letters(value) in _letters(name) or _letters(name) in _letters(value)


def _letters(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum())


def find_assignments(view: View) -> Iterator[Span]:
    """`NAME=value`, `"name": "value"`, `--name value`, `name is value`, where name says secret."""
    seen = -1
    for keyword in _KEYWORDS:
        for at in view.positions(keyword):
            match = _ASSIGN.match(view.text, at + len(keyword))
            if match is None:
                continue
            span = _assigned(view.text, at, match)
            if span is not None and span.start != seen:
                seen = span.start
                yield span


def _assigned(text: str, at: int, match: re.Match[str]) -> Span | None:
    start = at
    while start > 0 and at - start < 48 and text[start - 1] in _NAME_CHARS:
        start -= 1
    if text[start - 1 : start] == "\\" and text[start] in "nrt":
        start += 1  # the letter belongs to an escaped newline or tab
    name = text[start : match.end("tail")]
    if name.lower() == "key" and (adjective := _KEY_ADJECTIVE.search(text, max(0, start - 12), start)):
        name = f"{adjective[1]}_key"
    if match["sep"].strip() in ("to", "as") and match["close"] not in ("'", '"', "`"):
        return None
    named = name.startswith("--") or _ENV_NAME.fullmatch(name)
    if match["sep"].isspace() and not named and (name != "PASSWORD" or match["quoted"] is None):
        return None
    if match["sep"].lstrip().startswith(",") and text[start - 2 : start] not in ('("', "('", '["', "['"):
        return None
    if match["quoted"] is not None:
        kind = secret_kind(name.lstrip("-"), match["quoted"], "," not in match["sep"])
        return Span(*match.span("quoted"), kind) if kind else None
    return _bare_value(text, start, name, match)


def _bare_value(text: str, start: int, name: str, match: re.Match[str]) -> Span | None:
    """An unquoted value: the whole word on an environment line, else only what no code could be."""
    before = text[start - 1] if start else "\n"
    opens = before in " \n\t;&'\"`" or text[max(0, start - 2) : start] in (r"\n", r"\r", r"\t")
    env = match["sep"] == "=" and name.isupper() and opens
    first, last = match.span("bare")
    if env and (whole := _ENV_LINE.match(text, first - 1)):
        kind = secret_kind(name, whole["v"], True)
        return Span(*whole.span("v"), kind) if kind else None
    value = match["bare"].rstrip(".:")
    last = first + len(value)
    if text[last : last + 1] in ("(", "[", "{") or (text[last : last + 1] == "<" and match["sep"] != ">"):
        return None
    kind = secret_kind(name.lstrip("-"), value)
    if kind is None or _IDENTIFIER.fullmatch(value):
        return None
    line = text[text.rfind("\n", 0, start) + 1 : start].strip(" \t-\"'")
    alone = not line and text[last : last + 1] in ("", "\n", "\r")
    spoken = match["sep"].strip(" :") in ("is", "was", "|", ">")
    flag = name.startswith("--")
    if is_token(value) or (kind == "PASSWORD" and (alone or spoken or flag) and not value.isidentifier()):
        return Span(first, last, kind)
    if kind == "PASSWORD" and (spoken or flag or (alone and match["sep"].startswith(":"))):
        return Span(first, last, kind)
    if (
        kind == "PASSWORD"
        and match["sep"] == "="
        and (before in "?&;" or text[last : last + 1] in (";", "&"))
    ):
        return Span(first, last, kind)
    header = before in "'\"" and text[last : last + 1] == before
    if kind == "PASSWORD" and match["sep"].startswith(":") and (header or is_mixed_case(value)):
        return Span(first, last, kind)
    return Span(first, last, kind) if kind == "BASIC_AUTH" else None


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
        and (len(value) >= 32 or is_mixed_case(value) or sum(map(str.isdigit, value)) >= 4)
    )


def _always(_: str) -> bool:
    return True


def find_spoken(view: View) -> Iterator[Span]:
    """A machine's value a few words after `password`, `API key` and the like."""
    text = view.text
    for word in _SPOKEN_WORDS:
        for at in view.positions(word):
            if word == b"key" and not _KEY_ADJECTIVE.search(text, max(0, at - 12), at):
                continue
            match = _SPOKEN.match(text, at + len(word)) if text[at - 1 : at] != "/" else None
            if match and _is_spoken(match["v"]):
                yield Span(*match.span("v"), "SECRET")


def find_private_keys(view: View) -> Iterator[Span]:
    """PEM and OpenSSH private keys, whole or cut off, with real or escaped newlines."""
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


def find_cookies(view: View) -> Iterator[Span]:
    """Values of `Cookie` and `Set-Cookie` headers that a machine made."""
    for at in view.positions(b"cookie"):
        header = _COOKIE.match(view.text, at)
        if header is None:
            continue
        for value in _COOKIE_VALUE.finditer(view.text, *header.span("v")):
            if is_random(value["v"]) or (len(value["v"]) >= 20 and sum(map(str.isdigit, value["v"])) >= 3):
                yield Span(*value.span("v"), "COOKIE")


def find_named_values(view: View) -> Iterator[Span]:
    """`name: DB_PASSWORD` with `value: ...` in the line below, as container manifests have it."""
    for at in view.positions(b"value:"):
        match = _NAMED_VALUE.search(view.text, max(0, at - 120), at + 520)
        if match and (kind := secret_kind(match["name"], match["v"])):
            yield Span(*match.span("v"), kind)


def find_aws_secrets(view: View, keys: list[Span]) -> Iterator[Span]:
    """The forty characters of an AWS secret key, which stand near its key id and have no prefix."""
    for key in keys:
        low, high = max(0, key.start - 200), key.end + 200
        for match in _AWS_PAIR.finditer(view.text, low, high):
            if is_mixed_case(match["v"]):
                yield Span(*match.span("v"), "AWS_SECRET")


def find_paired_keys(view: View) -> Iterator[Span]:
    """Keys of an id in hex, a dot and a mixed part."""
    for at in view.positions(_HEX_DOT, "hexes"):
        match = _PAIRED.match(view.text, at)
        if match and is_mixed_case(match[0][33:]):
            yield Span(*match.span(), "API_KEY")


_HEX_DOT = b"h" * 32 + b"."
_PAIRED = re.compile(r"(?<![A-Za-z0-9])[0-9a-f]{32}\.[A-Za-z0-9]{16}(?![A-Za-z0-9])")
DETECTORS: tuple[Detector, ...] = (
    on(find_private_keys, b"-----begin"),
    on(find_assignments, *_KEYWORDS),
    on(find_cookies, b"cookie"),
    on(find_named_values, b"value:"),
    near(b"bearer", _BEARER, "BEARER_TOKEN", _is_credential),
    near(b"basic", _BASIC, "BASIC_AUTH", is_base64_login),
    near(b"://", _URL, "URL_PASSWORD", _is_url_password),
    near(b"://", _URL_USER, "URL_TOKEN", is_random),
    near(b"private-lines", _PPK, "PRIVATE_KEY", _always),
    on(find_spoken, *_SPOKEN_WORDS),
    on(find_paired_keys, _HEX_DOT, plane="hexes"),
)
