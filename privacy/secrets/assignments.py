# ruff: noqa: E501 (patterns)
"""Detect values set under a secret's name: `NAME=value`, `"name": "value"`, `--name value`."""

import re
import string
from collections.abc import Iterator

from tracemill.privacy.core.chosen_passwords import is_chosen_password, is_own_word
from tracemill.privacy.core.entropy import is_mixed, is_mixed_case, is_random, is_token
from tracemill.privacy.core.letter_pairs import is_drawn_letters
from tracemill.privacy.core.rule import Span, TextView, build_rule_pattern, build_words_pattern
from tracemill.privacy.core.secret_names import (
    KEY_ADJECTIVE,
    KEY_ADJECTIVES,
    bare_value_kind,
    is_chosen_under,
    may_be_secret,
    names_password,
    secret_name_kind,
)

_NAME_CHARS = string.ascii_letters + string.digits + "_-."
# What must stand before the word `key`.
_BEFORE_KEY = rf"(?:[_.\-]|(?:{KEY_ADJECTIVES})[_. -]?)"
# Where a secret's name can begin: a literal, a pattern, and how far the pattern looks back.
_STARTS = {
    literal: (build_rule_pattern(f"(?i){pattern}"), back)
    for literal, pattern, back in (
        # no test that passed
        (b"pass", r"(?!(?-i:(?<![A-WYZa-z0-9_])PASS: ))pass(?:w|phrase|code|(?![a-z]))", 0),
        (b"pwd", r"pwd(?![a-z])", 0),
        (b"psk", r"psk(?![a-z])", 0),
        (b"pw", r"pw(?=[\"'`]?[ \t]*[=:])(?:(?<![a-oq-z]pw)|(?-i:(?<=[a-zA-Z]PW)))", 0),
        (b"kennwort", "", 0),
        *((each, "", 0) for each in (b"senha", b"haslo", b"heslo", b"contrasen", b"wachtwoord", b"parola")),
        *((each, "", 0) for each in (b"salasana", b"adgangskode", b"losenord", b"de_passe", b"depasse")),
        (b"secret", "", 0),
        (b"token", "", 0),
        (b"credential", "", 0),
        (b"key", f"{_BEFORE_KEY}$", 16),
        *(
            (each.encode(), r"(?=[\w.-]*\\*[\"'`]?\]?[ \t]*[=:])", 0)
            for each in [
                "chiave",
                "chave",
                "llave",
                "klucz",
                "schlussel",
                "schluessel",
                "sleutel",
                "nyckel",
                "anahtar",
            ]
        ),
        (b"auth", r"auth(?:orization|(?![\w\-]))", 0),
        (b"_pat", r"_pat(?![\w\-])", 0),
        (b"connection", r"connection[_-]?string", 0),
        (b"_cookie", r"_cookie(?![\w-])", 0),
        (b"srf", r"srf(?![\w-])", 0),
    )
}
_START = re.compile(build_words_pattern(_STARTS))
# The key of some service, with a literal that is set whole: `KEY = "..."`, `const weatherKey = '...'`.
_ANY_KEY = build_rule_pattern(
    r"(?:(?<=[a-z])Key|(?<![\w.-])KEY)[\"'`]?[ \t]{0,4}(?::[ \t]{0,2}[A-Za-z]{1,12}[ \t]{0,2}=|[:=])[ \t]{0,4}[\"'`][A-Za-z0-9+/_-]{16,128}={0,2}[\"'`]"
)
_ASSIGN = build_rule_pattern(
    r"(?P<tail>[\w\-]{0,40})"
    r"(?P<close>\\*[\"'`]?\)?\]?)"
    r"(?P<sep>\s{0,4}[ \t]{0,24}(?::\s{0,3}[A-Za-z][\w.\[\]| ]{0,30}=|=>|:=|={1,3}|!={1,2}|:|,(?=\s*\\*[\"']))"
    r"(?:[ \t]{0,4}(?![ \t\r\n])|\s{0,4}(?=\\*[\"']))"
    r"|\s(?:is|was)[: ]\s{0,2}|\s{1,4}\|\s{1,4}|>(?=[^<>\n]{4,200}</)|[ \t]{1,40}(?:--body[ =])?"
    r"|[ \t](?:to|as)[ \t]{1,2}(?=\\*[\"'`]))"
    r"(?P<scheme>(?:(?i:bearer|basic|token|apikey|bot|ssws|key)\s+)?)"
    r"(?:(?:0x[0-9a-f]{4,16} )?[frbuFRBUN@]{0,2}(?P<quote>\\*(?:\"{3}|'{3}|[\"'`]))(?P<quoted>(?:(?!(?P=quote))(?:\\.|[^\n\\])){4,1024})(?P=quote)"
    r"|(?P<bare>(?![:=])[^\s\"'`,;<>(){}\[\]|\\&]{6,1024}))"
)
_IDENTIFIER = build_rule_pattern(r"[a-z]+\d?(?:_[a-z]*\d?)+|[A-Z]+\d?(?:_[A-Z]*\d?)+")
_MINGLED = build_rule_pattern(r"(?i)[a-z]\d{1,3}[a-z]{2}")  # names of variables hardly match
_HEADER_NAME = build_rule_pattern(r"[a-z]+(?:-[a-z0-9]+){1,5}")
_OPENED = build_rule_pattern(r"[(\[]\s{0,3}[\"']$")  # a name as the first argument
_LONG_WORD = build_rule_pattern(r"[a-z]{15,32}")  # neither a word nor, mostly, a variable
_GROOVY_NAME = build_rule_pattern(r"[a-z]{2,16}Pass(?:word|phrase)")  # `storePassword 'x'` in Gradle
_FLAG = re.compile(r"--|-(?=\w{4})")
_ENV_NAME = build_rule_pattern(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
# Beginnings of lines of a diff or of search results, and options that set a variable.
_LINE_MARK = build_rule_pattern(r"(?:^|\n)(?:[+-]|[^\s:]{1,120}[:-]\d{1,6}[:-]|\d{1,6}:)$")
_GIVEN = build_rule_pattern(
    r"(?:--(?:set(?:-string)?|from-literal|build-arg|var|env|params?|parameters?)|[ \t]-(?:var|e|D|P))"
    r"[ =]?[\"']?(?:[\w.-]+=[^\s,]*,)*[\w.]*$"
)
_MADE_UP = build_rule_pattern(
    r"(?=[^A-Za-z]*[A-Za-z])(?=\D*\d)(?=\w*[^\w])[^./$%]+"
)  # and no name, path or reference
_FILTER = build_rule_pattern(
    r"base(?:32|64)|(?:md5|sha\d{1,3}|b2)sum|sha\d{1,3}|python[\d.]*|b64\w*|iconv|openssl|xxd"
)  # programs that a pipe runs
_SET_LINE = build_rule_pattern(r"(?<![^\n])[ \t]*(?:SetEnv|setenv|fastcgi_param|uwsgi_param)[ \t]+$")
_IMAGE_LINE = build_rule_pattern(r"(?<![^\n])[ \t]*ENV[ \t]+$")  # of a Dockerfile
_ENV_LINE = build_rule_pattern(r"[= \t](?P<v>[^\s\"'`\\]{6,512})(?=\\n|\\r|\s|$)")


def find_assignment_starts(view: TextView) -> list[tuple[int, int]]:
    """Return start and end of words with which a secret's name can begin or go on."""
    return view.once(_list_starts)


def _list_starts(view: TextView) -> list[tuple[int, int]]:
    text = view.text
    found: list[tuple[int, int]] = []
    for word in view.near(_START):
        start, back = _STARTS[word[0]]
        at = word.start()
        if back:
            begins = start.search(text, max(0, at - back), at) or _ANY_KEY.match(text, at)
        else:
            begins = start.match(text, at)
        if begins:
            found.append(word.span())
    return found


def name_around(text: str, at: int, end: int) -> tuple[int, str]:
    """Return the start of the name around the word at `at`, and the name up to `end`.

    The name is "" where no value is secret under it.
    """
    before = text[max(0, at - 48) : at]
    start = at - len(before) + len(before.rstrip(_NAME_CHARS))
    if text[start - 1 : start] == "\\" and text[start] in "nrt":
        start += 1  # the letter belongs to an escaped newline or tab
    name = text[start:end]
    if name.lower() == "key" and (adjective := KEY_ADJECTIVE.search(text, max(0, start - 12), start)):
        name = f"{adjective[1]}_key"
    return start, name if may_be_secret(name) else ""


# A value continued in the next line: after a backslash, indented, or in quotes of its own.
_CONTINUED = build_rule_pattern(
    r"(?:\\?\r?\n[ \t]*"
    r"|\\*[\"'`][ \t]*(?:[+.&\\]|\.\.)?[ \t]*\r?\n[ \t]*(?:[+.&][ \t]*)?[bfru]{0,2}\\*[\"'`]"
    r"|\\*[\"'`][ \t]*[+.&][ \t]*[bfru]{0,2}\\*[\"'`])"
    r"(?P<v>[A-Za-z0-9+/_-]{8,1024}={0,2})(?=\\?\r?\n|\\*[\"'`]|$)"
)
_WHOLE_PIECE = build_rule_pattern(r"[A-Za-z0-9+/_-]{24,1024}={0,2}\\?")
_MOST_PIECES = 200


def find_continued(text: str, first: Span) -> Iterator[Span]:
    """Yield the further pieces of a long value that is wrapped over lines."""
    if not _WHOLE_PIECE.fullmatch(text, first.start, first.end):
        return
    end = first.end
    for _ in range(_MOST_PIECES):
        piece = _CONTINUED.match(text, end)
        if piece is None or not (is_random(piece["v"]) or (len(piece["v"]) < 16 and is_mixed(piece["v"]))):
            return
        yield Span(*piece.span("v"), first.kind)
        end = piece.end("v")


def find_assignments(view: TextView) -> Iterator[Span]:
    """Find `NAME=value`, `"name": "value"`, `--name value`, `name is value` under secrets' names."""
    seen = -1
    literals = any(each in view.text for each in ("''", "\\'", "'\"'\"'"))
    for at, end in find_assignment_starts(view):
        span = _of_whole_line(view.text, at, end)
        if span is None and literals:
            span = _of_literal(view.text, at, end)
        if span is None and (match := _ASSIGN.match(view.text, end)):
            span = _assigned(view.text, at, match)
        if span is not None and span.start != seen:
            seen = span.start
            yield span
            yield from find_continued(view.text, span)


# A line that sets one name: in YAML, properties, INI, `.env` files, after `export` or a diff mark.
_LINE_HEAD = build_rule_pattern(
    r"[+-]?[ \t]*(?:-[ \t]{1,4})?(?:(?:export|set|SET|setx|ENV|declare -x)[ \t]{1,4})?[\"']?[\w.-]*"
)
_LINE_REST = build_rule_pattern(
    r"(?P<tail>[\w\-]{0,40})[\"']?(?:[ \t]{0,40}=[ \t]{0,8}|[ \t]{0,8}:[ \t]{1,8})(?P<v>(?![\"'])[^\s][^\n]{6,260}(?=\n|$))"
)
_COMMENT = build_rule_pattern(r"[ \t]+#|[ \t\r]+$")
_SPECIAL = build_rule_pattern(r"[\s\"'`,;<>(){}\[\]|\\&/#]")


def _of_whole_line(text: str, at: int, end: int) -> Span | None:
    """Find an unquoted value that takes the rest of its line and holds special characters."""
    line = _LINE_REST.match(text, end)
    if line is None:
        return None
    head = text.rfind("\n", max(0, at - 120), at) + 1
    if (not head and at > 120) or not _LINE_HEAD.fullmatch(text, head, at):
        return None
    value = line["v"]
    if comment := _COMMENT.search(value):
        value = value[: comment.start()]
    if not _SPECIAL.search(value):
        return None
    _, name = name_around(text, at, line.end("tail"))
    if not name:
        return None
    kind = bare_value_kind(name, value, False)
    if kind is None and bare_value_kind(name, value, True) and _is_among_settings(text, head, line.end()):
        kind = bare_value_kind(name, value, True)
    return Span(line.start("v"), line.start("v") + len(value), kind) if kind else None


_SETTING = build_rule_pattern(
    r"[ \t]*(?:[#;][^\n]*|\[[\w .\"-]+\]|(?:-[ \t]+)?(?:export[ \t]+)?[\"']?[\w.-]+[\"']?(?:[ \t]*=[ \t]*|:(?:[ \t]+|$))[^\n(){}\[\];]*|)"
)


def _is_among_settings(text: str, start: int, end: int) -> bool:
    """Tell whether the lines before and after are settings or missing, and no code."""
    first = start - 1
    before = text[text.rfind("\n", 0, first) + 1 : first] if first > 0 else ""
    last = text.find("\n", end + 1)
    behind = text[end + 1 : last if last >= 0 else len(text)]
    return all(_SETTING.fullmatch(line.rstrip("\r")) is not None for line in (before, behind))


# A quoted value whose grammar closes it in another way: `'it''s'`, `'it'\''s'`, `'C:\'`.
_LITERAL = build_rule_pattern(
    r"(?P<tail>[\w\-]{0,40})[\"'`]?\]?(?P<sep>\s{0,4}(?:=>|:=|=|:)\s{0,4})[rR]?"
    r"'(?P<v>(?:[^'\n]|'\\''|'\"'\"'|''){6,260}?)'(?=[ \t]*(?:[,;)\]}#&|]|\r?\n|$)|[ \t]+(?:&&|\|\||\S+=))"
)


def _of_literal(text: str, at: int, end: int) -> Span | None:
    """Find a value in single quotes that holds such a quote, or ends with a backslash."""
    found = _LITERAL.match(text, end)
    if found is None or not ("'" in found["v"] or found["v"].endswith("\\")):
        return None
    _, name = name_around(text, at, found.end("tail"))
    plain = found["v"].replace("'\\''", "'").replace("'\"'\"'", "'").replace("''", "'")
    kind = secret_name_kind(name, plain, True) if name else None
    return Span(*found.span("v"), kind) if kind else None


_DIGESTS = build_rule_pattern(r"(?:^|(?<=\n))[^\n]{0,80}\b(?:DIGEST|CHECKSUM|FINGERPRINT)\b[^\n]{0,80}(?=\n)")
_HEX = build_rule_pattern(r"[0-9a-f]{8,128}")
_TABLE = 4000  # characters above a row in which the head of its table is sought


def is_digest_in_table(text: str, at: int, value: str) -> bool:
    """Tell whether a value in hex is in a table with a column of digests, as listings of hidden secrets have."""
    return _HEX.fullmatch(value) is not None and _DIGESTS.search(text, max(0, at - _TABLE), at) is not None


def _assigned(text: str, at: int, match: re.Match[str]) -> Span | None:
    start, name = name_around(text, at, match.end("tail"))
    if not name or text[max(0, start - 2) : start] == "::":
        return None
    if match["sep"].strip() == "|" and _FILTER.fullmatch(match["bare"] or ""):
        return None
    if match["sep"].strip() in ("to", "as") and match["close"] not in ("'", '"', "`"):
        return None
    if match["sep"].strip() in ("", "|") and is_digest_in_table(text, at, match["bare"] or ""):
        return None
    named = _FLAG.match(name) or _ENV_NAME.fullmatch(name) or _is_line(text, start, name, match)
    if match["sep"].isspace() and not named and not _is_cell(name, match):
        image = _IMAGE_LINE.search(text, max(0, start - 12), start)
        if name.lower() not in ("password", ":password") or (match["quoted"] is None and not image):
            return None
    flag = _FLAG.match(name) is not None
    if (
        match["sep"].lstrip().startswith(",")
        and not flag
        and not _OPENED.search(text, max(0, start - 6), start)
    ):
        return None
    if match["quoted"] is not None:
        if "," in match["sep"] and _HEADER_NAME.fullmatch(match["quoted"]):
            return None
        kind = secret_name_kind(name.lstrip("-"), match["quoted"], "," not in match["sep"])
        return Span(*match.span("quoted"), kind) if kind else None
    return _bare_value(text, start, name, match)


def _is_line(text: str, start: int, name: str, match: re.Match[str]) -> bool:
    """Tell whether a line sets a quoted value under a password's name, with blanks between."""
    if match["quoted"] is None or not names_password(name):
        return False
    head = text.rfind("\n", max(0, start - 60), start) + 1
    return not text[head:start].strip() and text[match.end() : match.end() + 1] in ("", "\n", "\r")


def _is_cell(name: str, match: re.Match[str]) -> bool:
    """Tell whether blanks stand between columns (`session_secret   7dc3fd...`) or before a Groovy argument."""
    if match["quoted"] is not None:
        return _GROOVY_NAME.fullmatch(name) is not None
    return len(match["sep"]) > 1 and is_token(match["bare"])


def _bare_value(text: str, start: int, name: str, match: re.Match[str]) -> Span | None:
    """Find an unquoted value: the whole word on an environment line, else only what is no code."""
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
    if kind is None and is_chosen_under(name, value):
        return Span(first, last, "SECRET")
    if (
        kind in (None, "PASSWORD")
        and bare_value_kind(name.lstrip("-"), value, True)
        and (_FLAG.match(name) or _is_set_alone(text, start, last))
        and (not is_own_word(value) or _BESIDE_LOGIN.search(text, max(0, start - 160), last + 160))
    ):
        return Span(first, last, "PASSWORD")
    if kind is None and _is_of_pairs(text, start, last) and _MINGLED_CASE.search(value):
        return Span(first, last, "PASSWORD") if secret_name_kind(name, value, True) == "PASSWORD" else None
    is_quoted = match["sep"] == "=" and behind in ("'", '"') and text[start - 1 : start] == behind
    if kind in (None, "PASSWORD") and is_quoted and secret_name_kind(name, value, True) == "PASSWORD":
        return Span(first, last, "PASSWORD")
    if kind is None and _LONG_WORD.fullmatch(value) and behind in ("", "\n", "\r", "\\"):
        return Span(first, last, "PASSWORD") if secret_name_kind(name, value, True) == "PASSWORD" else None
    if kind is None or _IDENTIFIER.fullmatch(value):
        return None
    if is_token(value) or kind == "BASIC_AUTH":
        return Span(first, last, kind)
    certain = kind in ("PASSWORD", "SECRET") and _is_password(
        text, start, name, match["sep"], Span(first, last, kind)
    )
    return Span(first, last, kind) if certain else None


_PAIRS = build_rule_pattern(r"(?:\A|\n)[^\n,;(){}=]{0,120}?(?:[\w-]+=[^\s,;(){}]+[ \t]+)+\Z")


def _is_of_pairs(text: str, start: int, end: int) -> bool:
    """Tell whether a name and its value are one of pairs with blanks between, not the first."""
    head = text.rfind("\n", max(0, start - 200), start) + 1
    last = text[end : end + 1] in ("", "\n", "\r") or _NEXT_PAIR.match(text, end) is not None
    return last and _PAIRS.search(text, max(0, head - 1), start) is not None


_MINGLED_CASE = build_rule_pattern(r"[0-9!#$%&*+@?~^]|[a-z][A-Z]")
_BESIDE_LOGIN = build_rule_pattern(
    r"(?i)(?<![a-z])(?:user(?:[_-]?name)?|login|host(?:name)?|server|port|database|adapter|dbname)[\"']?[ \t]{0,8}[:=]"
)
_NEXT_PAIR = build_rule_pattern(r"[ \t]+[\w.-]+=")
_CONNECTION = build_rule_pattern(r"(?:^|[\"'=\s])[\w.-]+:\d{2,5}(?:,[\w ]+=[^,\"'\s]*)*,\Z")


def _is_set_alone(text: str, start: int, end: int) -> bool:
    """Tell whether a name and its value are a line among settings, or one of pairs.

    Pairs have blanks between, or commas behind the host and port of a connection.
    """
    if _is_of_pairs(text, start, end):
        return True
    head, behind = text.rfind("\n", max(0, start - 200), start) + 1, text[end : end + 1]
    if behind not in ("", "\n", "\r"):
        return _CONNECTION.search(text, head, start) is not None and behind in (",", '"', "'")
    alone = _LINE_HEAD.fullmatch(text, head, start) is not None
    return alone and _is_among_settings(text, head, end + (text[end : end + 1] == "\r"))


def _is_of_environment(text: str, start: int, name: str, sep: str) -> bool:
    """Tell whether a line of an environment sets the name that begins at `start`."""
    if sep.isspace():
        return _SET_LINE.search(text, max(0, start - 24), start) is not None
    if sep != "=" or not name.isupper():
        return False
    before = text[start - 1] if start else "\n"
    if before in " \n\t;&'\"`" or text[max(0, start - 2) : start] in (r"\n", r"\r", r"\t"):
        return True
    return before in "+-:" and bool(_LINE_MARK.search(text, max(0, start - 160), start))


def _is_password(text: str, start: int, name: str, sep: str, span: Span) -> bool:
    """Tell whether a possible password after a name that begins at `start` is one."""
    value = text[span.start : span.end]
    before, behind = text[start - 1] if start else "\n", text[span.end : span.end + 1]
    line = text[text.rfind("\n", 0, start) + 1 : start].strip(" \t-\"'@").removeprefix("ENV")
    alone = not line and behind in ("", "\n", "\r")
    explicit = (
        sep.strip(" :") in ("is", "was", "|", ">")
        or name.startswith("--")
        or is_chosen_password(value)
        or is_drawn_letters(value)
    )
    if explicit or (alone and (sep.startswith(":") or not value.isidentifier() or _MINGLED.search(value))):
        return True
    if sep != "=":
        header = before in "'\"" and behind == before
        return sep.startswith(":") and (header or is_mixed_case(value))
    if (
        (alone and value[-2:].isdigit())
        or before in "?&;"
        or (before == "," and _MINGLED.search(value))
        or behind in (";", "&")
    ):
        return True
    if _GIVEN.search(text, max(0, start - 160), start):
        return not value.isidentifier() or _MINGLED.search(value) is not None
    return before in " \t" and behind in ("", " ", "\n", "\r") and bool(_MADE_UP.fullmatch(value))


# Probes. A password's name takes a word; any other name takes ten characters or more with a digit among
# them, or twenty, or four words joined by hyphens, or a number of six digits. A quoted value may hold other
# quotes, and its own after a backslash.
_BARE = r"[^\s\"'`,;<>(){}\[\]|\\&]"
_WORD = r"(?:[^\s*]|\*[^*\n])[^\n]{5}"
_WORD_QUOTED = r"\\*[\"'`][^\n]{5}"
_NO_COLON = _BARE.replace("[^", "[^:")
_TOKEN = rf"(?:(?-i:[A-Za-z]{{0,9}}[A-Z]{{2}}[a-z][A-Za-z]{{4}})|{_BARE}{{0,5}}[0-9]{_BARE}{{4}}|{_BARE}{{6,}}[0-9]|{_BARE}{{20}}|{_BARE}{{2,10}}[!#+$%^*?~@&]{_BARE}{{4}}|(?-i:[a-z]{{2,16}}-){{3}}[a-z])"


def _quoted(value: str, lead: str) -> str:
    """Build a probe for a value in quotes of any kind from the one for bare values.

    It matches `value`, or a backslash after `lead` characters, since an escaped quote does not end the value.
    """

    def among(excluded: str) -> str:
        return value.replace(_BARE, rf"[^\n{excluded}]")

    own = "|".join(rf"{quote}(?:[^\n{quote}\\]{lead}\\|{among(quote)})" for quote in "\"'`")
    within = among(chr(92) * 2)
    escaped = "|".join(rf"\\{quote}(?:[^\n\\]{lead}\\[^{quote}]|{within})" for quote in "\"'`")
    return rf"(?:{own}|{escaped}|\\\\+[\"'`]{among('')})"


_TOKEN_QUOTED = _quoted(_TOKEN, "*")
_TOKEN_IN_ENVIRONMENT = _TOKEN.replace(_BARE, r"[^\s\"'`\\]")
# The same directly after a colon: `passwords::tests` is a path.
_WORD_APART = _WORD.replace(r"[^\s*]", r"[^\s*:]")
_TOKEN_APART = (
    rf"(?:(?:{_NO_COLON}{_BARE}{{0,4}})?[0-9]{_BARE}{{4}}|{_NO_COLON}(?:{_BARE}{{5,}}[0-9]|{_BARE}{{19}}"
    rf"|{_BARE}{{1,9}}[!#+$%^*?~@&]{_BARE}{{4}})|(?-i:[a-z]{{2,16}}-){{3}}[a-z])"
)
_LOGIN = r"(?-i:[a-z]*[A-Z0-9+/=])[A-Za-z0-9+/=]{3}"
_SCHEME = r"(?:(?:bearer|basic|token|apikey|bot|ssws|key)\s+)?"
_CLOSE = r"\\*[\"'`]?\)?\]?"
_SIGN = r"\s*(?::\s*[A-Za-z][\w.\[\]| ]*=|=>|:=|!?=+"
_SAID = r"\s(?:is|was)[: ]\s*|\s+\|\s+"


def _set_under(name: str, quoted: str, bare: str, apart: str) -> str:
    """Build a probe for a quoted or a bare value under a name; `apart` is one directly after a colon."""
    return (
        rf"(?i){name}{_CLOSE}(?:(?:{_SIGN}|:|,)\s*|{_SAID}|[ \t](?:to|as)[ \t]+){_SCHEME}[fbru]{{0,2}}{quoted}"
        rf"|(?:{_SIGN})[ \t]*|\s*:[ \t]+|{_SAID}){_SCHEME}{bare}|\s*:{_SCHEME}{apart})"
    )


def _apart(passwords: str, others: str) -> Iterator[str]:
    """Yield probes for names in tags, flags and the environment."""
    either, capitals = f"(?:{passwords}|{others})", "[A-Z0-9_]*"
    value = rf"[ \t]+(?:--body[ =])?{_SCHEME}"
    yield rf"(?i){either}[\w-]*{_CLOSE}(?:[ \t]+--body[ =][^\n]{{6}}|>[^<>\n]{{6}}[^<>\n]*</)"
    token = rf"(?:[fbru]{{0,2}}{_TOKEN_QUOTED}|{_TOKEN})"
    yield (
        rf"(?i)-[\w.-]*(?:(?:{passwords})[\w.-]*{_CLOSE}{value}[^\n]{{6}}"
        rf"|(?:{others})[\w-]*{_CLOSE}{value}{token})"
    )
    yield rf"(?:_{either}{capitals}|_PAT|{either}[A-Z0-9]*_{capitals}){_CLOSE}(?i:{value})[^\n]{{6}}"
    yield rf"PW[\"']?[ \t]*[=:][ \t]*{_WORD}"
    yield rf"(?i)password{_CLOSE}(?:{value}|\s*=\s*)[fbruN@]{{0,2}}\\*[\"'`]"
    yield rf"ENV[ \t]+PASSWORD[ \t]+{_WORD}"
    named = rf"[A-Z0-9_-]*{_CLOSE}="
    yield rf"(?:{passwords}){named}{_WORD}|(?:{others}){named}{_TOKEN_IN_ENVIRONMENT}"


# `PASS: ` in capitals is a test that passed, so `PASS` has a probe of its own, without that joint.
_PASS = r"(?:(?-i:p)ass|p(?-i:a)ss|pa(?-i:s)s|pas(?-i:s)|(?-i:[A-WYZa-z0-9_]PASS))"
_CAPITAL_PASS = r"PASS(?:[\\\"'`)\]]+\s*[:=,]|\s+[:=,]|[=,]|:[^ ]|[\\\"'`)\]]*(?:\s+\||\s(?:is|was|to|as)[: \t]))\s*[^\n]{4}"
PROBES = (
    _set_under(
        rf"(?:{_PASS}|pass(?:w|phrase|code|[\d_.-])[\w.-]*|_pw|(?:^|[^a-z])pw|(?:pwd|psk)(?:[\d_.-][\w.-]*)?|kennwort[\w.-]*"
        r"|senha|haslo|heslo|contrasen[\w.-]*|wachtwoord|parola[\w.-]*|salasana|adgangskode|losenord|de_?passe)",
        _WORD_QUOTED,
        _WORD,
        _WORD_APART,
    ),
    _CAPITAL_PASS,
    _set_under(
        r"(?:(?:secret|token|credential|authorization|connection[_-]?string|(?:[a-z_.-]|[a-z] )key|_cookie|[cx]srf|chiave|chave|llave|klucz|schl(?:ue|u)ssel|sleutel|nyckel|anahtar|(?-i:KEY))[\w-]*"
        r"|auth|_pat)",
        _TOKEN_QUOTED,
        _TOKEN,
        _TOKEN_APART,
    ),
    _set_under("auth", r"\\*[\"'`]" + _LOGIN, _LOGIN, _LOGIN),
    *_apart("PASS|PWD|PSK|KENNWORT", "SECRET|TOKEN|CREDENTIAL|KEY|AUTH|_PAT|CONNECTION"),
)
