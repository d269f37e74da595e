# ruff: noqa: E501 (patterns)
"""Detect author names that a command prints in a custom format: `git log --format='%h %an %s'`."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from tracemill.harnesses.shell.operations import unwrap_operation_command
from tracemill.harnesses.shell.parse_line import SimpleCommand, parse_command
from tracemill.privacy.core.word_lists import COMMON_WORDS, NO_PERSONS, SHARED_NAMES
from tracemill.privacy.personal.labelled_data import PERSON, is_person

TRIGGER = r"%[-+ ]?(?:[<>|][^)]*\))?[acg][nNlL]|%\((?:author|committer|tagger|creator)|\{(?:author|user)|%[-+ ]?a[nN]"
"""A pattern that matches in every command line with such a format."""

_FORMS = ("--format", "--pretty", "--template", "-T")
_PIECE = re.compile(
    r"%(?P<pad>[<>|]{1,2}\([^)]*\))|%C(?:\([^)]*\)|red|green|blue|reset|yellow)|%(?P<hex>x[0-9a-fA-F]{2})|%\((?P<field>[^)]*)\)"
    r"|%[-+ ]?(?P<code>[acg][a-zA-Z]|G[?A-Z]|[a-zA-Z%])|\{(?P<name>\w+(?:\|\w+)*)\}"
)
_NAME_FIELDS = re.compile(r"(?:author|committer|tagger)name|author(?:\|person)?$|user(?:\|person)?$")
_NAME_CODES = frozenset(("an", "aN", "cn", "cN", "gn", "gN", "al", "aL", "cl", "cL"))
_HASHES = frozenset("HhTtPp")
_ANY_WORD = r"[^\W\d_][^\n]{0,80}?"
_BEFORE_BLANK = rf"(?:{PERSON}|[^\W\d_][^\s|,;]{{1,39}})"
_COUNT = re.compile(r"\s*\d+\s+")
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_VERBS = frozenset(
    """add added adds allow apply avoid build bump change changed check ci clean cleanup convert correct create delete disable docs
    document drop enable ensure expose extend fix fixed fixes handle implement improve increase initial introduce make mark merge
    minor move new only pass prepare prevent pull raise readd reduce refactor release remove removed rename replace restore return
    revert rework run set show simplify skip split stop support switch test tests tweak typo update updated upgrade use wip write
    """.split()  # noqa: SIM905
)
_NOBODY = COMMON_WORDS | SHARED_NAMES | NO_PERSONS
_THROUGH = frozenset("sort uniq head tail cat less more nl tac column tee wc".split())  # noqa: SIM905


@lru_cache(maxsize=512)
def find_author_forms(line: str) -> tuple[re.Pattern[str], ...]:
    """Return the patterns of lines with author names that a command line prints."""
    commands = parse_command(line) or ()
    forms: list[re.Pattern[str]] = []
    for at, command in enumerate(commands):
        for form in _forms_of(command):
            changed = _is_changed(commands[at + 1 :])
            forms += _patterns(form) if not changed else [re.compile(rf"(?P<n0>{PERSON})")]
    return tuple(dict.fromkeys(forms))


def find_authors(forms: tuple[re.Pattern[str], ...], line: str) -> Iterator[tuple[int, int]]:
    """Yield the positions of author names in a line of such a format."""
    bare = line.rstrip("\r\n")
    if _COLOUR.search(bare):
        return
    counted = _COUNT.match(bare)
    for form in forms:
        found = form.fullmatch(bare) or (counted and form.fullmatch(bare, counted.end()))
        if not found:
            continue
        for group, value in found.groupdict().items():
            name = _without_subject(value)
            if name and _is_author(name):
                yield found.start(group), found.start(group) + len(name)
        return


def _forms_of(command: SimpleCommand) -> Iterator[str]:
    words = unwrap_operation_command(command.argv)
    if not words or words[0].rpartition("/")[2] not in ("git", "hg", "jj"):
        return
    for at, word in enumerate(words):
        option, sign, value = word.partition("=")
        if option in _FORMS:
            given = value if sign else " ".join(words[at + 1 : at + 2])
            given = given.strip("'\"")
            yield re.sub(r"^t?format:", "", given)


def _is_changed(following: Iterable[SimpleCommand]) -> bool:
    """Tell whether a pipe changes lines in another way than sorting, cutting or counting them."""
    for command in following:
        if command.joiner not in ("|", "|&"):
            return False
        if not command.argv or command.argv[0] not in _THROUGH:
            return True
    return False


def _patterns(form: str) -> list[re.Pattern[str]]:
    """Return the patterns of those lines of a format that hold names."""
    found = []
    for line in re.split(r"%n|\\n|\n", form):
        pattern, count = _pattern(line)
        if count:
            found.append(re.compile(pattern))
    return found


def _pattern(line: str) -> tuple[str, int]:
    pieces: list[str] = []
    end = count = 0
    matches = list(_PIECE.finditer(line))
    for match in matches:
        pieces.append(re.escape(line[end : match.start()]))
        end = match.end()
        field = match["field"] or match["name"]
        if (match["code"] or "") in _NAME_CODES or (field and _NAME_FIELDS.search(field)):
            blank = line[end : end + 1] == " "
            pieces.append(rf"(?P<n{count}>{_BEFORE_BLANK if blank else _ANY_WORD})\s*")
            count += 1
        elif match["hex"]:
            pieces.append(re.escape(chr(int(match["hex"][1:], 16))))
        elif match["code"] == "%":
            pieces.append("%")
        elif match["code"] in _HASHES:
            pieces.append("[0-9a-f ]*")
        elif match["pad"]:
            pieces.append(r"\s*")
        elif match["code"] or field:
            pieces.append(".*?")
    pieces.append(re.escape(line[end:]))
    return "".join(pieces), count


def _without_subject(name: str) -> str:
    """Return a name without the words of a commit's subject after it."""
    words = name.rstrip().split(" ")
    for at, word in enumerate(words[2:], 2):
        if word.lower().strip(":,") in _VERBS:
            return " ".join(words[:at])
    return " ".join(words)


def _is_author(name: str) -> bool:
    if " " in name:
        return re.fullmatch(PERSON, name) is not None and is_person(name)
    return len(name) > 2 and name.replace(".", "").replace("-", "").isalnum() and name.lower() not in _NOBODY
