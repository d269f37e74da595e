"""Command lines as deeds: shell reads, searches, lists and tests meet the native tools' here."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from tracemill.agreement.calls.arguments import fold_text
from tracemill.agreement.calls.canonical import end_key
from tracemill.agreement.calls.effect import Deed, list_deed
from tracemill.agreement.shell.command_lists import MERGED, merges_stderr_only, without_stderr_merge
from tracemill.agreement.shell.normal_form import Placed, place_commands, shell_normal_form
from tracemill.agreement.shell.pipelines import (
    cuts_pipeline_output,
    drop_cat_from_pipeline,
    drop_xargs_from_pipeline,
    normal_pipeline,
)
from tracemill.agreement.shell_effects.conditionals import mark_conditional_effects
from tracemill.agreement.shell_effects.file_reads import parse_cat_file_reads, read_of, shows_file_lines
from tracemill.agreement.shell_effects.intents import find_shell_intent
from tracemill.agreement.shell_effects.searches import parse_find_search, parse_search_command
from tracemill.agreement.shell_effects.test_targets import selected_tests_through_pipe, test_deed
from tracemill.harnesses.core.vocabulary import WRITES, Operation
from tracemill.harnesses.shell.operations import (
    Effect,
    choose_effect,
    find_command_operation,
    is_setup,
    join_path,
    simple_command_operation,
    unwrap_operation_command,
    unwrap_operation_line,
)
from tracemill.harnesses.shell.parse_line import Simple
from tracemill.harnesses.shell.program_tables import HAND_IN

_PLAIN = {"python3": "python", "pip3": "pip"}
_SAYING = (("echo",), ("printf",), ())
_SAID = (("echo",), ("printf",), ("true",), (":",))
_AFTER_TESTS = (("tail",), ("head",), ("grep",), ("cat",), ("tee",))
_SPLITS = frozenset({"", ";", "&&"})


def build_command_effects(
    line: str, cwd: str | None, total_of: Callable[[str], int | None]
) -> tuple[Deed, ...]:
    """The deeds of a command line run in `cwd`. `total_of` gives the number of lines of a file, None where
    unknown. A line that cannot be read is one deed of its folded text; one with loops, conditions,
    alternatives or subshells is one deed of its normal form."""
    placed = place_commands(line, cwd)
    if placed is None:
        return (_unreadable(line, cwd),)
    if placed[0].command.argv[:2] in HAND_IN:
        return (Deed(Operation.FINISH, ("finish",), ("finish",), True),)
    if (
        len(placed) == 1
        and not placed[0].doubt
        and (inner := unwrap_operation_line(placed[0].command)) is not None
    ):
        return build_command_effects(inner, placed[0].folder or None, total_of)
    said = [at for at, each in enumerate(placed) if each.command.joiner == "||" and _is_said(placed, at)]
    pipelines = _pipelines([each for at, each in enumerate(placed) if at not in said] if said else placed)
    if pipelines is None:
        return (_whole(placed, shell_normal_form(line, cwd)),)
    deeds = mark_conditional_effects([(line, _pipeline_deeds(line, total_of)) for line in pipelines])
    if not said:
        return deeds
    told = tuple((at, placed[at].command.argv) for at in said)
    return (*deeds[:-1], replace(deeds[-1], effect=(*deeds[-1].effect, "||", told), span=None))


def _unreadable(line: str, cwd: str | None) -> Deed:
    form = shell_normal_form(line, cwd)
    effect = ("raw", fold_text(line)) if form is None else ("line", cwd, form)
    judged = _judged(fold_text(line) if form is None else " ".join(map(str, form[1:])))
    return Deed(judged[0], effect, ("line", *judged[1:]), judged[2], decisive=False)


@lru_cache(maxsize=1024)
def _judged(line: str) -> tuple[Operation, str | None, bool]:
    effect = find_command_operation(line)
    return effect.operation, effect.target, effect.mutating


def _pipelines(placed: Sequence[Placed]) -> list[list[Placed]] | None:
    """The pipelines of a line; None where it is more than a list of them."""
    found: list[list[Placed]] = []
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


def _is_said(placed: Sequence[Placed], number: int) -> bool:
    """Whether a command behind `||` at most says something, and nothing depends on that."""
    command = placed[number].command
    if command.argv[:1] not in _SAID or command.keywords or _writes(command):
        return False
    return number + 1 == len(placed) or placed[number + 1].command.joiner == ";"


def _whole(placed: Sequence[Placed], form: Any) -> Deed:
    effects = [(simple_command_operation(each.command, each.folder), each.command) for each in placed]
    judged = choose_effect([(effect, command) for effect, command in effects if effect is not None])
    intent = ("line", str(judged.operation), judged.target)
    return Deed(judged.operation, ("line", form), intent, judged.mutating, decisive=False)


def _pipeline_deeds(pipeline: Sequence[Placed], total_of: Callable[[str], int | None]) -> tuple[Deed, ...]:
    command = pipeline[0].command
    if len(pipeline) == 1 and not _writes(command) and not command.redirects:
        several = parse_cat_file_reads(command, pipeline[0].folder, total_of)
        if several:
            return several
    return (_pipeline_deed(pipeline, total_of),)


def _pipeline_deed(pipeline: Sequence[Placed], total_of: Callable[[str], int | None]) -> Deed:
    """The deed of a pipeline. Messages piped on make another effect where they are not only shown."""
    folder = pipeline[0].folder
    if len(pipeline) == 1:
        return _deed_of((pipeline[0].command,), folder, total_of)
    commands = [each.command for each in pipeline]
    merged = [
        at for at, command in enumerate(commands[:-1]) if command.redirects and merges_stderr_only(command)
    ]
    if not merged:
        return _deed_of(commands, folder, total_of)
    for at in merged:
        one = commands[at]
        redirects = without_stderr_merge(one.redirects)
        commands[at] = Simple(one.argv, one.joiner, one.keywords, one.assignments, redirects, one.heredoc)
    deed = _deed_of(commands, folder, total_of)
    heard = tuple(at for at in merged if not all(shows_file_lines(each.argv) for each in commands[at + 1 :]))
    return replace(deed, effect=(*deed.effect, MERGED, heard), span=None) if heard else deed


def _deed_of(given: Sequence[Simple], folder: str, total_of: Callable[[str], int | None]) -> Deed:
    commands = drop_xargs_from_pipeline(drop_cat_from_pipeline(given))
    reading = not any(map(_writes, commands))
    effects = [(simple_command_operation(command, folder), command) for command in commands]
    changing = len(effects) > 1 and any(effect is not None and effect.mutating for effect, _ in effects[1:])
    if reading and not changing and not any(map(_hides, commands)):
        found = (
            read_of(commands, folder, total_of)
            or _list_of(commands, folder)
            or parse_search_command(unwrap_operation_command(commands[0].argv), folder, _then(commands))
            or parse_find_search(commands[0].argv, folder, _then(commands))
        )
        if found is not None:
            return found
    if _tests(effects) and not any(map(_leaves, commands)):
        return selected_tests_through_pipe(test_deed(commands[0].argv, folder), commands)
    return _other(commands, effects, folder)


def _writes(command: Simple) -> bool:
    return bool(command.assignments) or _leaves(command)


def _leaves(command: Simple) -> bool:
    """True where it is given a text or leaves a file."""
    return command.heredoc is not None or (bool(command.redirects) and command.writes_to is not None)


def _hides(command: Simple) -> bool:
    """True where what it shows is thrown away."""
    redirects = command.redirects
    return bool(redirects) and any(operator.lstrip("1&").startswith(">") for operator, _ in redirects)


def _then(commands: Sequence[Simple]) -> tuple[Any, ...]:
    """What the hits of a search go through; cutting them off after some lines counts for nothing."""
    rest = [command.argv for command in commands[1:] if not cuts_pipeline_output(command.argv)]
    return tuple(rest)


_Effects = Sequence[tuple[Effect | None, Simple]]


def _tests(effects: _Effects) -> bool:
    first = effects[0][0]
    if first is None or first.operation != Operation.RUN_TEST:
        return False
    return all(command.argv[:1] in _AFTER_TESTS for _, command in effects[1:])


def _other(commands: Sequence[Simple], effects: _Effects, folder: str) -> Deed:
    judged = choose_effect([(effect, command) for effect, command in effects if effect is not None])
    parts = normal_pipeline([(folder, *_parts(command, judged.mutating)) for command in commands])
    setup = all(map(is_setup, commands))
    decisive = _decides(judged, commands)
    intent = find_shell_intent(judged, parts, commands, folder)
    if judged.operation == Operation.FINISH:
        parts = intent = (end_key(judged.operation, judged.target),)
    wrote = join_path(folder, judged.target) if judged.operation in WRITES and judged.target else ""
    return Deed(
        judged.operation, ("run", parts), intent, judged.mutating, decisive=decisive, setup=setup, wrote=wrote
    )


def _decides(judged: Effect, commands: Sequence[Simple]) -> bool:
    """True where the intent says what is done: not which files git takes or gives back, nor what a pipe or a
    variable names."""
    if judged.operation == Operation.VCS:
        return not judged.mutating or judged.target in ("git commit", "git commit --amend")
    if judged.operation not in (Operation.EDIT, Operation.CREATE, Operation.FINISH):
        return False
    if judged.target is None and judged.operation != Operation.FINISH:
        return False
    first = commands[0]
    if first.writes_to is not None and first.heredoc is None and first.argv[:1] not in _SAYING:
        return False  # what a program shows, kept in a file
    return "$" not in (judged.target or "") and all(command.argv[:1] != ("xargs",) for command in commands)


def _parts(command: Simple, mutating: bool) -> tuple[Any, ...]:
    """The parts of a command. Where only its answer counts it is the same with messages thrown away."""
    argv, redirects = command.argv, command.redirects
    if argv and argv[0] in _PLAIN:
        argv = (_PLAIN[argv[0]], *argv[1:])
    if redirects and not mutating:
        redirects = tuple([each for each in redirects if each != ("2>", "/dev/null")])
    return argv, command.assignments, redirects, command.heredoc


def _list_of(commands: Sequence[Simple], folder: str) -> Deed | None:
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
        return Deed(Operation.LIST, ("pwd",), ("pwd",), setup=True)
    return list_deed(join_path(folder or ".", operands[0] if operands else "."), "".join(flags))
