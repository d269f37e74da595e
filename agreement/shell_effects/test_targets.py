"""What a test run selects: files, node ids and expressions, whatever else it is told."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tracemill.agreement.calls.effect import Deed
from tracemill.harnesses.core.vocabulary import Operation
from tracemill.harnesses.shell.operations import join_path, unwrap_operation_command
from tracemill.harnesses.shell.parse_line import Simple
from tracemill.harnesses.shell.program_tables import RUNNERS

_SAYS_MORE_OR_LESS = re.compile(
    r"-[vqxsl]+|-r[fEsxXpPwaAN]+|--(?:verbose|quiet|exitfirst|no-header|no-summary|color|tb|durations|maxfail|"
    r"capture|disable-warnings|showlocals|nocapture|silent|info|stacktrace|console)(?:=.*)?|-p|no:\S+|-B|-ntp"
)
_WITH_VALUE = frozenset({"-k", "-m", "-run", "--run", "-t", "--filter", "-Dtest", "-pl", "-count"})
_PACKAGE = ("-p", "--package")
_NAMED = re.compile(r"(?!/usr/bin/|/bin/)[\w.~/-]*/|python(?!3?$)")
_NO_LINES = re.compile(r"-?0+")
_PYTHON = re.compile(r"python[\d.]*")
_MODULE = re.compile(r"([a-z_]\w*(?:\.[a-z_]\w*)*)(?:\.([A-Z][\w.]*))?")
_SAME_RUNNER = {"py.test": "pytest", "gradlew": "gradle", "mvnw": "mvn"}
_PATH = re.compile(r"[\w./@+-]+(?:::[\w:.\[\]-]+)?")


def test_deed(argv: tuple[str, ...], folder: str) -> Deed:
    """Running tests: the runner and what is selected. How much it prints and where it stops counts for
    nothing, and the order of targets neither. A runner or interpreter that is named by its place or version,
    or run in an environment (`poetry run`), has another effect. The intent leaves out node ids below the
    file; where no file is named it has all that selects, and the folder."""
    words = unwrap_operation_command(argv)
    name = words[0].rsplit("/", 1)[-1]
    runner = _SAME_RUNNER.get(name) or ("python" if _PYTHON.fullmatch(name) else name)
    before = argv[: len(argv) - len(words) + 1]
    with_what = (join_path(folder, word) for word in before if _NAMED.match(word) or word in RUNNERS)
    selected: set[Any] = set()
    files: set[str] = set()
    rest = list(words[1:])
    by_module = runner == "unittest" and "discover" not in rest
    while rest:
        word = rest.pop(0)
        if runner == "cargo" and word in _PACKAGE and rest:
            selected.add(("--package", rest.pop(0)))
        elif word in _WITH_VALUE and rest:
            selected.add((word, rest.pop(0)))
        elif not _SAYS_MORE_OR_LESS.fullmatch(word):
            word = _file_of_module(word) if by_module else word
            path = word.startswith("-") or not ("/" in word or ".py" in word) or not _PATH.fullmatch(word)
            target = word if path else join_path(folder, word)
            selected.add(target)
            if not word.startswith("-"):
                files.add(re.split(r"::|#", target)[0])
    chosen = tuple(sorted(map(str, selected)))
    named = any("/" in name or "." in name for name in files)
    intent = ("test", runner, tuple(sorted(files))) if named else ("test", runner, folder, chosen)
    return Deed(Operation.RUN_TEST, ("test", runner, folder, chosen, *with_what), intent, True)


def selected_tests_through_pipe(deed: Deed, commands: Sequence[Simple]) -> Deed:
    """A test run, the first of the commands of a pipeline: with another effect where variables are set for
    it, where its output is kept in a file, or where less of it is seen, because it is filtered, thrown away
    or cut to nothing. Cut to some lines it is the same."""
    told: list[Any] = [each for command in commands for each in command.redirects if each[0][:1] != "<"]
    told += [command.assignments for command in commands if command.assignments]
    told += [command.argv for command in commands[1:] if not _shows_some(command.argv)]
    return replace(deed, effect=(*deed.effect, tuple(told))) if told else deed


def _shows_some(argv: tuple[str, ...]) -> bool:
    return argv[:1] not in (("grep",), ("tee",)) and not (
        argv[0] in ("head", "tail") and any(map(_NO_LINES.fullmatch, argv))
    )


def _file_of_module(word: str) -> str:
    """`tests/a.py::B.c` for what unittest calls `tests.a.B.c`."""
    found = _MODULE.fullmatch(word)
    if found is None or word.endswith(".py"):
        return word
    return f"{found[1].replace('.', '/')}.py" + (f"::{found[2]}" if found[2] else "")
