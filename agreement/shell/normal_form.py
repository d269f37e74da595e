"""Command lines in a normal form: equal where only spelling differs, never where that is in doubt."""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from tracemill.agreement.shell.command_lists import (
    ON,
    PLAIN_PATH,
    Walk,
    drop_idle_commands,
    list_redirects,
    with_plain_pipes,
)
from tracemill.agreement.shell.program_options import order_program_options
from tracemill.harnesses.shell.bash_tree import bash_tree_words
from tracemill.harnesses.shell.operations import join_path, unwrap_operation_command
from tracemill.harnesses.shell.parse_line import Simple, parse_command
from tracemill.records.fast_dataclass import quick_init

_SUBSHELL = frozenset("()")
_GO = ("cd",)
_MOVES = (("cd",), ("pushd",), ("popd",), ("chdir",))
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=")
_NPM = frozenset({"npm", "pnpm"})
_NPM_TEST = (["run", "test"], ["run-script", "test"])
_NPM_TESTS = (["t"], ["tst"])
_NEW_BRANCH = {"-b": "-c", "-B": "-C"}
_COMMITS = re.compile(r"(?:-n?|--max-count=)(\d+)")
_PRINT = (("echo",), ("printf",))
_TAKE_PATTERN = tuple((name,) for name in ("grep", "egrep", "fgrep", "zgrep", "rg", "sed", "awk", "perl"))
_BEFORE_TEXTS = frozenset({"-e", "--regexp", "-m", "--message"})
_TAKE_PATHS = (("rm",), ("touch",), ("mkdir",))
_PLAIN_FLAGS = frozenset(("-r", "-R", "-f", "-p"))
_PATHS = re.compile(r"^(?!\$)[\w./@+*?~-]+$")
_BRACES = re.compile(r"^([\w./-]*)\{([\w.-]+(?:,[\w.-]+)+)\}([\w./-]*)$")


@quick_init
@dataclass(frozen=True, slots=True)
class Placed:
    """A simple command in normal form, the folder it runs in, and the doubt in that (`Walk.doubt`)."""

    folder: str
    command: Simple
    doubt: str = ""


@lru_cache(maxsize=4096)
def place_commands(line: str, cwd: str | None) -> tuple[Placed, ...] | None:
    """The commands of a line run in `cwd`, in normal form; None where it cannot be read.

    `cd X &&` becomes the folder of what follows, as `git -C X` does of its command, quotes go, options of
    well-known programs come in order, `--no-pager` and the word `env` are left out, absolute paths below the
    folder become relative; `2>&1`, `|| true` and `| cat` go where nothing behind depends on them. The order
    of operands stays. Behind a `cd` to a place that the line does not name the folder is that `cd`. A line
    with a subshell counts as unreadable, because a `cd` in it does not reach further.
    """
    commands = parse_command(line)
    if not commands or any(command.joiner in _SUBSHELL for command in commands):
        return None
    home = cwd or ""
    if len(commands) == 1 and commands[0].argv[:1] != _GO:
        return (_placed(commands[0], "", "", commands, home, home),)
    commands = drop_idle_commands(with_plain_pipes(commands))
    walk = Walk(home)
    placed: list[Placed] = []
    for command, after in zip(commands, [*[each.joiner for each in commands[1:]], ""], strict=True):
        walk.comes_to(command.joiner)
        if command.argv[:1] == _GO and after in ON and walk.goes(command):
            continue
        joiner = walk.stops_at(command.joiner)
        found = _placed(command, joiner if placed else "", after, commands, walk.folder, home)
        placed.append(replace(found, doubt=walk.doubt) if walk.doubt else found)
        if command.argv[:1] in _MOVES:
            walk.folder = f"$({' '.join(command.argv)})"
    return tuple(placed) or (Placed(walk.folder, Simple(("cd", walk.folder))),)


def _placed(
    command: Simple, joiner: str, after: str, commands: Sequence[Simple], folder: str, home: str
) -> Placed:
    """A command of a line in normal form, joined to the ones before and behind by these signs."""
    redirects = command.redirects and list_redirects(command, after, commands)
    there, told = _told_where(command, folder)
    return _at_home(Placed(there, _normal(told, joiner, there, redirects)), home)


@lru_cache(maxsize=4096)
def shell_normal_form(line: str, cwd: str | None) -> tuple[Any, ...] | None:
    """Normal form of a command line run in `cwd`, as plain tuples (see `place_commands`); of one with
    subshells the words that the grammar of bash finds; None where neither can read it."""
    placed = place_commands(line, cwd)
    if placed is None:
        words = bash_tree_words(line)
        return None if words is None else ("words", *words)
    home = cwd or ""
    return tuple([_plain(each, "" if each.folder == home else each.folder) for each in placed])


def _at_home(placed: Placed, home: str) -> Placed:
    """`rm src/a` for `cd src && rm a`, as far as such programs only take paths, these in alphabetical order
    where that does not matter."""
    command, folder = placed.command, placed.folder
    program, words = command.argv[:1], command.argv[1:]
    if program not in _TAKE_PATHS or not words:
        return placed
    options = tuple(word for word in words if word.startswith("-"))
    paths = tuple(word for word in words if not word.startswith("-"))
    told_more = command.redirects or command.heredoc is not None or not _PLAIN_FLAGS.issuperset(options)
    if told_more or not all(map(_PATHS.match, paths)):
        return placed
    if folder != home and not folder.startswith("$") and home[:1] == folder[:1] == "/":
        paths, folder = tuple(posixpath.relpath(join_path(folder, each), home) for each in paths), home
    elif folder != home and not home and not folder.startswith("$"):
        paths, folder = tuple(join_path(folder, each) for each in paths), home
    if program != ("mkdir",) or "-p" in options:
        paths = tuple(sorted(paths))
    return Placed(folder, replace(command, argv=(*program, *options, *paths)))


def _told_where(command: Simple, folder: str) -> tuple[str, Simple]:
    """The folder a command runs in and the command, without `git -C X` and `env` before assignments."""
    argv = command.argv
    if argv[:2] == ("git", "-C") and len(argv) > 3 and PLAIN_PATH.match(argv[2]):
        return join_path(folder, argv[2]), replace(command, argv=("git", *argv[3:]))
    if argv[:1] != ("env",):
        return folder, command
    end = next((at for at, word in enumerate(argv[1:], 1) if not _ASSIGNED.match(word)), len(argv))
    if end in (1, len(argv)) or argv[end].startswith("-"):
        return folder, command
    return folder, replace(command, argv=argv[end:], assignments=(*command.assignments, *argv[1:end]))


def _plain(placed: Placed, folder: str) -> tuple[Any, ...]:
    command = placed.command
    told = (
        command.joiner,
        folder,
        command.keywords,
        command.assignments,
        command.argv,
        command.redirects,
        command.heredoc,
    )
    return (*told, placed.doubt) if placed.doubt else told


def _normal(command: Simple, joiner: str, folder: str, redirects: tuple[tuple[str, str], ...]) -> Simple:
    argv = _argv_form(command.argv, folder)
    assignments = _unordered(command.assignments) if argv else command.assignments
    return Simple(argv, joiner, command.keywords, assignments, redirects, command.heredoc)


def _unordered(assignments: tuple[str, ...]) -> tuple[str, ...]:
    """Assignments before a command in alphabetical order, where none could need another."""
    if len(assignments) < 2 or any(sign in each for each in assignments for sign in "$`+"):
        return assignments
    names = {each.partition("=")[0] for each in assignments}
    return tuple(sorted(assignments)) if len(names) == len(assignments) else assignments


def _argv_form(argv: tuple[str, ...], folder: str) -> tuple[str, ...]:
    if not argv:
        return argv
    program = posixpath.basename(argv[0]) if argv[0].startswith(("/bin/", "/usr/bin/")) else argv[0]
    told = [word for word in argv[1:] if word != "--no-pager"]
    letters = "".join(told)
    if "{" in letters:
        told = [each for word in told for each in _expanded(word)]
    if program == "sed" and told.count("-e") == 1 and told[-1] != "-e":
        before = told[: told.index("-e")]
        told = told if any(word[:1] != "-" for word in before) else [w for w in told if w != "-e"]
    words = _located(argv, program, told, folder) if "/" in letters else told
    if program == "git":
        words = _git_words(words)
    if program in _NPM:
        words = words[1:] if words[:2] in _NPM_TEST else words
        words = ["test", *words[1:]] if words[:1] in _NPM_TESTS else words
    return (program, *order_program_options(program, tuple(words)))


def _located(argv: tuple[str, ...], program: str, told: Sequence[str], folder: str) -> list[str]:
    """The words behind a program, paths as seen from the folder."""
    texts = _texts(argv)
    operand = _copied if unwrap_operation_command(argv)[:1] == ("rsync",) else _operand
    return [
        word if number < texts or "/" not in word or before in _BEFORE_TEXTS else operand(word, folder)
        for number, (before, word) in enumerate(zip([program, *told], told, strict=False))
    ]


def _expanded(word: str) -> tuple[str, ...]:
    """The words that the shell makes of `a{b,c}d`; else the word."""
    found = _BRACES.match(word)
    if found is None:
        return (word,)
    return tuple(f"{found[1]}{each}{found[3]}" for each in found[2].split(","))


def _git_words(words: Sequence[str]) -> list[str]:
    """The words of `git diff`, `git log` and `git switch` in one spelling: `--cached`, a count of commits as
    `-n 1`, and `-c` for `checkout -b`."""
    verb = words[0] if words else ""
    if verb == "checkout" and words[1:2] and words[1] in _NEW_BRANCH:
        return ["switch", _NEW_BRANCH[words[1]], *words[2:]]
    if verb == "diff":
        return ["--cached" if word == "--staged" else word for word in words]
    end = words.index("--") if "--" in words else len(words)
    spelled: list[str] = []
    for number, word in enumerate(words):
        count = _COMMITS.fullmatch(word) if verb == "log" and number < end else None
        spelled += ["-n", count[1]] if count else [word]
    return spelled


def _texts(argv: tuple[str, ...]) -> int:
    """How many of the first words are a text or a pattern, so no path however they look."""
    words = unwrap_operation_command(argv)
    wrapping = len(argv) - len(words)
    if words[:1] in _PRINT:
        return len(argv)
    if words[:1] not in _TAKE_PATTERN:
        return 0
    first = (at for at, word in enumerate(words[1:], 1) if not word.startswith("-") and not word.isdigit())
    return wrapping + next(first, 0)


def _copied(word: str, folder: str) -> str:
    """A path of `rsync`, which copies what is in a folder where a slash is behind it, else the folder."""
    path = _operand(word, folder)
    return path + "/" if word.endswith("/") and not path.endswith("/") else path


def _operand(word: str, folder: str) -> str:
    if word.startswith("-") or word.endswith("...") or not PLAIN_PATH.match(word):
        return word
    if folder and word.startswith(folder.rstrip("/") + "/"):
        return posixpath.relpath(word, folder)
    return posixpath.normpath(word) if word.startswith("./") else word
