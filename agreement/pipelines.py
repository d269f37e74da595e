"""Pipelines in one spelling where several do the same."""

from collections.abc import Sequence
from typing import Any

Part = tuple[Any, ...]
"""(folder, words, assignments, redirects, here-document) of one command."""

_FILTERS = "grep egrep fgrep head tail cut awk sort tac nl uniq rev"
_TAKE_FILES = frozenset(_FILTERS.split())
_WITH_VALUE = """-name -iname -type -size -mtime -mmin -atime -amin -ctime -cmin -perm -user -group -newer
    -path -maxdepth -mindepth -newermt -regex -iregex"""
_TESTS_WITH_VALUE = frozenset(_WITH_VALUE.split())


def normal_pipeline(parts: Sequence[Part]) -> tuple[Part, ...]:
    """The pipeline with one command for `cat FILE | COMMAND` and for `sort | uniq`, with `find` handing what
    it finds to the next command, its tests in alphabetical order, and paths without a slash at their end."""
    found = [(part[0], _without_slashes(part[1]), *part[2:]) for part in parts]
    if len(found) > 1 and len(found[0][1]) == 2 and found[0][1][0] == "cat" and _plain(found[0]):
        head, following = found[0], found[1]
        if following[1] and following[1][0] in _TAKE_FILES and not head[1][1].startswith("-"):
            found[:2] = [(following[0], (*following[1], head[1][1]), *following[2:])]
    if found and found[0][1][:1] == ("find",):
        found = _found_first(found)
    for place in range(len(found) - 1, 0, -1):
        if found[place][1] == ("uniq",) and found[place - 1][1][:1] == ("sort",) and _plain(found[place]):
            before = found[place - 1]
            found[place - 1 : place + 1] = [(before[0], ("sort", "-u", *before[1][1:]), *before[2:])]
    return tuple(found)


def _plain(part: Part) -> bool:
    return not part[2] and not part[3] and part[4] is None


def _without_slashes(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word.rstrip("/") if word.startswith("/") and len(word) > 1 else word for word in words)


def _found_first(found: list[Part]) -> list[Part]:
    """`find` with sorted tests; `-exec C {} +`, `-exec C {} \\;` and `| xargs C` are one."""
    words = list(found[0][1][1:])
    places: list[str] = []
    while words and not words[0].startswith(("-", "(", "!")):
        places.append(words.pop(0))
    tests: list[tuple[str, ...]] = []
    then: tuple[str, ...] = ()
    while words:
        test = words.pop(0)
        if test == "-exec" and words[-1:] in (["+"], [";"], ["\\;"]):
            then = tuple(word for word in words[:-1] if word != "{}")
            words = []
        elif test in _TESTS_WITH_VALUE and words:
            tests.append((test, words.pop(0)))
        elif test.startswith("-") and test not in ("-o", "-not", "-or"):
            tests.append((test,))
        else:
            return found
    rest = found[1:]
    if not then and rest and rest[0][1][:1] == ("xargs",) and _plain(rest[0]):
        given = [word for word in rest[0][1][1:] if word not in ("-0", "-r", "{}")]
        then, rest = tuple(given), rest[1:]
    tests = [test for test in tests if test not in (("-print",), ("-print0",))]
    return [(found[0][0], ("find", *places, *sorted(tests), "then", *then), *found[0][2:]), *rest]
