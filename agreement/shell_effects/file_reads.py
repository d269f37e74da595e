"""Recognise pipelines that show lines of a file: cat, head, tail, sed and awk."""

import re
from collections.abc import Callable, Sequence

from tracemill.agreement.calls.effect import ActionEffect, read_effect
from tracemill.harnesses.shell.operations import join_path
from tracemill.harnesses.shell.parse_line import SimpleCommand

_RANGE = re.compile(r"'?(\d+)(?:,(\d+|\$))? ?p'?")
_FROM = re.compile(r"\+\d+")
_SHOWING = re.compile(r"-[nAbetsv]+|-ba")
_FILE = re.compile(r"(?!-)[\w./~@+-]+")
_NUMBERS = re.compile(r"NR ?>= ?(\d+) ?&& ?NR ?<= ?(\d+)(?: ?\{ ?print(?: \$0)?;? ?\})?")
_COUNT = re.compile(r"-n?(\d+)|--lines=(\d+)")


def parse_file_read(
    commands: Sequence[SimpleCommand], folder: str, total_of: Callable[[str], int | None]
) -> ActionEffect | None:
    """Return the lines of a file that a pipeline shows; None where it does anything else.

    `total_of` gives the number of lines of a file, None where unknown.
    """
    found = _lines_of(commands[0].argv)
    if found is None or found[0] is None:
        return None
    name, first, last = found[0], found[1], found[2]
    for command in commands[1:]:
        further = _lines_of(command.argv)
        if further is None or further[0] is not None or (first, last) != (1, None):
            return None
        _, first, last = further
    path = join_path(folder, name or "")
    return read_effect(path, first, last, total_of(path))


def parse_cat_file_reads(
    command: SimpleCommand, folder: str, total_of: Callable[[str], int | None]
) -> tuple[ActionEffect, ...]:
    """Return a read of each file that one `cat` shows; none where it does anything else."""
    names = [word for word in command.argv[1:] if not _SHOWING.fullmatch(word)]
    if command.argv[:1] != ("cat",) or len(names) < 2 or not all(map(_FILE.fullmatch, names)):
        return ()
    paths = [join_path(folder, name) for name in names]
    return tuple(read_effect(path, 1, None, total_of(path)) for path in paths)


def _lines_of(argv: tuple[str, ...]) -> tuple[str | None, int, int | None] | None:
    """Return (file, first line, last line) of a command that shows lines.

    The file is None for the input of a pipe.
    """
    program = argv[0] if argv else ""
    words = list(argv[1:])
    first, last = 1, None
    if program == "awk":
        found = _NUMBERS.fullmatch(words[0]) if words else None
        if found is None or len(words) != 2:
            return None
        return words[1], int(found[1]), int(found[2])
    if program == "sed":
        if words[:1] != ["-n"] or len(words) not in (2, 3) or not (found := _RANGE.fullmatch(words[1])):
            return None
        first = int(found[1])
        last = None if found[2] == "$" else int(found[2] or found[1])
        words = words[2:]
    elif program == "head":
        last, words = _count(words)
    elif program == "tail":
        if words[:1] == ["-n"] and words[1:2] and _FROM.fullmatch(words[1]):
            first, words = int(words[1]), words[2:]
        else:
            return None
    elif program in ("cat", "nl", "less", "more"):
        words = [word for word in words if not _SHOWING.fullmatch(word)]
    else:
        return None
    if len(words) > 1 or any(word.startswith("-") or "*" in word for word in words):
        return None
    return (words[0] if words else None), first, last


def _count(words: list[str]) -> tuple[int, list[str]]:
    if words[:1] == ["-n"] and words[1:2] and words[1].isdigit():
        return int(words[1]), words[2:]
    if words and (found := _COUNT.fullmatch(words[0])):
        return int(found[1] or found[2]), words[1:]
    return 10, words
