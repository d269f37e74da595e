"""Values that are set under a secret's name: `NAME=value`, `"name": "value"`, `--name value`."""

import re
from collections.abc import Iterator

from tracemill.privacy.core.entropy import is_mixed, is_mixed_case, is_random, is_token
from tracemill.privacy.core.rule import Span, View, compile_rule_pattern
from tracemill.privacy.core.secret_names import KEY_ADJECTIVE, KEY_ADJECTIVES, may_be_secret, secret_name_kind

_NAME_CHARS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.")
# What the word `key` must have before it.
_BEFORE_KEY = rf"(?:[_.\-]|(?:{KEY_ADJECTIVES})[_. -]?)"
# Where a name can begin to be a secret's: a literal, what must be there, and how far it looks back.
_STARTS = tuple(
    (literal, compile_rule_pattern(f"(?i){pattern}"), back)
    for literal, pattern, back in (
        (
            b"pass",
            r"(?!(?-i:(?<![A-WYZa-z0-9_])PASS: ))pass(?:w|phrase|code|(?![a-z]))",
            0,
        ),  # no test that passed
        (b"pwd", r"pwd(?![a-z])", 0),
        (b"psk", r"psk(?![a-z])", 0),
        (b"kennwort", "", 0),
        (b"secret", "", 0),
        (b"token", "", 0),
        (b"credential", "", 0),
        (b"key", f"{_BEFORE_KEY}$", 16),
        (b"auth", r"auth(?:orization|(?![\w\-]))", 0),
        (b"_pat", r"_pat(?![\w\-])", 0),
        (b"connection", r"connection[_-]?string", 0),
    )
)
_ASSIGN = compile_rule_pattern(
    r"(?P<tail>[\w\-]{0,40})"
    r"(?P<close>\\*[\"'`]?\)?\]?)"
    r"(?P<sep>\s{0,4}(?::\s{0,3}[A-Za-z][\w.\[\]| ]{0,30}=|=>|:=|={1,3}|:|,(?=\s*\\*[\"']))"
    r"(?:[ \t]{0,4}(?![ \t\r\n])|\s{0,4}(?=\\*[\"']))"
    r"|\s(?:is|was)[: ]\s{0,2}|\s{1,4}\|\s{1,4}|>(?=[^<>\n]{4,200}</)|[ \t]{1,40}(?:--body[ =])?"
    r"|[ \t](?:to|as)[ \t]{1,2}(?=\\*[\"'`]))"
    r"(?P<scheme>(?:(?i:bearer|basic|token|apikey|bot|ssws|key)\s+)?)"
    r"(?:[frbuFRBU]{0,2}(?P<quote>\\*[\"'`])(?P<quoted>(?:(?!(?P=quote))(?:\\.|[^\n\\])){4,1024})(?P=quote)"
    r"|(?P<bare>(?![:=])[^\s\"'`,;<>(){}\[\]|\\&]{6,1024}))"
)
_IDENTIFIER = compile_rule_pattern(r"[a-z]+\d?(?:_[a-z]*\d?)+|[A-Z]+\d?(?:_[A-Z]*\d?)+")
_MINGLED = compile_rule_pattern(r"(?i)[a-z]\d{1,3}[a-z]{2}")  # which the names of variables hardly are
_HEADER_NAME = compile_rule_pattern(r"[a-z]+(?:-[a-z0-9]+){1,5}")
_LONG_WORD = compile_rule_pattern(r"[a-z]{15,32}")  # no single word of a language, and hardly a variable
_ENV_NAME = compile_rule_pattern(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
# How a line of a diff or of a search's results begins; and options that set a variable.
_LINE_MARK = compile_rule_pattern(r"(?:^|\n)(?:[+-]|[^\s:]{1,120}[:-]\d{1,6}[:-]|\d{1,6}:)$")
_GIVEN = compile_rule_pattern(
    r"(?:--(?:set(?:-string)?|from-literal|build-arg|var|env|params?|parameters?)|[ \t]-(?:var|e|D|P))"
    r"[ =]?[\"']?(?:[\w.-]+=[^\s,]*,)*[\w.]*$"
)
_MADE_UP = compile_rule_pattern(
    r"(?=[^A-Za-z]*[A-Za-z])(?=\D*\d)(?=\w*[^\w])[^./$%]+"
)  # and no name, path or reference
_IMAGE_LINE = compile_rule_pattern(r"(?<![^\n])[ \t]*ENV[ \t]+$")  # of a Dockerfile
_ENV_LINE = compile_rule_pattern(r"=(?P<v>[^\s\"'`\\]{6,512})(?=\\n|\\r|\s|$)")


def find_assignment_starts(view: View) -> Iterator[tuple[int, int]]:
    """Where words stand with which the name of a secret can begin or go on, and where these words end."""
    text = view.text
    for literal, start, back in _STARTS:
        for at in view.near(literal):
            if start.search(text, max(0, at - back), at) if back else start.match(text, at):
                yield at, at + len(literal)


def name_around(text: str, at: int, end: int) -> tuple[int, str]:
    """Where the name begins that holds the word at `at` and ends at `end`, and the name, "" where none is
    secret under it."""
    start = at
    while start > 0 and at - start < 48 and text[start - 1] in _NAME_CHARS:
        start -= 1
    if text[start - 1 : start] == "\\" and text[start] in "nrt":
        start += 1  # the letter belongs to an escaped newline or tab
    name = text[start:end]
    if name.lower() == "key" and (adjective := KEY_ADJECTIVE.search(text, max(0, start - 12), start)):
        name = f"{adjective[1]}_key"
    return start, name if may_be_secret(name) else ""


# How a value goes on in the next line: behind a backslash, indented, in quotes of its own.
_CONTINUED = compile_rule_pattern(
    r"(?:\\?\r?\n[ \t]*"
    r"|\\*[\"'`][ \t]*(?:[+.&\\]|\.\.)?[ \t]*\r?\n[ \t]*(?:[+.&][ \t]*)?[bfru]{0,2}\\*[\"'`])"
    r"(?P<v>[A-Za-z0-9+/_-]{8,1024}={0,2})(?=\\?\r?\n|\\*[\"'`]|$)"
)
_WHOLE_PIECE = compile_rule_pattern(r"[A-Za-z0-9+/_-]{24,1024}={0,2}\\?")
_MOST_PIECES = 200


def find_continued(text: str, first: Span) -> Iterator[Span]:
    """Give the further pieces of a long value that is wrapped over lines."""
    if not _WHOLE_PIECE.fullmatch(text, first.start, first.end):
        return
    end = first.end
    for _ in range(_MOST_PIECES):
        piece = _CONTINUED.match(text, end)
        if piece is None or not (is_random(piece["v"]) or (len(piece["v"]) < 16 and is_mixed(piece["v"]))):
            return
        yield Span(*piece.span("v"), first.kind)
        end = piece.end("v")


def find_assignments(view: View) -> Iterator[Span]:
    """`NAME=value`, `"name": "value"`, `--name value`, `name is value`, where name says secret."""
    seen = -1
    for at, end in find_assignment_starts(view):
        match = _ASSIGN.match(view.text, end)
        span = _assigned(view.text, at, match) if match else None
        if span is not None and span.start != seen:
            seen = span.start
            yield span
            yield from find_continued(view.text, span)


def _assigned(text: str, at: int, match: re.Match[str]) -> Span | None:
    start, name = name_around(text, at, match.end("tail"))
    if not name:
        return None
    if match["sep"].strip() in ("to", "as") and match["close"] not in ("'", '"', "`"):
        return None
    named = name.startswith("--") or _ENV_NAME.fullmatch(name)
    if match["sep"].isspace() and not named:
        image = _IMAGE_LINE.search(text, max(0, start - 12), start)
        if name != "PASSWORD" or (match["quoted"] is None and not image):
            return None
    flag = name.startswith("--")
    if (
        match["sep"].lstrip().startswith(",")
        and not flag
        and text[start - 2 : start] not in ('("', "('", '["', "['")
    ):
        return None
    if match["quoted"] is not None:
        if "," in match["sep"] and _HEADER_NAME.fullmatch(match["quoted"]):
            return None
        kind = secret_name_kind(name.lstrip("-"), match["quoted"], "," not in match["sep"])
        return Span(*match.span("quoted"), kind) if kind else None
    return _bare_value(text, start, name, match)


def _bare_value(text: str, start: int, name: str, match: re.Match[str]) -> Span | None:
    """An unquoted value: the whole word on an environment line, else only what no code could be."""
    first, last = match.span("bare")
    if _is_of_environment(text, start, name, match["sep"]) and (whole := _ENV_LINE.match(text, first - 1)):
        kind = secret_name_kind(name, whole["v"], True)
        return Span(*whole.span("v"), kind) if kind else None
    value = match["bare"].rstrip(".:")
    last = first + len(value)
    behind = text[last : last + 1]
    if behind in ("(", "[", "{") or (behind == "<" and match["sep"] != ">"):
        return None
    kind = secret_name_kind(name.lstrip("-"), value)
    if kind is None and _LONG_WORD.fullmatch(value) and behind in ("", "\n", "\r", "\\"):
        return Span(first, last, "PASSWORD") if secret_name_kind(name, value, True) == "PASSWORD" else None
    if kind is None or _IDENTIFIER.fullmatch(value):
        return None
    if is_token(value) or kind == "BASIC_AUTH":
        return Span(first, last, kind)
    told = kind == "PASSWORD" and _is_password(text, start, name, match["sep"], Span(first, last, kind))
    return Span(first, last, kind) if told else None


def _is_of_environment(text: str, start: int, name: str, sep: str) -> bool:
    """Whether a name that begins at `start` is a variable that a line of an environment sets."""
    if sep != "=" or not name.isupper():
        return False
    before = text[start - 1] if start else "\n"
    if before in " \n\t;&'\"`" or text[max(0, start - 2) : start] in (r"\n", r"\r", r"\t"):
        return True
    return before in "+-:" and bool(_LINE_MARK.search(text, max(0, start - 160), start))


def _is_password(text: str, start: int, name: str, sep: str, span: Span) -> bool:
    """Whether a value that could be a password is one there, behind a name that begins at `start`."""
    value = text[span.start : span.end]
    before, behind = text[start - 1] if start else "\n", text[span.end : span.end + 1]
    line = text[text.rfind("\n", 0, start) + 1 : start].strip(" \t-\"'").removeprefix("ENV")
    alone = not line and behind in ("", "\n", "\r")
    told = sep.strip(" :") in ("is", "was", "|", ">") or name.startswith("--")
    if told or (alone and (sep.startswith(":") or not value.isidentifier() or _MINGLED.search(value))):
        return True
    if sep != "=":
        header = before in "'\"" and behind == before
        return sep.startswith(":") and (header or is_mixed_case(value))
    if (alone and value[-2:].isdigit()) or before in "?&;" or behind in (";", "&"):
        return True
    if _GIVEN.search(text, max(0, start - 160), start):
        return not value.isidentifier()
    return before in " \t" and behind in ("", " ", "\n", "\r") and bool(_MADE_UP.fullmatch(value))


# The probes. A name that says password takes a word; any other ten characters or more with a digit among
# them, or twenty, or four words apart by hyphens, or a number of six digits. What is quoted may hold other
# quotes, and its own behind a backslash.
_BARE = r"[^\s\"'`,;<>(){}\[\]|\\&]"
_WORD = rf"{_BARE[:-1]}:=]{_BARE}{{5}}"
_TOKEN = (
    rf"(?:{_BARE}{{0,5}}[0-9]{_BARE}{{4}}|{_BARE}{{6,}}[0-9]|{_BARE}{{20}}|(?-i:[a-z]{{2,16}}-){{3}}[a-z])"
)


def _quoted(value: str, lead: str) -> str:
    """A probe for a value in quotes of any kind, where `value` is the one for bare values: it, or a backslash
    behind `lead` characters, behind which a quote does not end the value."""

    def among(excluded: str) -> str:
        return value.replace(_BARE, rf"[^\n{excluded}]")

    own = "|".join(rf"{quote}(?:[^\n{quote}\\]{lead}\\|{among(quote)})" for quote in "\"'`")
    within = among(chr(92) * 2)
    escaped = "|".join(rf"\\{quote}(?:[^\n\\]{lead}\\[^{quote}]|{within})" for quote in "\"'`")
    return rf"(?:{own}|{escaped}|\\\\+[\"'`]{among('')})"


_WORD_QUOTED = _quoted(f"{_BARE}{{6}}", "{0,5}")
_TOKEN_QUOTED = _quoted(_TOKEN, "*")
_TOKEN_IN_ENVIRONMENT = _TOKEN.replace(_BARE, r"[^\s\"'`\\]")
_LOGIN = r"(?-i:[a-z]*[A-Z0-9+/=])[A-Za-z0-9+/=]{3}"
_SCHEME = r"(?:(?:bearer|basic|token|apikey|bot|ssws|key)\s+)?"
_CLOSE = r"\\*[\"'`]?\)?\]?"
_JOINT = r"\s*(?::\s*[A-Za-z][\w.\[\]| ]*=|=>|:=|=+|:"
_SAID = r"\s(?:is|was)[: ]\s*|\s+\|\s+"


def _set_under(name: str, quoted: str, bare: str) -> str:
    """A probe for a quoted or a bare value under a name."""
    return (
        rf"(?i){name}{_CLOSE}(?:(?:{_JOINT}|,)\s*|{_SAID}|[ \t](?:to|as)[ \t]+){_SCHEME}[fbru]{{0,2}}{quoted}"
        rf"|(?:{_JOINT})[ \t]*|{_SAID}){_SCHEME}{bare})"
    )


def _apart(passwords: str, others: str) -> Iterator[str]:
    """Probes for names in tags, flags and the environment."""
    either, capitals = f"(?:{passwords}|{others})", "[A-Z0-9_]*"
    value = rf"[ \t]+(?:--body[ =])?{_SCHEME}"
    yield rf"(?i){either}[\w-]*{_CLOSE}(?:[ \t]+--body[ =][^\n]{{6}}|>[^<>\n]{{6}}[^<>\n]*</)"
    token = rf"(?:[fbru]{{0,2}}{_TOKEN_QUOTED}|{_TOKEN})"
    yield (
        rf"(?i)--[\w.-]*(?:(?:{passwords})[\w.-]*{_CLOSE}{value}[^\n]{{6}}"
        rf"|(?:{others})[\w-]*{_CLOSE}{value}{token})"
    )
    yield rf"(?:_{either}{capitals}|_PAT|{either}[A-Z0-9]*_{capitals}){_CLOSE}(?i:{value})[^\n]{{6}}"
    yield rf"PASSWORD{_CLOSE}(?i:{value})[fbruFBRU]{{0,2}}\\*[\"'`]"
    yield rf"ENV[ \t]+PASSWORD[ \t]+{_WORD}"
    named = rf"[A-Z0-9_-]*{_CLOSE}="
    yield rf"(?:{passwords}){named}{_WORD}|(?:{others}){named}{_TOKEN_IN_ENVIRONMENT}"


PROBES = (
    _set_under(
        r"(?:pass(?:(?:w|phrase|code|[\d_.-])[\w.-]*)?|(?:pwd|psk)(?:[\d_.-][\w.-]*)?|kennwort[\w.-]*)",
        _WORD_QUOTED,
        _WORD,
    ),
    _set_under(
        r"(?:(?:secret|token|credential|authorization|connection[_-]?string|(?:[a-z_.-]|[a-z] )key)[\w-]*"
        r"|auth|_pat)",
        _TOKEN_QUOTED,
        _TOKEN,
    ),
    _set_under("auth", r"\\*[\"'`]" + _LOGIN, _LOGIN),
    *_apart("PASS|PWD|PSK|KENNWORT", "SECRET|TOKEN|CREDENTIAL|KEY|AUTH|_PAT|CONNECTION"),
)
