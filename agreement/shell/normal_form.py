"""Normalise command lines: equal where only the spelling differs, never where that is in doubt."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from tracemill.harnesses.shell.operations import join_path
from tracemill.harnesses.shell.parse_line import SimpleCommand, parse_command

_CD_OPERATORS = frozenset({"", "&&", ";"})
"""Operators before and after which a `cd` runs in the shell itself."""
_NO_CHANGE = frozenset({"time", "{", "}"})
"""Keywords around commands that do the same without them."""
_MOVES = (("cd",), ("pushd",), ("popd",), ("chdir",))


@dataclass(frozen=True, slots=True)
class PlacedCommand:
    """A simple command and the folder it runs in."""

    folder: str
    command: SimpleCommand


def place_commands(line: str, cwd: str | None) -> tuple[PlacedCommand, ...] | None:
    """Return the commands of a line run in `cwd`, each with its folder; None if the line cannot be parsed.

    `cd X &&` becomes the folder of the commands after it. Quotes are removed; the order of words stays.
    After a `cd` to a variable or another place that the line does not name, the folder is that `cd` itself.
    A line with a subshell counts as unreadable, because a `cd` in it has no effect outside.
    """
    walked = _walk(line, cwd)
    return walked[0] if walked is not None else None


def folder_after(line: str, cwd: str) -> str:
    """Return the folder of a shell after a line run in `cwd`; `cwd` for a line that cannot be read."""
    walked = _walk(line, cwd)
    return walked[1] if walked is not None else cwd


@lru_cache(maxsize=4096)
def _walk(line: str, cwd: str | None) -> tuple[tuple[PlacedCommand, ...], str] | None:
    """Return the commands of a line and the folder after it."""
    commands = parse_command(line)
    if not commands or any(command.joiner in ("(", ")") for command in commands):
        return None
    folder, skipped, placed = cwd or "", None, list[PlacedCommand]()
    for command, after in zip(commands, [*[each.joiner for each in commands[1:]], ""], strict=True):
        target = _folder_after(command, folder) if after in _CD_OPERATORS else None
        if target is not None:
            folder, skipped = target, command.joiner if skipped is None else skipped
            continue
        joiner = skipped if skipped is not None and command.joiner == "&&" else command.joiner
        joiner, skipped = joiner if placed else "", None
        keywords = tuple([word for word in command.keywords if word not in _NO_CHANGE])
        placed.append(PlacedCommand(folder, replace(command, joiner=joiner, keywords=keywords)))
        if command.argv[:1] in _MOVES:
            folder = f"$({' '.join(command.argv)})"
    return tuple(placed) or (PlacedCommand(folder, SimpleCommand(("cd", folder))),), folder


@lru_cache(maxsize=4096)
def shell_normal_form(line: str, cwd: str | None) -> tuple[Any, ...] | None:
    """Return the normal form of a command line run in `cwd`, as tuples (see `place_commands`).

    The folder of a line with subshells is left out; None for a line that cannot be read.
    """
    placed = place_commands(line, cwd)
    if placed is None:
        commands = parse_command(line)
        return tuple([_parts(command, "") for command in commands]) if commands else None
    home = cwd or ""
    return tuple([_parts(each.command, "" if each.folder == home else each.folder) for each in placed])


def _folder_after(command: SimpleCommand, folder: str) -> str | None:
    """Return the folder after a plain `cd X`; None for anything else."""
    if command.joiner not in _CD_OPERATORS or command.argv[:1] != ("cd",) or len(command.argv) != 2:
        return None
    if command.redirects or command.assignments or command.keywords:
        return None
    place = command.argv[1]
    return None if set(place) & set("$*?[{`") or place == "-" else join_path(folder, place)


def _parts(command: SimpleCommand, folder: str) -> tuple[Any, ...]:
    return (
        command.joiner,
        folder,
        command.keywords,
        command.assignments,
        command.argv,
        command.redirects,
        command.heredoc,
    )
