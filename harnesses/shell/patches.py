"""Parse patches between `*** Begin Patch` and `*** End Patch`, given to a tool or on a command line.

The syntax is that of Codex (https://github.com/openai/codex, apply-patch). A hunk begins with `@@`,
optionally followed by a line that stands before the hunk in the file; several such lines narrow the place
down one after the other. `*** End of File` ties a hunk to the end of its file.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from tracemill.harnesses.shell.operations import join_path
from tracemill.harnesses.shell.parse_line import SimpleCommand, parse_command

Kind = Literal["Add", "Update", "Delete"]
PATCH_TOOL = "apply_patch"
SHELLS = frozenset({"bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/usr/bin/bash", "/bin/zsh"})
RUN_LINE = frozenset({"-c", "-lc"})
"""Shell options that run the next word as a command line."""
PROGRAMS = frozenset({PATCH_TOOL, "applypatch"})
_HEADER = re.compile(r"^\s*\*\*\* (Add|Update|Delete) File: (.+?)\s*$")
_HEADERS = re.compile(r"^(\*\*\* (?:(?:Add|Update|Delete) File|Move to): )(.+?)[ \t]*$", re.MULTILINE)
_MOVE = "*** Move to: "
_END_OF_FILE = "*** End of File"
_HEREDOC = re.compile(r"<<\s*(['\"]?)(\w+)\1\n(.*)\n\2", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Hunk:
    """One change of a file: it replaces the lines `old` by `new`, after the lines `anchors`.

    Each anchor is searched for after the one before. With `at_end` the old lines are the last of the file.
    """

    anchors: tuple[str, ...] = ()
    old: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    at_end: bool = False


@dataclass(frozen=True, slots=True)
class FilePatch:
    """The changes of a patch to one file.

    An added file has one hunk with its lines; `moved_to` is the file's new path. `readable` is False if a
    line is not valid: such a patch is refused.
    """

    kind: Kind
    path: str
    hunks: tuple[Hunk, ...] = ()
    moved_to: str | None = None
    readable: bool = True


@dataclass(slots=True)
class _Lines:
    """The lines of a patch with a read position."""

    lines: list[str]
    at: int = 0
    readable: bool = field(default=True)

    def next(self) -> str | None:
        """Return the line at the position, None at the end of the patch."""
        line = self.lines[self.at] if self.at < len(self.lines) else None
        return None if line is None or line.strip() == "*** End Patch" else line


@lru_cache(maxsize=512)
def read_patch(patch: str) -> tuple[FilePatch, ...]:
    """Return the files of a patch in order, none if it names no file."""
    inner = _HEREDOC.fullmatch(patch.strip())
    text = _Lines((inner[3] if inner else patch).strip().split("\n"))
    files: list[FilePatch] = []
    while (line := text.next()) is not None:
        header = _HEADER.match(line)
        text.at += 1
        if header:
            files.append(_file(header[1], header[2], text))
    return tuple(files)


def _file(kind: str, path: str, text: _Lines) -> FilePatch:
    text.readable = True
    if kind == "Delete":
        return FilePatch("Delete", path)
    if kind == "Add":
        hunk = Hunk(new=_added(text))
        return FilePatch("Add", path, (hunk,), readable=text.readable)
    moved, hunks = None, []
    if (line := text.next()) is not None and line.startswith(_MOVE):
        moved = line[len(_MOVE) :].strip()
        text.at += 1
    while (line := text.next()) is not None and not _HEADER.match(line):
        if line.strip():
            hunks.append(_hunk(text, bool(hunks)))
        else:
            text.at += 1
    return FilePatch("Update", path, tuple(hunks), moved, text.readable and bool(hunks or moved))


def _added(text: _Lines) -> tuple[str, ...]:
    lines: list[str] = []
    while (line := text.next()) is not None and not _HEADER.match(line):
        text.readable = text.readable and (line.startswith("+") or not line.strip())
        if line.startswith("+"):
            lines.append(line[1:])
        text.at += 1
    return tuple(lines)


def _hunk(text: _Lines, marked: bool) -> Hunk:
    """Parse the hunk at the position; except for the first of a file it must begin with `@@`."""
    anchors: list[str] = []
    begun = text.at
    while (line := text.next()) is not None and (line == "@@" or line.startswith("@@ ")):
        anchors += [line[3:]] if line[3:].strip() else []
        text.at += 1
    text.readable = text.readable and (text.at > begun or not marked)
    old: list[str] = []
    new: list[str] = []
    begun = text.at
    while (line := text.next()) is not None:
        sign, rest = line[:1], line[1:]
        if sign not in ("", " ", "+", "-") or _HEADER.match(line):
            break
        old += [rest] if sign != "+" else []
        new += [rest] if sign != "-" else []
        text.at += 1
    ends = line is not None and line.strip() == _END_OF_FILE
    text.at += ends
    if text.at == begun:  # an empty hunk: the line is not valid
        text.readable = False
        text.at += 1
    return Hunk(tuple(anchors), tuple(old), tuple(new), ends)


def find_applied_patch(command: Any, line: str | None, folder: str) -> str | None:
    """Return the patch that a shell call applies, None if it does anything else.

    `command` is the argument that holds the command (words or text), `line` its command line. Paths are
    relative to `folder` ("" for none), and to the folder of a preceding `cd`: `cd sub && apply_patch
    <<'EOF'`.
    """
    if isinstance(command, list) and len(command) == 2 and command[0] in PROGRAMS:
        applied = ("", command[1]) if isinstance(command[1], str) else None
    else:
        applied = _on_line(line) if line else None
    if applied is None or not read_patch(applied[1]):
        return None
    return _relative_to(join_path(folder, applied[0]) if applied[0] else folder, applied[1].strip())


def _on_line(line: str) -> tuple[str, str] | None:
    """Return (folder, patch) of a command line that applies a patch and does nothing else."""
    commands = list(parse_command(line) or ())
    if not commands or len(commands) > 2:
        return None
    last = commands[-1]
    words = list(last.argv)
    if len(commands) == 1 and len(words) == 3 and words[0] in SHELLS and words[1] in RUN_LINE:
        return None if last.redirects or last.heredoc is not None else _on_line(_unquote(words[2]))
    folder = ""
    if len(commands) == 2:
        change_folder = commands[0]
        if (
            change_folder.argv[:1] != ("cd",)
            or len(change_folder.argv) != 2
            or change_folder.redirects
            or last.joiner != "&&"
        ):
            return None
        folder = change_folder.argv[1]
    text = _patch_argument(last)
    return None if text is None else (folder, text)


def _patch_argument(command: SimpleCommand) -> str | None:
    """Return the patch that `apply_patch` gets as argument or here-document, None for another command."""
    words = list(command.argv)
    if not words or words[0] not in PROGRAMS or command.keywords or command.assignments:
        return None
    redirects = [each for each in command.redirects if each[0] != "<<"]
    if len(words) == 1 and command.heredoc is not None and not redirects:
        return command.heredoc
    alone = len(words) == 2 and command.heredoc is None and not command.redirects
    return _unquote(words[1]) if alone else None


def _unquote(word: str) -> str:
    """Return a word without the quotes that parsing keeps around a `$`."""
    quoted = len(word) > 1 and word[0] == word[-1] == "'" and "'" not in word[1:-1]
    return word[1:-1] if quoted else word


def _relative_to(folder: str, patch: str) -> str:
    if not folder:
        return patch
    return _HEADERS.sub(lambda match: match[1] + join_path(folder, match[2]), patch)
