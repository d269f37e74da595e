"""Command lines in a normal form: equal where only spelling differs, never where that is in doubt."""

import posixpath
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from harnesses.bash_tree import bash_words
from harnesses.shell import Simple, parse_command
from harnesses.shell_operations import join_path

# Programs whose single-letter flags take no value that could be split off, so that -rn is -n -r.
_FLAG_SETS = {
    "ls": "alhtrSR1Fdi",
    "rm": "rfiv",
    "grep": "rRnilLcvwxhHosqEFPI",
    "wc": "lwcm",
    "cat": "nAbeEstT",
    "mkdir": "pv",
    "cp": "rRafpv",
}
_NO_EFFECT_REDIRECTS = frozenset({("2>&", "1")})
_PLAIN_PATH = re.compile(r"^[\w./@+-]+$")


@dataclass(frozen=True, slots=True)
class Placed:
    """A simple command in normal form, and the folder it runs in."""

    folder: str
    command: Simple


@lru_cache(maxsize=4096)
def placed_commands(line: str, cwd: str | None) -> tuple[Placed, ...] | None:
    """The commands of a line run in `cwd`, in normal form; None where it cannot be read.

    `cd X &&` becomes the folder of what follows, quotes go, flags of well-known programs are sorted,
    `2>&1`, `|| true`, `| cat` and `--no-pager` are left out, absolute paths below the folder become
    relative. The order of operands stays. A line with a subshell counts as unreadable, because a `cd` in
    it does not reach further.
    """
    commands = parse_command(line)
    if not commands or any(command.joiner in ("(", ")") for command in commands):
        return None
    folder = cwd or ""
    placed: list[Placed] = []
    for command in commands:
        moved = _folder_after(command, folder)
        if moved is not None:
            folder = moved
        elif not _is_no_effect(command):
            joiner = command.joiner if placed else ""
            placed.append(Placed(folder, _normal(replace(command, joiner=joiner), folder)))
    return tuple(placed) or (Placed(folder, Simple(("cd", folder))),)


@lru_cache(maxsize=4096)
def shell_form(line: str, cwd: str | None) -> tuple[Any, ...] | None:
    """Normal form of a command line run in `cwd`, as plain tuples (see `placed_commands`); of one with
    subshells the words that the grammar of bash finds; None where neither can read it."""
    placed = placed_commands(line, cwd)
    if placed is None:
        words = bash_words(line)
        return None if words is None else ("words", *words)
    home = cwd or ""
    return tuple(_plain(each.command, "" if each.folder == home else each.folder) for each in placed)


def _plain(command: Simple, folder: str) -> tuple[Any, ...]:
    return (
        command.joiner,
        folder,
        command.keywords,
        command.assignments,
        command.argv,
        command.redirects,
        command.heredoc,
    )


def _folder_after(command: Simple, folder: str) -> str | None:
    """The folder after a plain `cd X`; None for anything else."""
    if command.joiner not in ("", "&&", ";") or command.argv[:1] != ("cd",) or len(command.argv) != 2:
        return None
    if command.redirects or command.assignments or command.keywords:
        return None
    return join_path(folder, command.argv[1]) if _PLAIN_PATH.match(command.argv[1]) else None


def _is_no_effect(command: Simple) -> bool:
    if command.redirects or command.assignments or command.keywords or command.heredoc is not None:
        return False
    return (command.joiner, command.argv) in (("||", ("true",)), ("|", ("cat",)))


def _normal(command: Simple, folder: str) -> Simple:
    redirects = tuple(each for each in command.redirects if each not in _NO_EFFECT_REDIRECTS)
    return replace(command, argv=_argv_form(command.argv, folder), redirects=redirects)


def _argv_form(argv: tuple[str, ...], folder: str) -> tuple[str, ...]:
    if not argv:
        return argv
    program = posixpath.basename(argv[0]) if argv[0].startswith(("/bin/", "/usr/bin/")) else argv[0]
    words = [_operand(word, folder) for word in argv[1:] if word != "--no-pager"]
    known = _FLAG_SETS.get(program)
    if known is None:
        return (program, *words)
    flags: set[str] = set()
    rest: list[str] = []
    for word in words:
        if len(word) > 1 and word[0] == "-" and all(letter in known for letter in word[1:]):
            flags.update(word[1:])
        else:
            rest.append(word)
    return (program, *sorted(f"-{flag}" for flag in flags), *rest)


def _operand(word: str, folder: str) -> str:
    if not _PLAIN_PATH.match(word) or "/" not in word or word.startswith("-") or word.endswith("..."):
        return word
    if folder and word.startswith(folder.rstrip("/") + "/"):
        return posixpath.relpath(word, folder)
    return posixpath.normpath(word) if word.startswith("./") else word
