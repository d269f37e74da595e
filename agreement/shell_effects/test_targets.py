"""Derive what a test run selects: files, node ids and expressions."""

import re
from typing import Any

from tracemill.agreement.calls.effect import ActionEffect
from tracemill.harnesses.core.vocabulary import Operation
from tracemill.harnesses.shell.operations import join_path, unwrap_operation_command
from tracemill.harnesses.shell.program_tables import RUNNERS

_OUTPUT_OPTIONS = re.compile(
    r"-[vqxsl]+|-r[fEsxXpPwaAN]+|--(?:verbose|quiet|exitfirst|no-header|no-summary|color|tb|durations|maxfail|"
    r"capture|disable-warnings|showlocals|nocapture|silent|info|stacktrace|console)(?:=.*)?|-p|no:\S+|-B|-ntp"
)
_WITH_VALUE = frozenset({"-k", "-m", "-run", "--run", "-t", "--filter", "-Dtest", "-pl", "-count"})
_PACKAGE = ("-p", "--package")
_NAMED = re.compile(r"(?!/usr/bin/|/bin/)[\w.~/-]*/|python(?!3?$)")
_VARIABLE = re.compile(r"[A-Za-z_]\w*\+?=")
_PYTHON = re.compile(r"python[\d.]*")
_SAME_RUNNER = {"py.test": "pytest", "gradlew": "gradle", "mvnw": "mvn"}
_SCRIPTS = frozenset({"npm", "pnpm", "yarn", "bun"})
"""Programs whose `run test` is `test`."""
_PATH = re.compile(r"[\w./@+-]+(?:::[\w:.\[\]-]+)?")


def build_test_effect(argv: tuple[str, ...], folder: str, assignments: tuple[str, ...] = ()) -> ActionEffect:
    """Return the effect of running tests: the runner and what is selected.

    Verbosity, stopping early and the order of targets do not count. A runner or interpreter named by its path
    or version, run in an environment (`poetry run`) or with variables set (`CI=1 pytest`) is another effect.
    The intent has the files without node ids; where no file is named, everything selected and the folder.
    """
    words = unwrap_operation_command(argv)
    name = words[0].rsplit("/", 1)[-1]
    runner = _SAME_RUNNER.get(name) or ("python" if _PYTHON.fullmatch(name) else name)
    before = argv[: len(argv) - len(words) + 1]
    environment = [join_path(folder, word) for word in before if _NAMED.match(word) or word in RUNNERS]
    variables = sorted((*assignments, *(word for word in before if _VARIABLE.match(word))))
    selected: set[Any] = set()
    files: set[str] = set()
    rest = list(words[2:] if runner in _SCRIPTS and words[1:2] == ("run",) else words[1:])
    while rest:
        word = rest.pop(0)
        if runner == "cargo" and word in _PACKAGE and rest:
            selected.add(("--package", rest.pop(0)))
        elif word in _WITH_VALUE and rest:
            selected.add((word, rest.pop(0)))
        elif not _OUTPUT_OPTIONS.fullmatch(word):
            verbatim = word.startswith("-") or not ("/" in word or ".py" in word) or not _PATH.fullmatch(word)
            target = word if verbatim else join_path(folder, word)
            selected.add(target)
            if not word.startswith("-"):
                files.add(re.split(r"::|#", target)[0])
    chosen = tuple(sorted(map(str, selected)))
    named = any("/" in name or "." in name for name in files)
    intent = ("test", runner, tuple(sorted(files))) if named else ("test", runner, folder, chosen)
    return ActionEffect(
        Operation.RUN_TEST, ("test", runner, folder, chosen, *environment, *variables), intent, True
    )
