"""Normalise searches: grep, rg, find, and native tools for text and names."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tracemill.agreement.calls.effect import ActionEffect, build_search_effect
from tracemill.agreement.shell.pipelines import parse_pipeline_find
from tracemill.harnesses.shell.operations import join_path

GREPS = {"grep": "", "egrep": "E", "fgrep": "F", "rg": "E", "zgrep": ""}
"""Programs that search texts, and the option that their kind of pattern is one of `grep`."""
_GREP_VALUES = {
    "-e",
    "--regexp",
    "-A",
    "-B",
    "-C",
    "-m",
    "--context",
    "-g",
    "--glob",
    "-t",
    "--type",
    "--max-count",
}
_GREP_VALUES |= {"--include", "--exclude", "--exclude-dir"}
_CONTEXT = frozenset({"-A", "-B", "-C", "-m", "--context", "--max-count"})
_FILES = {
    "--include": "",
    "-g": "",
    "--glob": "",
    "--exclude": "not ",
    "--exclude-dir": "not ",
    "-t": "type ",
}
_FILES["--type"] = "type "
_COUNTED = {letter: letter for letter in "EFPilcvwoLxqzUuS"}
_VALUED = {"rg": "dEfjMrT"}
"""Letters with a value that changes what is found; of grep "dDf"."""
_LONG = {"--ignore-case": "i", "--files-with-matches": "l", "--count": "c", "--invert-match": "v"}
_LONG |= {"--word-regexp": "w", "--only-matching": "o"}
_ACTIONS = frozenset(
    {
        "-exec",
        "-delete",
        "-execdir",
        "-ok",
        "-printf",
        "-print0",
        "-fprint",
        "-o",
        "-or",
        "!",
        "-not",
        "-prune",
    }
)
_NATIVE = ("case_sensitive", "exclude_pattern", "fixed_strings", "names_only", "no_ignore")
"""Options of native searches that change the hits."""
_PATTERNS = ("pattern", "query", "regex", "Query")
_NAME_PATTERNS = ("pattern", "glob_pattern", "file_pattern", "query", "file_name")
_PLACES = ("path", "dir_path", "directory", "dir", "folder", "target_directory", "SearchPath")
_IN_FILES = ("glob", "include", "file_pattern", "include_pattern", "includePattern")
_LAYOUT = re.compile(r"--(?:color|line-number|no-h|recursive$)")
_LETTERS = re.compile(r"-[A-Za-z]+")
_AROUND = re.compile(r"-[ABCm]?\d+")
_TEST = re.compile(r"-[a-z]")


def parse_search_command(words: Sequence[str], folder: str, then: tuple[Any, ...]) -> ActionEffect | None:
    """Parse a command as a search; None if it is not one, or has unknown options."""
    program = words[0].rsplit("/", 1)[-1] if words else ""
    if program in GREPS:
        return _grep(list(words[1:]), folder, then, _VALUED.get(program, "dDf"), GREPS[program])
    if program == "git" and words[1:2] == ("grep",):
        return _grep(list(words[2:]), folder, then, "fO")
    return _find(list(words[1:]), folder, then) if program == "find" else None


def parse_find_search(argv: tuple[str, ...], folder: str, then: tuple[Any, ...]) -> ActionEffect | None:
    """Parse a `find` with `grep` on its hits as a search.

    `find . -name '*.py' | xargs grep X` is `grep -r --include='*.py' X .`.
    """
    found = parse_pipeline_find(argv)
    if found is None or not found.then or found.then[0] not in GREPS:
        return None
    names = [test[1] for test in found.tests if test[0] == "-name"]
    if len(names) != len(found.tests):
        return None
    includes = (f"--include={name}" for name in names)
    words = (*(word for word in found.then if word != "/dev/null"), *includes, *(found.places or (".",)))
    return parse_search_command(words, folder, then)


def parse_term_search(
    name: str, arguments: Mapping[str, Any], cwd: str | None, opened: str | None
) -> ActionEffect | None:
    """Return the search for a `search_term`; None for other arguments.

    `search_file` searches one file, by default the open one (`opened`); `search_dir` searches a folder and
    lists files with counts.
    """
    term, place = arguments.get("search_term"), arguments.get("file") or arguments.get("dir")
    if not isinstance(term, str) or not arguments.keys() <= {"search_term", "file", "dir"}:
        return None
    here = opened if name == "search_file" else cwd or "."
    scope = join_path(cwd or "", place) if isinstance(place, str) else here
    counts = frozenset("lc" if name == "search_dir" else ())
    return build_search_effect("text", term, (scope,), counts) if scope else None


def parse_native_search(arguments: Mapping[str, Any], cwd: str | None) -> ActionEffect | None:
    """Parse a tool call with a `pattern` as a text search; None without a pattern."""
    pattern = _first_text(arguments, _PATTERNS)
    if pattern is None:
        return None
    scope = _first_text(arguments, _PLACES) or cwd or "."
    options = {"E", "i"} if arguments.get("-i") else {"E"}
    for name, prefix in (*((each, "") for each in _IN_FILES), ("type", "type ")):
        if isinstance(arguments.get(name), str):
            options.add(f"in {prefix}{_name(arguments[name])}")
    options |= {f"{name} {arguments[name]}" for name in _NATIVE if arguments.get(name)}
    mode = arguments.get("output_mode", "files_with_matches")
    if mode in ("files_with_matches", "count"):
        options.add("l" if mode == "files_with_matches" else "c")
    if arguments.get("multiline"):
        options.add("multiline")
    return build_search_effect("text", pattern, (scope,), frozenset(options))


def parse_name_search(arguments: Mapping[str, Any], cwd: str | None) -> ActionEffect | None:
    """Parse a tool call with a `pattern` as a name search; None without a pattern."""
    pattern = _first_text(arguments, _NAME_PATTERNS)
    scope = _first_text(arguments, _PLACES) or cwd or "."
    if pattern is None:
        return None
    options = frozenset(f"{name} {arguments[name]}" for name in _NATIVE if arguments.get(name))
    return build_search_effect("name", _name(pattern), (scope,), options)


def _first_text(arguments: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((arguments[name] for name in names if isinstance(arguments.get(name), str)), None)


def _name(pattern: str) -> str:
    return pattern.removeprefix("./").removeprefix("**/")


def _grep(
    words: list[str], folder: str, then: tuple[Any, ...], valued: str, kind: str = ""
) -> ActionEffect | None:
    patterns: list[str] = []
    operands: list[str] = []
    options = set(kind)
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if name in _GREP_VALUES and not equals:
            if not words:
                return None
            value = words.pop(0)
        if name in ("-e", "--regexp"):
            patterns.append(value)
        elif name in _FILES:
            options.add(f"in {_FILES[name]}{_name(value)}")
        elif word.startswith("--"):
            options |= {_LONG[name]} if name in _LONG else set()
            if name not in _LONG and name not in _CONTEXT and not _LAYOUT.match(name):
                return None
        elif _LETTERS.fullmatch(word):
            if not set(valued).isdisjoint(word):
                return None
            if word[-1] in "ABCm" and words and words[0].isdigit():
                words.pop(0)
            options |= {_COUNTED[letter] for letter in word[1:] if letter in _COUNTED}
        elif word not in _CONTEXT and not _AROUND.fullmatch(word):
            operands.append(word)
    if not patterns and operands:
        patterns.append(operands.pop(0))
    if not patterns:
        return None
    if "S" in options and all(each == each.lower() for each in patterns):
        options.add("i")
    options.discard("S")
    pattern = "|".join(patterns)
    scope = tuple(sorted(join_path(folder or ".", each) for each in operands or ["."]))
    return build_search_effect("text", pattern, scope, frozenset(options), *then)


def _find(words: list[str], folder: str, then: tuple[Any, ...]) -> ActionEffect | None:
    places: list[str] = []
    while words and not words[0].startswith(("-", "(", "!")):
        places.append(words.pop(0))
    tests: set[str] = set()
    names: list[str] = []
    while words:
        test = words.pop(0)
        if test in _ACTIONS or not test.startswith("-"):
            return None
        if test == "-print":
            continue
        value = words.pop(0) if words and not _TEST.match(words[0]) else ""
        if test in ("-name", "-iname"):
            names.append(_name(value))
            tests |= {"i"} if test == "-iname" else set()
        elif (test, value) != ("-type", "f") or then:
            tests.add(f"{test} {value}")
    scope = tuple(sorted(join_path(folder or ".", each) for each in places or ["."]))
    return build_search_effect("name", " and ".join(sorted(names)), scope, frozenset(tests), *then)
