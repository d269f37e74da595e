"""Lists of commands: which of them is run in any case, in which folder, and who hears its messages.

After XCU 2.9.2 and 2.9.3 of POSIX.1-2017: a pipeline ends as its last command does, `&&` and `||` are taken
from left to right, and what runs in the background changes no folder.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from tracemill.harnesses.shell.operations import join_path
from tracemill.harnesses.shell.parse_line import Simple

MERGED = ("2>&", "1")
"""The redirect that sends messages where the output goes."""
_IDLE = (("||", ("true",)), ("||", (":",)), ("|", ("cat",)))
_DOES_NOTHING = frozenset(argv for _, argv in _IDLE)
ON = frozenset({"", "&&", ";"})
"""Signs behind which a `cd` is done in the shell itself."""
_CHANGING = "cd pushd popd export declare local read unset alias eval exec exit return source . shopt trap"
_OF_THE_SHELL = frozenset(_CHANGING.split())
_STARTS = ("", ";", "&")
PLAIN_PATH = re.compile(r"^(?:~(?:/[\w./@+-]*)?|[\w./@+-]+)$")
"""A path in which the shell expands nothing but the home folder."""


class Walk:
    """The folder in which the commands of a line run, one after the other.

    `doubt` is empty where the next command runs in `folder` or not at all; else it names the folders of the
    `cd` without which it runs elsewhere, `;` before each, or `&&` where it depends on what is before it.
    """

    __slots__ = ("_began", "_chained", "_entered", "_joiner", "doubt", "folder")

    def __init__(self, folder: str) -> None:
        self.folder = self._began = folder
        self.doubt = self._entered = ""
        self._chained = False
        self._joiner: str | None = None

    def comes_to(self, joiner: str) -> None:
        """Takes the sign before a command."""
        if joiner == "&":
            self.folder = self._began
        elif joiner in (";", "||"):
            self.doubt += self._entered
        if joiner in _STARTS:
            self._chained, self._began = False, self.folder
        if joiner != "&&" and joiner != "|":
            self._entered = ""

    def goes(self, command: Simple) -> bool:
        """Goes to the folder that a plain `cd X` names; False for anything else."""
        folder = _folder_after(command, self.folder)
        if folder is None:
            return False
        if folder[:1] in "/~" and command.argv[1] == folder and not self._chained:
            self.doubt = ""
        if folder != self.folder or self.doubt:
            is_there = f"{self.folder}/".startswith(f"{folder.rstrip('/')}/")
            if self._chained or not is_there:
                self._entered += f"{'&&' if self._chained or self._entered else ';'}{folder}"
        self.folder, self._joiner = folder, self._joined(command.joiner)
        return True

    def stops_at(self, joiner: str) -> str:
        """The sign between a command that is no such `cd`, with this sign before it, and the one before."""
        self._chained = True
        return joiner if self._joiner is None else self._joined(joiner)

    def _joined(self, joiner: str) -> str:
        before, self._joiner = self._joiner, None
        return joiner if before is None or joiner != "&&" else before


def _folder_after(command: Simple, folder: str) -> str | None:
    """The folder after a plain `cd X`; None for anything else."""
    if command.joiner not in ON or command.argv[:1] != ("cd",) or len(command.argv) != 2:
        return None
    if _redirected(command) or command.assignments or command.keywords:
        return None
    return join_path(folder, command.argv[1]) if PLAIN_PATH.match(command.argv[1]) else None


def _redirected(command: Simple) -> bool:
    """Whether its output or input is another than the shell's."""
    return bool(command.redirects) and any(each != MERGED for each in command.redirects)


def with_plain_pipes(commands: Sequence[Simple]) -> Sequence[Simple]:
    """The commands with `2>&1 |` for `|&`."""
    if "|&" not in [each.joiner for each in commands]:
        return commands
    joiners = [each.joiner for each in commands[1:]] + [""]
    return [
        replace(
            each,
            joiner="|" if each.joiner == "|&" else each.joiner,
            redirects=(*each.redirects, MERGED) if after == "|&" else each.redirects,
        )
        for each, after in zip(commands, joiners, strict=True)
    ]


def drop_idle_commands(commands: Sequence[Simple]) -> Sequence[Simple]:
    """The commands without `|| true` and `| cat` where that changes nothing; what is behind them and `&&` is
    done in any case, so it is joined by `;`. Lines with loops, `set` or background work stay as they are."""
    if _DOES_NOTHING.isdisjoint([each.argv for each in commands]):
        return commands
    if any(each.keywords or each.joiner == "&" or each.argv[:1] == ("set",) for each in commands):
        return commands
    kept = list(commands)
    place = len(kept) - 1
    while place > 0:
        after = kept[place + 1].joiner if place + 1 < len(kept) else ""
        if _is_idle(kept[place]) and _may_go(kept, place, after):
            if after == "&&":
                kept[place + 1] = replace(kept[place + 1], joiner=";")
            del kept[place]
            place = len(kept)
        place -= 1
    return kept


def _is_idle(command: Simple) -> bool:
    if (command.joiner, command.argv) not in _IDLE:
        return False
    return not (_redirected(command) or command.assignments) and command.heredoc is None


def _may_go(commands: Sequence[Simple], place: int, after: str) -> bool:
    """Whether a command that does nothing, with the sign `after` behind it, can be left out."""
    if commands[place].joiner == "||":
        return after in ("", ";", "&&")
    start = place
    while commands[start].joiner == "|":
        start -= 1
    if any(not each.argv or each.argv[0] in _OF_THE_SHELL for each in commands[start:place]):
        return False  # in a pipe it changes a shell of its own
    return after in ("", ";", "|") or (after == "&&" and commands[start].joiner in ("", ";"))


def list_redirects(command: Simple, after: str, commands: Sequence[Simple]) -> tuple[tuple[str, str], ...]:
    """The redirects of a command of a line, with the sign `after` behind it: without `2>&1` where messages
    come to the same place anyway, because the output is neither piped on nor written to a file before."""
    redirects = command.redirects
    if MERGED not in redirects or after == "|":
        return redirects
    before = redirects[: redirects.index(MERGED)]
    others = tuple([each for each in redirects if each != MERGED])
    if any(operator[:1] != "<" for operator, _ in before) or any("&" in operator for operator, _ in others):
        return redirects
    if any(each.keywords for each in commands) and any(each.joiner == "|" for each in commands):
        return redirects  # a loop may be piped on as a whole
    return others


def merges_stderr_only(command: Simple) -> bool:
    """True where messages go where the output goes, and that nowhere else."""
    redirects = command.redirects
    return MERGED in redirects and all(each == MERGED or each[0][:1] == "<" for each in redirects)


def without_stderr_merge(redirects: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """The redirects without `2>&1`."""
    return tuple([each for each in redirects if each != MERGED])
