"""Derive the effects of command lines, comparable with those of native tools."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tracemill.agreement.calls.arguments import fold_text
from tracemill.agreement.calls.canonical import end_key
from tracemill.agreement.calls.effect import ActionEffect, list_effect
from tracemill.agreement.shell.normal_form import PlacedCommand, place_commands, shell_normal_form
from tracemill.agreement.shell.pipelines import (
    cuts_pipeline_output,
    drop_cat_from_pipeline,
    drop_xargs_from_pipeline,
    normal_pipeline,
)
from tracemill.agreement.shell_effects.intents import find_shell_intent
from tracemill.agreement.shell_effects.searches import parse_find_search, parse_search_command
from tracemill.agreement.shell_effects.test_targets import build_test_effect
from tracemill.harnesses.core.vocabulary import WRITES, Operation
from tracemill.harnesses.shell.operations import (
    CommandEffect,
    choose_effect,
    find_command_operation,
    is_setup,
    join_path,
    simple_command_operation,
    unwrap_operation_command,
    unwrap_operation_line,
)
from tracemill.harnesses.shell.parse_line import SimpleCommand
from tracemill.harnesses.shell.program_tables import SUBMIT_COMMANDS

_SHOWERS = ("cat", "head", "less", "more", "nl")
_LINES = re.compile(r"'?\d+(?:,(?:\d+|\$))? ?p'?")
_GROUP = re.compile(r"\s*\((?!\()(?P<line>[^()]*)\)\s*")
"""A line that is one subshell."""
_PRINTERS = (("echo",), ("printf",), ())
_FILTERS = (("grep",), ("tee",))
_AFTER_TESTS = (("tail",), ("head",), ("cat",), *_FILTERS)
_SPLITS = frozenset({"", ";", "&&"})


def build_command_effects(line: str, cwd: str | None) -> tuple[ActionEffect, ...]:
    """Return the effects of a command line run in `cwd`.

    An unreadable line is one effect of its folded text; one with loops, conditions, alternatives or subshells
    is one effect of its normal form.
    """
    placed = place_commands(line, cwd)
    if placed is None:
        inner = _GROUP.fullmatch(line)
        return build_command_effects(inner["line"], cwd) if inner else (_unreadable(line, cwd),)
    if placed[0].command.argv[:2] in SUBMIT_COMMANDS:
        return (ActionEffect(Operation.FINISH, ("finish",), ("finish",), True),)
    if len(placed) == 1 and (inner := unwrap_operation_line(placed[0].command)) is not None:
        return build_command_effects(inner, placed[0].folder or None)
    pipelines = _pipelines(placed)
    if pipelines is None:
        return (_whole(placed, shell_normal_form(line, cwd)),)
    return tuple(
        _effect_of([each.command for each in pipeline], pipeline[0].folder) for pipeline in pipelines
    )


def _unreadable(line: str, cwd: str | None) -> ActionEffect:
    form, judged = shell_normal_form(line, cwd), find_command_operation(line)
    effect = ("raw", fold_text(line)) if form is None else ("line", cwd, form)
    intent = ("line", judged.target, judged.mutating)
    return ActionEffect(judged.operation, effect, intent, judged.mutating, decisive=False)


def _pipelines(placed: Sequence[PlacedCommand]) -> list[list[PlacedCommand]] | None:
    """Return the pipelines of a line; None if it is more than a list of them."""
    found: list[list[PlacedCommand]] = []
    for each in placed:
        if each.command.keywords:
            return None
        if each.command.joiner in _SPLITS:
            found.append([each])
        elif each.command.joiner == "|" and found:
            found[-1].append(each)
        else:
            return None
    return found


def _whole(placed: Sequence[PlacedCommand], form: Any) -> ActionEffect:
    effects = [(simple_command_operation(each.command, each.folder), each.command) for each in placed]
    judged = choose_effect([(effect, command) for effect, command in effects if effect is not None])
    intent = ("line", str(judged.operation), judged.target)
    return ActionEffect(judged.operation, ("line", form), intent, judged.mutating, decisive=False)


def _effect_of(given: Sequence[SimpleCommand], folder: str) -> ActionEffect:
    commands = drop_xargs_from_pipeline(drop_cat_from_pipeline(given))
    reading = not any(map(_writes, commands))
    effects = [(simple_command_operation(command, folder), command) for command in commands]
    changing = len(effects) > 1 and any(effect is not None and effect.mutating for effect, _ in effects[1:])
    if reading and not changing:
        then = tuple(command.argv for command in commands[1:])
        found = (
            _list_of(commands, folder)
            or parse_search_command(unwrap_operation_command(commands[0].argv), folder, then)
            or parse_find_search(commands[0].argv, folder, then)
        )
        if found is not None:
            return found
    if _tests(effects) and not any(map(_has_file_io, commands)):
        found = build_test_effect(commands[0].argv, folder, commands[0].assignments)
        filters = [command.argv for command in commands[1:] if command.argv[:1] in _FILTERS]
        return replace(found, effect=(*found.effect, *filters))
    return _other(commands, effects, folder)


def _writes(command: SimpleCommand) -> bool:
    return bool(command.assignments) or _has_file_io(command)


def _has_file_io(command: SimpleCommand) -> bool:
    """Return whether a command has a here-document or writes a file."""
    return command.heredoc is not None or (bool(command.redirects) and command.writes_to is not None)


_Effects = Sequence[tuple[CommandEffect | None, SimpleCommand]]


def _tests(effects: _Effects) -> bool:
    first = effects[0][0]
    if first is None or first.operation != Operation.RUN_TEST:
        return False
    return all(command.argv[:1] in _AFTER_TESTS for _, command in effects[1:])


def _other(commands: Sequence[SimpleCommand], effects: _Effects, folder: str) -> ActionEffect:
    judged = choose_effect([(effect, command) for effect, command in effects if effect is not None])
    parts = normal_pipeline(
        [
            (folder, command.argv, command.assignments, command.redirects, command.heredoc)
            for command in commands
        ]
    )
    setup = all(map(is_setup, commands))
    decisive = _is_decisive(judged, commands)
    intent = find_shell_intent(judged, parts, commands, folder)
    if judged.operation == Operation.FINISH:
        parts = intent = (end_key(judged.operation, judged.target),)
    wrote = join_path(folder, judged.target) if judged.operation in WRITES and judged.target else ""
    return ActionEffect(
        judged.operation, ("run", parts), intent, judged.mutating, decisive=decisive, setup=setup, wrote=wrote
    )


def _is_decisive(judged: CommandEffect, commands: Sequence[SimpleCommand]) -> bool:
    """Return whether the intent identifies what is done.

    It does not for the files that git takes or restores, nor for targets given by a pipe or variable.
    """
    if judged.operation == Operation.VCS:
        return not judged.mutating or judged.target in ("git commit", "git commit --amend")
    if judged.operation == Operation.READ:
        return judged.target is not None and "$" not in judged.target and _shows_file(commands)
    if judged.operation not in (Operation.EDIT, Operation.CREATE, Operation.FINISH):
        return False
    if judged.target is None and judged.operation != Operation.FINISH:
        return False
    first = commands[0]
    if first.writes_to is not None and first.heredoc is None and first.argv[:1] not in _PRINTERS:
        return False  # output of a program, kept in a file
    return "$" not in (judged.target or "") and all(command.argv[:1] != ("xargs",) for command in commands)


def _shows_file(commands: Sequence[SimpleCommand]) -> bool:
    """Return whether a pipeline shows one file, or a run of its lines, as it is."""
    program, *words = commands[0].argv or ("",)
    names = [word for word in words if not word.startswith("-") and not word.isdigit()]
    if program == "sed" and "-n" in words and names and _LINES.fullmatch(names[0]):
        names = names[1:]
    elif program not in _SHOWERS:
        return False
    cut = all(command.argv[:1] == ("head",) for command in commands[1:])
    return cut and len(names) == 1 and "*" not in names[0]


def _list_of(commands: Sequence[SimpleCommand], folder: str) -> ActionEffect | None:
    argv = commands[0].argv
    if argv[:1] not in (("ls",), ("pwd",)) or any(
        not cuts_pipeline_output(command.argv) for command in commands[1:]
    ):
        return None
    operands = [word for word in argv[1:] if not word.startswith("-")]
    if len(operands) > 1 or any("*" in word for word in operands):
        return None
    flags = sorted({letter for word in argv[1:] if word.startswith("-") for letter in word.lstrip("-")})
    if argv[0] == "pwd":
        return ActionEffect(Operation.LIST, ("pwd",), ("pwd",), setup=True)
    return list_effect(join_path(folder or ".", operands[0] if operands else "."), "".join(flags))
