# ruff: noqa: E501 (patterns)
"""Detect secrets in parts of secret files: lines of `grep`, diffs, patches, heredocs, `head`.

The path shows that the file holds secrets, so every value in it is one, whatever its name, except ordinary
ones. Prefixes of lines (number, file, diff mark) are skipped.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from tracemill.privacy.core.chosen_passwords import is_word_chain
from tracemill.privacy.core.distinctive_values import Distinctiveness, judge_distinctiveness
from tracemill.privacy.core.entropy import is_password, is_random, is_sealed, is_stand_in
from tracemill.privacy.core.ordinary_values import MIN_SECRET, is_ordinary
from tracemill.privacy.core.rule import Detector, Span, TextView, build_words_pattern, make_probed_detector
from tracemill.privacy.core.secret_names import secret_name_kind
from tracemill.privacy.core.secret_variables import is_secret_variable
from tracemill.privacy.core.set_passwords import is_scrambled_piece, is_set_password
from tracemill.privacy.secrets.environments import is_everybodys_variable
from tracemill.privacy.secrets.secret_files import FileKind, find_secret_file_kind

_KIND = "SECRET"
_PREFIX = re.compile(
    r"(?:[ \t]{0,8}\d{1,6}(?:\u2192|\t|[ \t]?\|[ \t]?|[:-])|(?=[\w.~@+-]*[./])[\w./~@+-]{1,200}[:-](?:\d{1,6}[:-])?|[<>][ \t])?[+-]?"
)
_SETTING = re.compile(
    r"[ \t]*(?:[#;][ \t]*)?(?:(?:export|set|setx|ENV|declare -x)[ \t]+|\$env:)?[\"']?(?P<name>[A-Za-z_/][^\s=:\"']{0,120}(?::_[A-Za-z]\w*)?)[\"']?"
    r"(?:[ \t]*=[ \t]*|:[ \t]+)(?:'(?P<single>[^'\n]*)'|\"(?P<double>(?:\\.|[^\"\\\n])*)\"|(?P<bare>[^\n]*?))[ \t]*,?(?:[ \t]+#[^\n]*)?[ \t]*\r?"
)
_OTHER_NAME = re.compile(
    r"(?i)(?:sha|commit|hash|digest|version|revision|checksum|fingerprint|host|port|path|dir|folder|url|uri|region|zone|level|mode|email|realm|identity|user|username|login|pub(?:lic)?_?key\w*)$"
)
_COMMENT = re.compile(r"[ \t]*#")
# A word of a line of secrets, in quotes or behind a colon and the name of an encoding.
_LINE_WORD = re.compile(r"\"(?P<q>[^\"\n]{4,256})\"|(?<![^\s:\"}])(?P<v>[^\s:\"{}]{6,256})(?![^\s:\"])")
_PLACE = re.compile(r"/|@|^[\d.*]+$|^[\w-]+(?:\.[\w-]+)*\.[a-z]{2,6}$|^\[|^[a-z]+[-_]?\d{1,3}$")
_LOGIN = re.compile(r"[\w@-]{2,40}")
_HOST_PORT = re.compile(r"\d{1,5}(?:/.*)?|//.*")
_NO_LINE = re.compile(
    r"diff |index [0-9a-f]+\.|@@|-----|\d+(?:,\d+)?[acd]\d+(?:,\d+)?\r?$|\\ No newline|[^\w\n]*$",
    re.MULTILINE,
)
_EXPANDED = re.compile(r"\$\{?\w+\}?|\$\(.*\)|`.*`|<[^<>]*>|\{\{.*\}\}")


@lru_cache(maxsize=4096)
def _kind_of(path: str) -> FileKind | None:
    return find_secret_file_kind(path)


def find_file_secrets(text: str, kind: FileKind, start: int = 0, end: int | None = None) -> Iterator[Span]:
    """Yield the secrets in shown lines of a secret file, whatever their prefixes."""
    end = len(text) if end is None else end
    at = start
    while at < end:
        stop = text.find("\n", at, end)
        stop = end if stop < 0 else stop
        yield from _of_line(text, at, stop, kind)
        at = stop + 1


def _of_line(text: str, start: int, end: int, kind: FileKind) -> Iterator[Span]:
    if end - start > 4096 or _NO_LINE.match(text, start, end):
        return
    prefix = _PREFIX.match(text, start, end)
    for at in dict.fromkeys((prefix.end() if prefix else start, start)):
        if kind is FileKind.SECRET:
            value = text[at:end].strip()
            if " " not in value and _is_secret("", value):
                first = text.index(value, at)
                yield Span(first, first + len(value), _KIND)
                return
        elif kind is FileKind.LINES:
            if not _COMMENT.match(text, at, end):
                for word in _LINE_WORD.finditer(text, at, end):
                    group = "v" if word["q"] is None else "q"
                    if _is_line_secret(word[group]):
                        yield Span(*word.span(group), _KIND)
            return
        elif line := _SETTING.fullmatch(text, at, end):
            group = next(each for each in ("single", "double", "bare") if line[each] is not None)
            if _is_secret(line["name"], line[group]):
                yield Span(*line.span(group), secret_name_kind(line["name"], line[group], True) or _KIND)
            return


def _is_secret(name: str, value: str) -> bool:
    """Tell whether a value of a secret file is a secret."""
    if _EXPANDED.fullmatch(value) or is_sealed(value) or (name and is_everybodys_variable(name)):
        return False
    if name and (is_secret_variable(name, value) or secret_name_kind(name, value, True)):
        return True
    login, colon, password = value.partition(":")
    if colon and _LOGIN.fullmatch(login) and is_password(password) and not _HOST_PORT.fullmatch(password):
        return True
    if len(value) < MIN_SECRET or is_ordinary(value) or _OTHER_NAME.search(name):
        return False
    if judge_distinctiveness(value) is Distinctiveness.ANYWHERE or is_random(value) or is_set_password(value):
        return True
    if is_password(value) and any(map(str.isdigit, value)) and not re.search(r"[/.:]", value):
        return True
    return any(map(is_scrambled_piece, re.findall(r"[A-Za-z0-9]{6,}", value)))


def _is_line_secret(word: str) -> bool:
    """Tell whether a word of a line of secrets is one: not a name, an address, a path or a number."""
    if _PLACE.search(word) or is_sealed(word) or is_stand_in(word):
        return False
    return is_password(word) or is_word_chain(word) or is_random(word)


_SECTION = re.compile(
    r"(?:^|(?<=\n))(?:diff --git (?:[\"']?a/)?(?P<git>[^\s\"']+)[^\n]*|---[ \t](?:a/)?(?P<old>[^\s\"']+)[^\n]*\n\+\+\+[ \t](?:b/)?(?P<new>[^\s\"']+)[^\n]*"
    r"|==> (?P<head>[^\n]{1,200}) <==|\*\*\* (?:Update|Add|Delete) File: (?P<patch>[^\n]{1,300})|\*\*\* End Patch)[ \t]*(?=\r?\n|$)"
)
_FOUND_LINE = re.compile(
    r"(?:^|(?<=\n))(?P<path>[\w./~@+-]{1,200}?)(?::\d{1,6}:|-\d{1,6}-|:)(?P<rest>[^\n]*)"
)
_PATH = r"[\"']?(?P<{}>[^\s\"'<>|;&()]{{2,200}})[\"']?"
_HEREDOC = re.compile(
    rf"(?:>>?[ \t]*{_PATH.format('before')}[ \t]*|tee[ \t]+(?:-a[ \t]+)?{_PATH.format('tee')}[ \t]*)?<<-?[ \t]*\\?[\"']?(?P<tag>\w+)[\"']?"
    rf"(?P<line>[^\n]*)\n(?P<body>.*?)(?:\n[ \t]*(?P=tag)(?=\s|$)|\Z)",
    re.DOTALL,
)
_TO_FILE = re.compile(rf"(?:>>?|\btee(?:[ \t]+-a)?)[ \t]*{_PATH.format('path')}")
_SAID = re.compile(
    r"\b(?:echo|printf|print|Write-Output)(?:[ \t]+-\w+)*[ \t]+(?:'(?P<single>[^']*)'|\"(?P<double>(?:\\.|[^\"\\])*)\"|(?P<bare>[^\s|;&<>\"']+))[ \t]*(?P<to>(?:\||>)[^\n]{1,200})"
)


_SECTION_MARKS = ("diff --git ", "--- ", "---\t", "==> ", "*** ")
_NAMED = (
    r"(?:\.env|\.key|secrets?|credentials|\.npmrc|\.?netrc|\.pypirc|\.pgpass|\.my\.cnf|\.tfvars|\.vault[-_]\w+|passphrase|id_\w+"
    r"|token|password)"
)
_NAMED_FILE = re.compile(
    build_words_pattern(
        b".env .key secret credentials .npmrc netrc .pypirc .pgpass .my.cnf .tfvars .vault passphrase id_ token password".split()
    )
)
_PRINTING = ("echo ", "printf ", "print ", "Write-Output ")


def find_secret_file_texts(view: TextView) -> Iterator[Span]:
    """Find the secrets in parts of files that a text names and shows or writes."""
    text = view.text
    sections = list(_SECTION.finditer(text)) if any(mark in text for mark in _SECTION_MARKS) else []
    for at, head in enumerate(sections):
        path = head["new"] or head["git"] or head["old"] or head["head"] or head["patch"]
        old = head["old"] if head["new"] == "/dev/null" else None
        if path and (kind := _kind_of((old or path).strip())):
            stop = sections[at + 1].start() if at + 1 < len(sections) else len(text)
            yield from find_file_secrets(text, kind, head.end(), stop)
    for start in dict.fromkeys(
        text.rfind("\n", 0, named.start()) + 1 for named in _NAMED_FILE.finditer(view.raw)
    ):
        line = _FOUND_LINE.match(text, start)
        if line and (kind := _kind_of(line["path"])):
            yield from find_file_secrets(text, kind, *line.span("rest"))
    if "<<" in text:
        for document in _HEREDOC.finditer(text):
            path = document["before"] or document["tee"] or _target(document["line"])
            if path and (kind := _kind_of(path)):
                yield from find_file_secrets(text, kind, *document.span("body"))
    for printed in _SAID.finditer(text) if any(each in text for each in _PRINTING) else ():
        path = _target(printed["to"])
        if path and (kind := _kind_of(path)):
            group = next(each for each in ("single", "double", "bare") if printed[each] is not None)
            yield from find_file_secrets(text, kind, *printed.span(group))


def _target(text: str) -> str:
    found = _TO_FILE.search(text)
    return found["path"] if found else ""


_LINE = rf"[\w./~@+-]*{_NAMED}[\w.]*"
DETECTORS: tuple[Detector, ...] = (
    make_probed_detector(
        find_secret_file_texts,
        rf"(?:diff --git|---|\+\+\+|==>|File:)[ \t]+[^\s\"']*{_NAMED}",
        rf"{_LINE}(?::\d+:|-\d+-)",
        r"\.env[\w.]*:[A-Za-z_\"']",
        rf"(?:>|tee)[ \t]*(?:-a[ \t]+)?[\"']?[^\s\"'<>|;&()]*{_NAMED}",
    ),
)


_HINT = re.compile(
    r"env|\.key|\.psk|\.pw\b|secret|authenticator|userlist|dovecot|subversion|turnserver|keyring|homeserver|shadow|sbt|sasl_|auth|login|creds|cookie|chap-|pap-"
    r"|bundle|gradle|credential|rc\b|pgpass|htpasswd|\.cnf|\.vault|tfvars|kube|id_(?:rsa|dsa|ecdsa|ed25519)|token|passw|passphrase|auth\.json"
)
_COMMAND_WORD = re.compile(r"(?<![^\s\"':=(])[\w.~$/@+-]*\w")
_MOST = 8192  # characters of a command line that are searched


def named_secret_file(text: str) -> FileKind | None:
    """Return the kind of secret file that a command line names or a path is, else None."""
    text = text[:_MOST]
    if not _HINT.search(text):
        return None
    kinds = {kind for word in set(_COMMAND_WORD.findall(text)) if (kind := _kind_of(word))}
    return next((kind for kind in (FileKind.FIELDS, FileKind.LINES, FileKind.SECRET) if kind in kinds), None)
