"""Calls as deeds: what each does in the world it is made in."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tracemill.agreement.calls.arguments import fold_text, line_from_arguments, patch_from_arguments
from tracemill.agreement.calls.canonical import end_key
from tracemill.agreement.calls.effect import Deed, create_intent, is_scratch, list_deed, read_deed
from tracemill.agreement.files.edits import TEXTS, parse_edit_changes
from tracemill.agreement.shell.normal_form import place_commands
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
    join_edit_effects,
    write_deed,
)
from tracemill.agreement.world.world_state import World
from tracemill.harnesses.agents.common_tools import PATHS, common_tool_kind
from tracemill.harnesses.agents.registry import harness_for, rule_of
from tracemill.harnesses.core.schema_builders import clean_schema_name
from tracemill.harnesses.core.vocabulary import READ_ONLY, WRITES, Operation, ToolRule
from tracemill.harnesses.shell.operations import Effect, join_path
from tracemill.harnesses.shell.sql import sql_form, sql_operation
from tracemill.records.identity import canonical_json
from tracemill.records.message import ToolCall, read_arguments

_SAME_TOOL = {"KillBash": "KillShell", "TaskStop": "KillShell"}
_SAME_TOOL |= {"TaskOutput": "BashOutput", "AgentOutputTool": "BashOutput"}
"""Tools of other versions that do the same with what runs in the background."""
_LISTED_BY = frozenset({"command", "view_range", "dir_path", "directory", "dir", "folder", *PATHS})
_CREATED_BY = frozenset({"command", *PATHS, *TEXTS})
_READ_BY = frozenset({"command", "view_range", "offset", "limit", *PATHS})
_RANGES = (("start_line", "end_line"), ("startLine", "endLine"))
Counted = tuple[ToolCall, dict[str, Any] | None, Effect]
"""A call, its arguments in normal form (None where they are no object), and its effect."""
_MANY = ("paths", "file_paths", "files")


def action_call_effects(
    call: ToolCall, arguments: dict[str, Any] | None, effect: Effect, world: World
) -> tuple[Deed, ...]:
    """The deeds of a call, at least one; `arguments` are its own in normal form, None where they are no
    object, `effect` what `call_effect` says of it. Never raises on what a model may emit."""
    name = clean_schema_name(call.name)
    rule = rule_of(world.harness, call.name)
    if arguments is None:
        return _raw(call, rule)
    if rule is None:
        told = ("call", name, canonical_json(arguments))
        return (Deed(Operation.OTHER, told, ("call", name), True, decisive=False),)
    if (
        rule.reading == "shell"
        and (line := line_from_arguments(read_arguments(call.arguments) or {}, rule)) is not None
    ):
        rest = {key: value for key, value in arguments.items() if key != rule.target[0]}
        deeds = build_command_effects(line, world.cwd, world.total_of)
        return _with(tuple([_over(deed, world) if deed.wrote else deed for deed in deeds]), rest)
    if rule.reading == "sql":
        return (_sql(arguments, rule),)
    if rule.reading == "patch":
        return build_patch_edit_effects(patch_from_arguments(call, rule), world) or (
            _plain(effect, name, arguments, rule, world),
        )
    if rule.operation == Operation.EDIT and effect.target and common_tool_kind(name) == "removes":
        return build_removal_edit_effects(effect.target, world)
    if rule.operation == Operation.READ and (many := _each_read(arguments, world)):
        return many
    if rule.operation == Operation.CREATE and (many := _each_created(arguments, world)):
        return many
    found = _known(effect, name, arguments, rule, world)
    if found is None and name == "MultiEdit":
        return tuple(_plain(effect, "Edit", each, rule, world) for each in _single_edits(arguments))
    return (found or _plain(effect, name, arguments, rule, world),)


def list_action_effects(counting: Sequence[Counted], world: World) -> list[Done]:
    """The deeds of an action's calls, each in the world that the calls before it leave."""
    if len(counting) == 1:
        call, arguments, effect = counting[0]
        done = [(deed, effect.mutating) for deed in action_call_effects(call, arguments, effect, world)]
        return join_edit_effects(done) if len(done) > 1 else done
    done = []
    made: World | None = None
    for (call, arguments, effect), there in chain_action_worlds(counting, world):
        there = there if made is None else replace(there, after=made.after)
        deeds = action_call_effects(call, arguments, effect, there)
        done += [(deed, effect.mutating) for deed in deeds]
        if effect.mutating:
            made = apply_edit_effects(there, deeds)
    return join_edit_effects(done)


def _over(deed: Deed, world: World) -> Deed:
    """What a command line writes to a file whose text was shown is an edit of that."""
    if deed.operation != Operation.CREATE or is_scratch(deed.wrote) or world.text_of(deed.wrote) is None:
        return deed
    return replace(deed, operation=Operation.EDIT, intent=("edit", deed.wrote))


def _each_read(arguments: Mapping[str, Any], world: World) -> tuple[Deed, ...]:
    """Reading each of several files, where the call names them and says no more."""
    if len(arguments) != 1:
        return ()
    given = next((arguments[name] for name in _MANY if name in arguments), None)
    if not isinstance(given, list) or not all(_is_file(each) for each in given):
        return ()
    paths = [join_path(world.cwd or "", path) for path in given]
    return tuple(read_deed(path, 1, None, world.total_of(path)) for path in paths)


def _each_created(arguments: Mapping[str, Any], world: World) -> tuple[Deed, ...]:
    """Writing each of several files, where the call gives them as objects and says no more."""
    given = arguments.get("files")
    if len(arguments) != 1 or not isinstance(given, list):
        return ()
    made: list[Deed] = []
    for each in given:
        path = each.get("path") or each.get("file_path") if isinstance(each, Mapping) else None
        if not isinstance(path, str):
            return ()
        made.append(_create(each, join_path(world.cwd or "", path), world))
    return tuple(made)


def _is_file(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and not set(value) & set("*?[")


def chain_action_worlds(counting: Sequence[Counted], world: World) -> list[tuple[Counted, World]]:
    """The calls of an action, each with the world it is made in: where the shell stays between calls, one
    that only goes to a folder is left out before others, which are made there."""
    if len(counting) < 2 or not harness_for(world.harness).shell_stays:
        return [(each, world) for each in counting]
    found: list[tuple[Counted, World]] = []
    for number, each in enumerate(counting):
        folder = _goes_to(each[0], world) if number + 1 < len(counting) else None
        if folder is None:
            found.append((each, world))
        else:
            world = replace(world, cwd=folder)
    return found


def _goes_to(call: ToolCall, world: World) -> str | None:
    """The folder that a call of a shell goes to, where it does nothing else."""
    rule = rule_of(world.harness, call.name)
    if rule is None or rule.reading != "shell":
        return None
    line = line_from_arguments(read_arguments(call.arguments) or {}, rule)
    placed = place_commands(line, world.cwd) if line else None
    if placed is None or len(placed) != 1 or placed[0].command.argv != ("cd", placed[0].folder):
        return None
    return placed[0].folder


def _with(deeds: tuple[Deed, ...], rest: Mapping[str, Any]) -> tuple[Deed, ...]:
    """The deeds of a shell that is told more than the line, such as to run it in the background."""
    if not rest:
        return deeds
    told = canonical_json(dict(rest))
    return tuple(replace(deed, effect=(*deed.effect, told), span=None) for deed in deeds)


def _raw(call: ToolCall, rule: ToolRule | None) -> tuple[Deed, ...]:
    operation = rule.operation if rule is not None else Operation.OTHER
    mutating = operation not in READ_ONLY
    effect = ("unparsed", clean_schema_name(call.name), fold_text(call.arguments))
    return (Deed(operation, effect, ("unparsed", clean_schema_name(call.name)), mutating, decisive=False),)


def _sql(arguments: Mapping[str, Any], rule: ToolRule) -> Deed:
    given = next((arguments[key] for key in rule.target if key in arguments), "")
    marked = isinstance(given, list) and len(given) > 1 and given[0] in ("raw", "sql")
    told = given if marked else ["raw", given]
    text = str(told[1])
    statement = sql_form(text) if told[0] == "sql" else None
    operation = sql_operation(text)
    mutating = operation not in READ_ONLY
    if statement is None:
        return Deed(operation, ("sql?", text), ("sql?", text), mutating, decisive=False)
    intent = ("sql", str(operation), tuple(sorted(statement.tables)))
    effect = ("sql", statement.effect, *told[2:])
    asks = (str(operation), *statement.asks)
    return Deed(operation, effect, intent, mutating, names=statement.names, asks=asks, decisive=False)


def _known(
    effect: Effect, name: str, arguments: Mapping[str, Any], rule: ToolRule, world: World
) -> Deed | None:
    operation = effect.operation
    if operation == Operation.FINISH or operation == Operation.ASK:
        end = (end_key(operation, effect.target),)
        return Deed(operation, end, end, operation == Operation.FINISH)
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


def _on_file(operation: Operation, path: str, arguments: Mapping[str, Any], world: World) -> Deed | None:
    if operation == Operation.READ:
        return _read(arguments, path, world)
    if operation == Operation.LIST:
        rest = {key: value for key, value in arguments.items() if key not in _LISTED_BY}
        return list_deed(path, canonical_json(rest) if rest else "")
    if operation == Operation.CREATE:
        return _create(arguments, path, world)
    return (
        build_edit_effect(path, parse_edit_changes(arguments), world) if operation == Operation.EDIT else None
    )


def _plain(effect: Effect, name: str, arguments: Mapping[str, Any], rule: ToolRule, world: World) -> Deed:
    """A call as it stands: what it is about is its intent."""
    target = effect.target
    if rule.paths and target is not None and target != rule.standing:
        target = join_path(world.cwd or "", target)
    if target is not None and target == rule.standing:
        target = world.open_file or target
    kind = str(effect.operation)
    intent = (kind, target) if target is not None else (kind, name)
    if target is not None and effect.operation in (Operation.RUN, Operation.OTHER):
        intent = (kind, _SAME_TOOL.get(name, name), target, str(arguments.get("chars", "")))
    full = ("call", name, canonical_json(_without_default(name, arguments)))
    if effect.operation not in WRITES:
        return Deed(effect.operation, full, intent, effect.mutating, decisive=target is not None)
    changed = effect.operation == Operation.EDIT and any(
        c.old.strip() for c in parse_edit_changes(arguments) or ()
    )
    paths = (target,) if rule.paths and target and changed else ()
    wrote = target if target and rule.paths else ""
    decisive = target is not None
    return Deed(effect.operation, full, intent, effect.mutating, paths, decisive=decisive, wrote=wrote)


def _single_edits(arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The arguments of a `MultiEdit` as those of an `Edit` each; as they stand where they are none."""
    edits = arguments.get("edits")
    if not isinstance(edits, list) or not edits or not all(isinstance(edit, Mapping) for edit in edits):
        return [dict(arguments)]
    rest = {key: value for key, value in arguments.items() if key != "edits"}
    return [{**rest, **edit} for edit in edits]


def _without_default(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    told = dict(arguments)
    if name == "Edit" and told.get("replace_all") is False:
        del told["replace_all"]
    return told


def _path(arguments: Mapping[str, Any], rule: ToolRule, world: World) -> str | None:
    for name in rule.target:
        value = arguments.get(name)
        if name in rule.paths and isinstance(value, str) and value:
            return join_path(world.cwd or "", value)
    return world.open_file if rule.standing else None


def _read(arguments: Mapping[str, Any], path: str, world: World) -> Deed | None:
    total = world.total_of(path)
    lines = arguments.get("view_range")
    if isinstance(lines, list) and len(lines) == 2 and all(isinstance(each, int) for each in lines):
        return read_deed(path, lines[0], None if lines[1] < 0 else lines[1], total)
    rest = arguments.keys() - _READ_BY
    for names in _RANGES if rest else ():
        first, last = (arguments.get(name) for name in names)
        if rest == set(names) and isinstance(first, int) and isinstance(last, int) and 1 <= first <= last:
            return read_deed(path, first, last, total)
    if rest:
        return None
    offset, limit = arguments.get("offset"), arguments.get("limit")
    if isinstance(offset, int) or isinstance(limit, int):
        first = offset if isinstance(offset, int) else 1
        return read_deed(path, first, first + limit - 1 if isinstance(limit, int) else None, total)
    return read_deed(path, 1, None, total)


def _create(arguments: Mapping[str, Any], path: str, world: World) -> Deed:
    body = next((arguments[name] for name in TEXTS if isinstance(arguments.get(name), str)), None)
    if body is None:
        return Deed(Operation.CREATE, ("create", path), create_intent(path), True, wrote=path)
    rest = {key: value for key, value in arguments.items() if key not in _CREATED_BY}
    deed = write_deed(path, body, world)
    if rest:  # it may add to the file, say
        effect = (*deed.effect, canonical_json(rest))
        return replace(deed, effect=effect, outcome=None, proven=False, after=None)
    return deed
