"""What a pipeline is about: the file, folder, program or script that its intent names."""

import posixpath
import re
from collections.abc import Sequence
from typing import Any

from tracemill.agreement.calls.effect import create_intent
from tracemill.agreement.shell.command_lists import MERGED
from tracemill.agreement.shell.pipelines import cuts_pipeline_output, parse_pipeline_find, pipeline_patch_mode
from tracemill.harnesses.core.vocabulary import Operation
from tracemill.harnesses.shell.operations import Effect, join_path, unwrap_operation_command
from tracemill.harnesses.shell.parse_line import Simple

_SUBCOMMAND = re.compile(r" (?!\d)")
"""A program is told what to do by a word behind it, but not by a number."""
_LISTERS = frozenset({"ls", "echo"})
_VERSIONED = re.compile(r"(?:\S*/)?(python|pip)[\d.]*")
_TARGETED = re.compile(r"^(python|pip|gradle|mvn)(?:[\d.]+|w)(?= )")
_COMPARING = (("diff",), ("cmp",))
_OTHER_CHANGES: dict[tuple[str, ...], tuple[str, ...]] = {("mv",): ("moved",)}
_OTHER_CHANGES |= dict.fromkeys([("rm",), ("unlink",), ("rmdir",)], ("removed",))
_OTHER_CHANGES |= dict.fromkeys([("chmod",), ("chown",), ("chgrp",)], ("rights",))
"""Programs that change another thing of a file than its text."""


def find_shell_intent(
    judged: Effect, parts: Sequence[Any], commands: Sequence[Simple], folder: str
) -> tuple[Any, ...]:
    """What a pipeline is about: a file or folder and what is made of it; else its words, or the script."""
    if judged.operation == Operation.CREATE and judged.target:
        return create_intent(judged.target)
    if judged.operation == Operation.LIST and judged.target:
        return ("list", _listed(join_path(folder, judged.target)), *_done(commands, _LISTERS))
    if judged.operation in (Operation.EDIT, Operation.READ) and judged.target:
        through = tuple(part[1][:1] for part in parts[1:] if not cuts_pipeline_output(part[1]))
        done = _done(commands)
        if done == ("cat",) and through:  # what goes through cat is given to the next program
            done, through = through[0], through[1:]
        path = join_path(folder, judged.target)
        if judged.operation == Operation.READ and not judged.mutating and not done:
            return ("read", path, *(commands[0].argv[:1] if commands[0].argv[:1] in _COMPARING else ()))
        tests = _tests_of_changed(commands[0]) if judged.mutating else ()
        manner = _OTHER_CHANGES.get(unwrap_operation_command(commands[-1].argv)[:1], ())
        return (str(judged.operation), path, *manner, *done, *through, *tests, *pipeline_patch_mode(commands))
    scripted = judged.operation != Operation.RUN or _SUBCOMMAND.search(judged.target or "")
    if scripted:
        changes = ("changes",) if judged.operation == Operation.VCS and judged.mutating else ()
        return (str(judged.operation), *changes, _TARGETED.sub(r"\1", judged.target or "") or None)
    return ("run", tuple(_gist(part) for part in parts if not cuts_pipeline_output(part[1])) or tuple(parts))


def _done(commands: Sequence[Simple], but: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The program that a `find` runs for its hits, if it runs one and not one of these."""
    found = parse_pipeline_find(commands[0].argv)
    then = found.then[:1] if found is not None else ()
    return () if but.issuperset(then) else then


def _tests_of_changed(command: Simple) -> tuple[tuple[str, ...], ...]:
    """By what a `find` that changes its hits finds them, but for whether they are files."""
    found = parse_pipeline_find(command.argv)
    return tuple(test for test in found.tests if test != ("-type", "f")) if found is not None else ()


def _listed(path: str) -> str:
    """The folder a listing is of, for a pattern that of the pattern."""
    name = path.rsplit("/", 1)[-1]
    return posixpath.dirname(path) or "." if "*" in name or "?" in name else path


def _gist(part: tuple[Any, ...]) -> tuple[Any, ...]:
    """A part of a pipeline, whether `find` is told that its hits are files or not, whichever version of an
    interpreter runs it and with which variables, and whether its messages are seen or not."""
    folder, words, assignments, redirects, heredoc = part
    if words[:1] == ("find",) and "-type" in words:
        at = words.index("-type")
        words = words if words[at + 1 : at + 2] != ("f",) else words[:at] + words[at + 2 :]
    if words and (found := _VERSIONED.fullmatch(words[0])):
        words = (found[1], *words[1:])
    if redirects:
        redirects = tuple([each for each in redirects if each != MERGED and each[1] != "/dev/null"])
    return folder, words, () if words else assignments, redirects, heredoc
