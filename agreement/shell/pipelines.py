"""Rewrite equivalent shell pipelines to one canonical form."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tracemill.harnesses.core.vocabulary import Operation
from tracemill.harnesses.shell.parse_line import SimpleCommand
from tracemill.harnesses.shell.program_tables import PROGRAMS

Part = tuple[Any, ...]
"""(folder, words, assignments, redirects, here-document) of one command."""

_FILTERS = "cat grep egrep fgrep head tail cut awk sort tac nl uniq rev wc xxd od md5sum sha1sum sha256sum jq"
_TAKE_FILES = frozenset(_FILTERS.split())
_GREPS = ("egrep", "fgrep", "grep")
_TELL_FILES_APART = (*_GREPS, "head", "tail", "wc")
"""Programs that print more for several files than for each alone: their names, or a total."""
_NAMING = re.compile(r"-[a-zA-Z]*[hHlLq][a-zA-Z]*")
"""Options by which `grep` prints the same for one file as for several."""
_READ_FILES = frozenset(["md5sum", "sha1sum", "sha256sum", "cksum", "zcat"])
_WITH_VALUE = """-name -iname -type -size -mtime -mmin -atime -amin -ctime -cmin -perm -user -group -newer
    -path -maxdepth -mindepth -newermt -regex -iregex"""
_TESTS_WITH_VALUE = frozenset(_WITH_VALUE.split())
_IS_FILE = ("-type", "f")
_LAST_SLASHES = re.compile(r"(?<=[^*/])/+$")
_SLASH_COUNTS = (("echo",), ("printf",), ("rsync",))
_XARGS = re.compile(r"-0|-r|-I\S*|-i\S*|-n1?|1|\{\}|@|%|--null|--no-run-if-empty")
_HITS = ("{}", "@", "%")
_ENDS = (["+"], [";"], ["\\;"])


@dataclass(frozen=True, slots=True)
class FindQuery:
    """A parsed `find` command.

    `places` are its start paths, `tests` its tests in alphabetical order, `then` the command that it runs for
    each match, without its `{}`.
    """

    places: tuple[str, ...]
    tests: tuple[tuple[str, ...], ...]
    then: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """Return the canonical words of the command: `find`, places, tests, `then`, its command."""
        return ("find", *self.places, *(word for test in self.tests for word in test), "then", *self.then)


def drop_cat_from_pipeline(commands: Sequence[SimpleCommand]) -> tuple[SimpleCommand, ...]:
    """Return the pipeline with `FILTER FILE` for `cat FILE | FILTER` and for `FILTER < FILE`."""
    if len(commands) == 1 and not commands[0].redirects:
        return tuple(commands)
    first, rest = commands[0], list(commands[1:])
    if first.redirects and first.redirects[0][0] == "<" and len(first.redirects) == 1:
        given, bare = first.redirects[0][1], replace(first, redirects=())
        if _reads_file_operand(first):
            first = replace(bare, argv=(*first.argv, given))
        elif first.argv[:1] == ("tr",):
            first, rest = replace(bare, argv=("cat", given)), [replace(bare, joiner="|"), *rest]
    name = first.argv[1] if len(first.argv) == 2 and first.argv[0] == "cat" else "-"
    if (
        rest
        and not name.startswith("-")
        and _reads_file_operand(rest[0])
        and not first.redirects
        and not first.assignments
    ):
        first, rest = replace(rest[0], argv=(*rest[0].argv, name), joiner=first.joiner), rest[1:]
    return (first, *rest)


def drop_xargs_from_pipeline(commands: Sequence[SimpleCommand]) -> tuple[SimpleCommand, ...]:
    """Return the pipeline with `find ... -exec C {} +` for `find ... | xargs C`.

    It ends in `;` where `xargs` runs C for each file.
    """
    if len(commands) < 2 or commands[0].argv[:1] != ("find",) or commands[1].argv[:1] != ("xargs",):
        return tuple(commands)
    run = _xargs_command(commands[1].argv[1:])
    found = parse_pipeline_find(commands[0].argv) if run[2:] and not commands[0].redirects else None
    if found is None or found.then:
        return tuple(commands)
    return (
        replace(commands[1], argv=(*commands[0].argv, "-exec", *run), joiner=commands[0].joiner),
        *commands[2:],
    )


def _reads_file_operand(command: SimpleCommand) -> bool:
    if not command.argv or command.heredoc is not None:
        return False
    return command.argv[0] in _TAKE_FILES or _is_sed_of_lines(command.argv)


def _is_sed_of_lines(argv: tuple[str, ...]) -> bool:
    return argv[0] == "sed" and len(argv) == 3 and argv[1] == "-n"


def normal_pipeline(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Return the canonical form of a pipeline.

    `sort | uniq` becomes one command, `find` runs the next command itself and has its tests sorted, and paths
    lose trailing slashes, but for patterns of folders (`*/`).
    """
    found = [(part[0], _without_slashes(part[1]), *part[2:]) for part in parts]
    known = parse_pipeline_find(found[0][1]) if found else None
    if known is not None:
        found[0] = (found[0][0], known.words, *found[0][2:])
    for place in range(len(found) - 1, 0, -1):
        before = found[place - 1]
        if found[place][1] == ("uniq",) and before[1][:1] == ("sort",) and _plain(found[place]):
            found[place - 1 : place + 1] = [(before[0], ("sort", "-u", *before[1][1:]), *before[2:])]
    return tuple(found)


def _plain(part: Part) -> bool:
    return not part[2] and not part[3] and part[4] is None


def _without_slashes(words: tuple[str, ...]) -> tuple[str, ...]:
    if words[:1] in _SLASH_COUNTS:
        return words
    return tuple([_LAST_SLASHES.sub("", word) if word[:1] == "/" else word for word in words])


def parse_pipeline_find(argv: tuple[str, ...]) -> FindQuery | None:
    r"""Return the parts of a `find`; None for other commands and options not known here.

    `-exec C {} +` and `-exec C {} \;` are equal unless C tells several files apart, and for files so are
    `-delete` and `-exec rm`. `-type f` is dropped where only a file can be read.
    """
    if argv[:1] != ("find",):
        return None
    words = list(argv[1:])
    places: list[str] = []
    while words and not words[0].startswith(("-", "(", "!")):
        places.append(words.pop(0))
    tests: set[tuple[str, ...]] = set()
    then: tuple[str, ...] = ()
    one_by_one = False
    while words:
        test = words.pop(0)
        if test == "-exec" and words[-1:] in _ENDS and "-exec" not in words:
            one_by_one = words[-1] != "+"
            then, words = _exec_command(words[:-1]), []
        elif test == "-delete" and not words:
            then = ("rm",) if _IS_FILE in tests else ("-delete",)
        elif test in _TESTS_WITH_VALUE and words:
            tests.add((test, words.pop(0)))
        elif test.startswith("-") and test not in ("-o", "-not", "-or", "-delete", "-exec"):
            tests |= {(test,)} if test not in ("-print", "-print0") else set()
        else:
            return None
    if then and (PROGRAMS.get(then[0]) in (Operation.READ, Operation.SEARCH) or then[0] in _READ_FILES):
        tests.discard(_IS_FILE)
    if one_by_one and _tells_files_apart(then):
        then = ("each", *then)
    return FindQuery(tuple(places), tuple(sorted(tests)), then)


def cuts_pipeline_output(argv: tuple[str, ...]) -> bool:
    """Return whether a program only sorts its input or cuts it off after some lines."""
    return argv[:1] == ("sort",) or (
        len(argv) <= 3 and argv[:1] in (("head",), ("less",), ("more",), ("cat",))
    )


def _xargs_command(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command that `xargs` runs as `-exec` has it, with a placeholder for the hit and its end."""
    start, named, one_by_one = 0, False, False
    while start < len(words) and _XARGS.fullmatch(words[start]):
        named = named or words[start][:2] in ("-I", "-i")
        one_by_one = one_by_one or words[start][:2] in ("-I", "-i", "-n")
        start += 1
    return (*words[start:], *(() if named else ("{}",)), ";" if one_by_one else "+")


def _tells_files_apart(then: tuple[str, ...]) -> bool:
    """Return whether a command prints more for several files than for each of them alone."""
    if not then or then[0] not in _TELL_FILES_APART:
        return False
    return then[0] not in _GREPS or not ("/dev/null" in then or any(map(_NAMING.fullmatch, then)))


def _exec_command(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of the command, without a placeholder that comes last."""
    kept = tuple(words[:-1] if words and words[-1] in _HITS else words)
    if not kept:
        return ()
    kept = tuple("{}" if word in _HITS else word for word in kept)
    return (kept[0], *(word for word in kept[1:] if (kept[0], word) != ("rm", "-f")))
