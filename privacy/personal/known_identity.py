"""Search for values known beforehand: exact secrets, the user's names, machines and home folders.

User names that a trace's own paths contain are found here too.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import PurePosixPath, PureWindowsPath

from tracemill.privacy.core.lazy_pattern import LazyPattern
from tracemill.privacy.core.ordinary_values import MIN_SECRET
from tracemill.privacy.core.rule import LEFT, Span, TextView, build_rule_pattern, fold, make_probed_detector
from tracemill.privacy.core.secret_variables import is_secret_variable, variable_url_password
from tracemill.privacy.core.spellings import list_spellings
from tracemill.privacy.core.user_lists import UserList
from tracemill.privacy.core.word_lists import COMMON_WORDS, SHARED_NAMES

MIN_FOLDED = 12  # characters of a value that is searched in any case
MIN_NAME = 4  # characters of a name that is searched outside paths
_HOME_NAME = build_rule_pattern(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,31}")
_WINDOWS_NAME = build_rule_pattern(r"[A-Za-z0-9_][^\\/:*?\"<>|\r\n]{0,31}(?=\\)")
_SLUG_NAME = build_rule_pattern(r"[A-Za-z0-9_]{1,32}(?=-|/|\s|[\"'`]|\\|$)")
_PAGE = build_rule_pattern(
    r"^\d+$|^(?i:your)|\.(?:html?|php|[jt]sx?|css|json|py|md|txt|svg|png|vue|rb|go|rs|sh)$"
)
_ROOTED = build_rule_pattern(
    r"(?:^|[^\w.$})*~-]|/mnt(?:/[a-z])?|/var|/private|/export|/nfs\d*|/net|/gpfs|/lustre|/srv|/storage|/vol\d*|/data|/host(?:fs)?|/Data|(?<![A-Za-z])[A-Za-z]:|/[a-z])$"
)


@dataclass(frozen=True, slots=True)
class KnownValues:
    """Exact values to search for, and the user's lists to redact and to allow.

    The values are secrets, user names, machine names and unusual home folders. Its `repr` shows none of them.
    """

    secrets: tuple[str, ...] = field(default=(), repr=False)
    names: tuple[str, ...] = field(default=(), repr=False)
    hosts: tuple[str, ...] = field(default=(), repr=False)
    homes: tuple[str, ...] = field(default=(), repr=False)
    redact: UserList = field(default_factory=UserList)
    allow: UserList = field(default_factory=UserList)


def known_identity_from_environment(environ: Mapping[str, str], hostname: str | None = None) -> KnownValues:
    """Return the values that the environment reveals.

    Those are values of secret-named variables (8 characters or more, no paths), passwords inside URLs,
    `HOME`, the user's names and the machine's name.
    """
    values = [v for n, v in environ.items() if is_secret_variable(n, v)]
    values += [p for v in environ.values() if "://" in v and (p := variable_url_password(v))]
    names = [
        environ.get(n, "")
        for n in ("USER", "LOGNAME", "USERNAME", "SUDO_USER", "GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME")
    ]
    homes = [environ.get(n, "") for n in ("HOME", "USERPROFILE")]
    hosts = [hostname or "", environ.get("HOSTNAME", ""), environ.get("COMPUTERNAME", "")]
    return make_known(values, names, homes, hosts)


def make_known(
    secrets: Iterable[str], names: Iterable[str] = (), homes: Iterable[str] = (), hosts: Iterable[str] = ()
) -> KnownValues:
    """Build the values worth searching, each once, with their spellings in URLs and JSON."""
    homes = [home.rstrip("/\\") for home in homes if home]
    people = {name.strip() for name in names} | {_last_part(home) for home in homes}
    machines = {part for host in hosts if host for part in (host, host.split(".")[0])}
    odd = {
        home
        for home in homes
        if not re.match(r"/(?:home|Users)/|/root$|[A-Za-z]:\\Users\\", home) and home.count("/") > 1
    }
    return KnownValues(
        tuple(sorted(_spellings(secrets), key=lambda value: (-len(value), value))),
        tuple(sorted(name for name in people if name and name.lower() not in SHARED_NAMES)),
        tuple(sorted(host for host in machines if _is_distinctive(host))),
        tuple(sorted(odd)),
    )


def _spellings(secrets: Iterable[str]) -> set[str]:
    long = (stripped for value in secrets if len(stripped := value.strip()) >= MIN_SECRET)
    return {form for value in long for form in list_spellings(value)}


def _last_part(home: str) -> str:
    return (PureWindowsPath(home) if "\\" in home else PurePosixPath(home)).name


def _is_distinctive(name: str) -> bool:
    return len(name) >= MIN_NAME and not name.isdigit() and name.lower() not in COMMON_WORDS | {"localhost"}


def distinctive_known_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names that may be searched outside paths: four characters or more, no common word."""
    return tuple(sorted({name for name in names if _is_distinctive(name)}))


def known_names_in_paths(texts: Iterable[str], surely: Iterable[str] = ()) -> tuple[str, ...]:
    """Return distinctive user names found in home folders.

    Those in `surely` (working directories, projects) count at once; those in `texts` count when seen three
    times or more.
    """
    counts = Counter(
        text[s.start : s.end]
        for text in texts
        for s in find_homes(TextView(text))
        if text[s.end : s.end + 1] in ("/", "\\")
    )
    sure = {text[s.start : s.end] for text in surely for s in find_homes(TextView(text))}
    return distinctive_known_names(sure.union(name for name, count in counts.items() if count >= 3))


def find_homes(view: TextView, names: Iterable[str] = ()) -> Iterator[Span]:
    """Find the user's part of home folders: `/home/x`, `/Users/x`, `C:\\Users\\x`, `-Users-x-`."""
    text = view.text
    slugs = tuple(re.sub(r"[^A-Za-z0-9]", "-", name) for name in names)
    for at in view.positions(b"/home/"):
        if _ROOTED.search(text, max(0, at - 16), at):
            yield from _named(text, at + 6, _HOME_NAME)
    for at in view.positions(b"\\home\\"):
        yield from _named(text, at + 6 + (text[at + 6 : at + 7] == "\\"), _HOME_NAME)
    for at in view.positions(b"users"):
        yield from _under_users(text, at, slugs)
    for at in view.positions(b"-home-"):
        if _is_slug(text, at):
            yield from _slug_named(text, at + 6, slugs)


def _under_users(text: str, at: int, slugs: tuple[str, ...]) -> Iterator[Span]:
    before, after = text[at - 1 : at], text[at + 5 : at + 6]
    if not before or before != after or not (text[at] == "U" or text[at - 2 : at - 1] in (":", "\\")):
        return
    if before == "\\" and not _is_root(text, at - 1):
        return
    if before == "/" and _ROOTED.search(text, max(0, at - 17), at - 1):
        yield from _named(text, at + 6, _HOME_NAME)
    elif before == "\\":
        start = at + 5
        while text[start : start + 1] == "\\":
            start += 1
        yield from _named(text, start, _WINDOWS_NAME if _WINDOWS_NAME.match(text, start) else _HOME_NAME)
    elif before == "-" and _is_slug(text, at - 1):
        yield from _slug_named(text, at + 6, slugs)


def _is_root(text: str, at: int) -> bool:
    """Tell whether the backslash at `at` follows a drive or begins a path.

    `App\\Users\\X` is a name in code.
    """
    while text[at - 1 : at] == "\\":
        at -= 1
    before = text[at - 1 : at]
    return before == ":" or not (before.isalnum() or before in ("_", ")", "]", "}"))


def _is_slug(text: str, at: int) -> bool:
    """Tell whether the `-` at `at` begins a project slug: after no word, or after a drive letter's dash."""
    before = text[at - 1 : at]
    return not (before.isalnum() or before in ("-", "_", ".")) or bool(
        re.match(r"[A-Z]-", text[max(0, at - 2) : at])
    )


def _named(text: str, start: int, pattern: LazyPattern[str]) -> Iterator[Span]:
    match = pattern.match(text, start)
    if match is None:
        return
    name = match[0].rstrip(".- ")
    if name and name.lower() not in SHARED_NAMES and not _PAGE.search(name):
        yield Span(start, start + len(name), "USER")


def _slug_named(text: str, start: int, slugs: tuple[str, ...]) -> Iterator[Span]:
    for slug in slugs:
        if text.startswith(slug, start):
            yield Span(start, start + len(slug), "USER")
            return
    yield from _named(text, start, _SLUG_NAME)


def find_words(view: TextView, words: Iterable[str], kind: str) -> Iterator[Span]:
    """Find each word where it stands alone, in any case."""
    folded = view.plane("fold")
    for word in words:
        literal = fold(word)
        at = folded.find(literal)
        if at < 0:
            continue
        pattern = _alone(word)
        if not word.isascii():
            yield from (Span(*match.span(), kind) for match in pattern.finditer(view.text))
            continue
        while at >= 0:
            if pattern.match(view.text, at):
                yield Span(at, at + len(word), kind)
            at = folded.find(literal, at + 1)


@lru_cache(maxsize=256)
def _alone(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?i){LEFT}{re.escape(word)}(?![A-Za-z0-9])")


def find_exact(view: TextView, values: Iterable[str]) -> Iterator[Span]:
    """Find each value anywhere, also inside other text; in any case from 12 characters on."""
    folded = view.plane("fold")
    for value in values:
        literal, size = fold(value), len(value)
        at = folded.find(literal)
        while at >= 0:
            there = view.text[at : at + size]
            if there == value or (size >= MIN_FOLDED and there.lower() == value.lower()):
                yield Span(at, at + size, "SECRET")
                at += size - 1
            at = folded.find(literal, at + 1)


def find_odd_homes(view: TextView, homes: Iterable[str]) -> Iterator[Span]:
    """Find the last part of home folders that lie neither under `/home` nor under `/Users`."""
    for home in homes:
        at = view.text.find(home)
        while at >= 0:
            yield Span(at + len(home) - len(_last_part(home)), at + len(home), "USER")
            at = view.text.find(home, at + len(home))


HOMES = make_probed_detector(
    find_homes,
    r"(?i)/home/[a-z0-9_]",
    r"(?i)\\home\\{1,2}[a-z0-9_]",
    r"([/\\-])U(?i:sers)[/\\-]|[:\\]([/\\-])(?i:users)[/\\-]",
    r"(?:^|[^A-Za-z0-9_.-]|[A-Z]-)-(?i:home)-[A-Za-z0-9_]",
)
