"""Derive the effects of calls in the environment they are made in."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tracemill.agreement.calls.arguments import (
    fold_text,
    leaves_sandbox,
    line_from_arguments,
    patch_from_arguments,
)
from tracemill.agreement.calls.canonical import end_key
from tracemill.agreement.calls.effect import ActionEffect, create_intent, list_effect
from tracemill.agreement.files.edits import TEXTS, parse_edit_changes
from tracemill.agreement.shell.normal_form import folder_after
from tracemill.agreement.shell_effects.command_effects import build_command_effects
from tracemill.agreement.shell_effects.searches import (
    parse_name_search,
    parse_native_search,
    parse_term_search,
)
from tracemill.agreement.world.edit_effects import (
    Done,
    apply_edit_effects,
    build_edit_effect,
    build_patch_edit_effects,
    build_removal_edit_effects,
    write_effect,
)
from tracemill.agreement.world.world_state import EnvironmentState
from tracemill.harnesses.agents.common_tools import PATHS, common_tool_kind
from tracemill.harnesses.agents.registry import harness_for, rule_of
from tracemill.harnesses.core.schema_builders import clean_schema_name
from tracemill.harnesses.core.vocabulary import READ_ONLY, WRITES, Operation, ToolRule
from tracemill.harnesses.operations import action_command_line
from tracemill.harnesses.shell.operations import CommandEffect, join_path
from tracemill.harnesses.shell.sql import sql_form, sql_operation
from tracemill.records.identity import canonical_json
from tracemill.records.message import ToolCall, read_arguments

_SAME_TOOL = {"KillBash": "KillShell", "TaskStop": "KillShell"}
_SAME_TOOL |= {"TaskOutput": "BashOutput", "AgentOutputTool": "BashOutput"}
"""Tools of other versions that do the same to a background task."""
_LISTED_BY = frozenset({"command", "view_range", "dir_path", "directory", "dir", "folder", *PATHS})
_CREATED_BY = frozenset({"command", *PATHS, *TEXTS})
Counted = tuple[ToolCall, dict[str, Any] | None, CommandEffect]
"""A call, its normalised arguments (None if they are no object), and what it does."""


def action_call_effects(
    call: ToolCall, arguments: dict[str, Any] | None, command: CommandEffect, world: EnvironmentState
) -> tuple[ActionEffect, ...]:
    """Return the effects of a call, at least one; never raise on a model's output.

    `arguments` are the call's in normal form, None if they are no object; `command` is the result of
    `find_call_operation`.
    """
    name = clean_schema_name(call.name)
    rule = rule_of(world.harness, call.name)
    if arguments is None:
        return _raw(call, rule)
    if rule is None:
        key = ("call", name, canonical_json(arguments))
        return (ActionEffect(Operation.OTHER, key, ("call", name), True, decisive=False),)
    if rule.reading == "shell":
        given = read_arguments(call.arguments) or {}
        line = line_from_arguments(given, rule)
        if line is not None:
            effects = _moved(
                build_command_effects(line, world.cwd), action_command_line(given, rule) or "", world
            )
            return _outside(effects) if leaves_sandbox(given, rule) else effects
    if rule.reading == "sql":
        return (_sql(arguments, rule),)
    if rule.reading == "patch":
        return build_patch_edit_effects(patch_from_arguments(call, rule), world) or (
            _plain(command, name, arguments, rule, world),
        )
    if rule.operation == Operation.EDIT and command.target and common_tool_kind(name) == "removes":
        return build_removal_edit_effects(command.target, world)
    found = _known(command, name, arguments, rule, world)
    return (found or _plain(command, name, arguments, rule, world),)


def list_action_effects(counting: Sequence[Counted], world: EnvironmentState) -> list[Done]:
    """Return the effects of an action's calls in order; each call sees the changes of the calls before it."""
    if len(counting) == 1:
        call, arguments, command = counting[0]
        return [(effect, command.mutating) for effect in action_call_effects(call, arguments, command, world)]
    done: list[Done] = []
    changed: EnvironmentState | None = None
    for call, arguments, command in counting:
        there = changed or world
        effects = action_call_effects(call, arguments, command, there)
        done += [(effect, command.mutating) for effect in effects]
        if command.mutating:
            changed = apply_edit_effects(there, effects)
    return done


def _raw(call: ToolCall, rule: ToolRule | None) -> tuple[ActionEffect, ...]:
    operation = rule.operation if rule is not None else Operation.OTHER
    mutating = operation not in READ_ONLY
    effect = ("unparsed", clean_schema_name(call.name), fold_text(call.arguments))
    return (
        ActionEffect(operation, effect, ("unparsed", clean_schema_name(call.name)), mutating, decisive=False),
    )


def _moved(effects: tuple[ActionEffect, ...], line: str, world: EnvironmentState) -> tuple[ActionEffect, ...]:
    """Return effects of a line, the last one marked where the line leaves a lasting shell elsewhere."""
    if world.cwd is None or not harness_for(world.harness).persistent_shell:
        return effects
    folder = folder_after(line, world.cwd)
    if folder == world.cwd:
        return effects
    *before, last = effects
    return (*before, replace(last, effect=(*last.effect, "then in", folder)))


def _outside(effects: Sequence[ActionEffect]) -> tuple[ActionEffect, ...]:
    """Return effects marked as run outside of the sandbox, where commands that fail inside may work."""
    return tuple(replace(each, effect=("outside", *each.effect)) for each in effects)


def _sql(arguments: Mapping[str, Any], rule: ToolRule) -> ActionEffect:
    given = next((arguments[key] for key in rule.target if key in arguments), "")
    normalised = isinstance(given, list) and len(given) > 1 and given[0] in ("raw", "sql")
    form = given if normalised else ["raw", given]
    text = str(form[1])
    statement = sql_form(text) if form[0] == "sql" else None
    operation = sql_operation(text)
    mutating = operation not in READ_ONLY
    if statement is None:
        return ActionEffect(operation, ("sql?", text), ("sql?", text), mutating, decisive=False)
    intent = ("sql", str(operation), tuple(sorted(statement.tables)))
    effect = ("sql", statement.effect, *form[2:])
    asks = (str(operation), *statement.asks)
    return ActionEffect(operation, effect, intent, mutating, names=statement.names, asks=asks, decisive=False)


def _known(
    command: CommandEffect, name: str, arguments: Mapping[str, Any], rule: ToolRule, world: EnvironmentState
) -> ActionEffect | None:
    operation = command.operation
    if operation == Operation.FINISH or operation == Operation.ASK:
        end = (end_key(operation, command.target),)
        asked = (canonical_json(arguments),) if operation == Operation.ASK else ()
        return ActionEffect(operation, (*end, *asked), end, operation == Operation.FINISH)
    if operation == Operation.SEARCH:
        kind = common_tool_kind(name)
        search = parse_name_search if kind == "names" else parse_native_search
        found = parse_term_search(name, arguments, world.cwd, world.open_file)
        found = found or (search(arguments, world.cwd) if kind != "meaning" else None)
    else:
        path = _path(arguments, rule, world)
        if path is None and operation == Operation.LIST and not _names_place(arguments, rule):
            path = join_path(world.cwd or "", ".")
        found = _on_file(operation, path, arguments, world) if path is not None else None
    return found


def _names_place(arguments: Mapping[str, Any], rule: ToolRule) -> bool:
    return any(arguments.get(name) for name in (*rule.target, *rule.paths))


def _on_file(
    operation: Operation, path: str, arguments: Mapping[str, Any], world: EnvironmentState
) -> ActionEffect | None:
    if operation == Operation.LIST:
        rest = {key: value for key, value in arguments.items() if key not in _LISTED_BY}
        return list_effect(path, canonical_json(rest) if rest else "")
    if operation == Operation.CREATE:
        return _create(arguments, path, world)
    return (
        build_edit_effect(path, parse_edit_changes(arguments), world) if operation == Operation.EDIT else None
    )


def _plain(
    command: CommandEffect, name: str, arguments: Mapping[str, Any], rule: ToolRule, world: EnvironmentState
) -> ActionEffect:
    """Return a call as a single effect given by its arguments, with its target as intent."""
    target = command.target
    if rule.paths and target is not None and target != rule.default_target:
        target = join_path(world.cwd or "", target)
    if target is not None and target == rule.default_target:
        target = world.open_file or target
    kind = str(command.operation)
    intent = (kind, target) if target is not None else (kind, name)
    if target is not None and command.operation in (Operation.RUN, Operation.OTHER):
        intent = (kind, _SAME_TOOL.get(name, name), target, str(arguments.get("chars", "")))
    full = ("call", name, canonical_json(arguments))
    if command.operation not in WRITES:
        return ActionEffect(command.operation, full, intent, command.mutating, decisive=target is not None)
    wrote = target if target and rule.paths else ""
    decisive = target is not None
    return ActionEffect(command.operation, full, intent, command.mutating, decisive=decisive, wrote=wrote)


def _path(arguments: Mapping[str, Any], rule: ToolRule, world: EnvironmentState) -> str | None:
    for name in rule.target:
        value = arguments.get(name)
        if name in rule.paths and isinstance(value, str) and value:
            return join_path(world.cwd or "", value)
    return world.open_file if rule.default_target else None


def _create(arguments: Mapping[str, Any], path: str, world: EnvironmentState) -> ActionEffect:
    body = next((arguments[name] for name in TEXTS if isinstance(arguments.get(name), str)), None)
    if body is None:
        return ActionEffect(Operation.CREATE, ("create", path), create_intent(path), True, wrote=path)
    rest = {key: value for key, value in arguments.items() if key not in _CREATED_BY}
    effect = write_effect(path, body, world)
    if rest:  # it may add to the file, say
        key = (*effect.effect, canonical_json(rest))
        return replace(effect, effect=key, proven=False, after=None)
    return effect
