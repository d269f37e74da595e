"""Map tool calls of any harness to operations and targets."""

import json
import posixpath
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from tracemill.harnesses.agents.common_tools import WORKING_FOLDERS
from tracemill.harnesses.agents.registry import harness_for, rule_of
from tracemill.harnesses.core.vocabulary import READ_ONLY, Operation, ToolRule
from tracemill.harnesses.shell.operations import CommandEffect, find_command_operation
from tracemill.harnesses.shell.patches import PATCH_TOOL, find_applied_patch, read_patch
from tracemill.harnesses.shell.program_tables import ANNOUNCED, REFUSED
from tracemill.harnesses.shell.scripts import find_script_call
from tracemill.harnesses.shell.sql import sql_operation
from tracemill.harnesses.text_calls import tool_or_text_calls
from tracemill.harnesses.text_intents import find_text_intent
from tracemill.records.message import Action, ToolCall, read_arguments

_EDITOR = {
    "create": Operation.CREATE,
    "str_replace": Operation.EDIT,
    "insert": Operation.EDIT,
    "undo_edit": Operation.EDIT,
}
_NO_SUFFIX = frozenset({"makefile", "dockerfile", "license", "readme", "changelog", "gemfile", "rakefile"})
_TEXT_ENDS: dict[str, tuple[Operation, str | None]] = {
    "question": (Operation.ASK, None),
    "answer": (Operation.FINISH, None),
    "refusal": (Operation.FINISH, REFUSED),
    "announcement": (Operation.FINISH, ANNOUNCED),
    "command": (Operation.FINISH, ANNOUNCED),
    "error": (Operation.OTHER, None),
}
_MAX_TARGET_CHARS = 300
_TRUE_WORDS = frozenset({"true", "yes", "1"})
_SHELLS = frozenset({"bash", "sh", "zsh"})


def find_action_operation(action: Action, harness: str) -> Operation:
    """Return what an action does.

    The first mutating call decides, else the first call that is not planning, else the first. Without a call
    the operation is ASK where the text ends with a question, FINISH for other text, and OTHER for no text, a
    text that the harness refuses, or an error of the model's provider.
    """
    return find_operation_and_target(action, harness)[0]


def find_action_target(action: Action, harness: str) -> str | None:
    """Return the file, pattern, test or command of an action, paths normalised; None where unclear.

    For an end without the task done it is the agent's own word (`false`, `partial`, `forfeit`), or
    `announced` or `refused` if a text only announces an act or refuses the task.
    """
    return find_operation_and_target(action, harness)[1]


def find_operation_and_target(action: Action, harness: str) -> tuple[Operation, str | None]:
    """Return the results of `find_action_operation` and `find_action_target`."""
    return choose_action_operation(
        [find_call_operation(call, harness) for call in tool_or_text_calls(action, harness)], action, harness
    )


def choose_action_operation(
    effects: Sequence[CommandEffect], action: Action, harness: str
) -> tuple[Operation, str | None]:
    """Return operation and target of an action whose calls have these effects."""
    if effects:
        effect = _deciding_effect(effects)
        return effect.operation, effect.target
    if not action.text.strip() or not harness_for(harness).text_ends_run:
        return Operation.OTHER, None
    return _TEXT_ENDS[find_text_intent(action.text)]


def find_call_operation(call: ToolCall, harness: str) -> CommandEffect:
    """Return operation, target and mutating flag of one call. Never raises."""
    return find_tool_operation(resolve_operation_tool(call, harness), harness)


def find_tool_operation(call: ToolCall, harness: str) -> CommandEffect:
    """Return the effect of a call that `resolve_operation_tool` has resolved."""
    return _effect_of(call.name, call.arguments, harness)


def resolve_operation_tool(call: ToolCall, harness: str) -> ToolCall:
    """Return the call as one of the tool it uses.

    A script that calls one tool becomes that call, and a shell call that applies a patch and does nothing
    else a call of the patch tool; any other call stays as it is.
    """
    call = unwrap_script_call(call, harness)
    if "*** " not in call.arguments or "apply" not in call.arguments:
        return call
    arguments = _patch_arguments(call.name, call.arguments, harness)
    return call if arguments is None else replace(call, name=PATCH_TOOL, arguments=arguments)


def unwrap_script_call(call: ToolCall, harness: str) -> ToolCall:
    """Return the call that a script makes, where it makes one; any other call stays as it is."""
    if "tools." not in call.arguments:
        return call
    rule, arguments = rule_of(harness, call.name), read_arguments(call.arguments)
    if rule is None or rule.reading != "script" or arguments is None:
        return call
    script = next((arguments[each] for each in rule.target if isinstance(arguments.get(each), str)), "")
    found = find_script_call(script)
    return call if found is None else replace(call, name=found[0], arguments=found[1])


@lru_cache(maxsize=512)
def _patch_arguments(name: str, arguments_json: str, harness: str) -> str | None:
    rule = rule_of(harness, name)
    arguments = read_arguments(arguments_json)
    if rule is None or rule.reading != "shell" or arguments is None:
        return None
    command = next((arguments[each] for each in rule.target if each in arguments), None)
    folder = arguments.get(action_folder_argument(arguments, rule))
    place = folder.strip() if isinstance(folder, str) else ""
    patch = find_applied_patch(command, action_command_line(arguments, rule), place)
    return None if patch is None else json.dumps({"input": patch}, ensure_ascii=False)


def action_folder_argument(arguments: Mapping[str, Any], rule: ToolRule) -> str:
    """Return the argument that names a shell's folder: the rule's, or another usual name."""
    if WORKING_FOLDERS.isdisjoint(arguments):
        return rule.folder
    names = (rule.folder, *WORKING_FOLDERS)
    return next((name for name in names if isinstance(arguments.get(name), str)), rule.folder)


@lru_cache(maxsize=2048)
def _effect_of(name: str, arguments_json: str, harness: str) -> CommandEffect:
    rule = rule_of(harness, name)
    if rule is None:
        return CommandEffect(Operation.OTHER, None, True)
    arguments = read_arguments(arguments_json)
    if arguments is None:
        arguments = {rule.target[0]: arguments_json} if rule.reading == "patch" else {}
    if rule.reading == "shell":
        command = action_command_line(arguments, rule)
        return (
            CommandEffect(rule.operation, None, True) if command is None else find_command_operation(command)
        )
    if rule.reading in ("sql", "patch"):
        return _statement_effect(arguments, rule)
    if rule.reading == "editor":
        return _editor_effect(arguments, rule)
    mutating = rule.operation not in READ_ONLY and rule.operation != Operation.ASK
    target = _first_target(arguments, rule)
    if rule.operation == Operation.FINISH and target is not None:
        target = None if target.lower() in _TRUE_WORDS else target.lower()
    return CommandEffect(rule.operation, target, mutating)


def action_command_line(arguments: Mapping[str, Any], rule: ToolRule) -> str | None:
    """Return the command line of a shell call, None if it has none.

    Words are joined to a line, and `bash -lc LINE` is LINE.
    """
    command = next((arguments[name] for name in rule.target if name in arguments), None)
    if isinstance(command, str):
        return command
    if not isinstance(command, list) or not command or not all(isinstance(word, str) for word in command):
        return None
    if len(command) == 3 and posixpath.basename(command[0]) in _SHELLS and command[1] in ("-c", "-lc"):
        return command[2]
    return shlex.join(command)


def action_patched_files(patch: str) -> tuple[str, ...]:
    """Return the files a patch names, in order, each once."""
    return tuple(dict.fromkeys(each.path for each in read_patch(patch)))


def _statement_effect(arguments: dict[str, Any], rule: ToolRule) -> CommandEffect:
    statement = next((arguments[name] for name in rule.target if isinstance(arguments.get(name), str)), "")
    if rule.reading == "sql":
        operation = sql_operation(statement)
        return CommandEffect(operation, statement[:_MAX_TARGET_CHARS] or None, operation not in READ_ONLY)
    return CommandEffect(Operation.EDIT, next(iter(action_patched_files(statement)), None), True)


def _deciding_effect(effects: Sequence[CommandEffect]) -> CommandEffect:
    for effect in effects:
        if effect.mutating:
            return effect
    return next((effect for effect in effects if effect.operation != Operation.PLAN), effects[0])


def _editor_effect(arguments: dict[str, Any], rule: ToolRule) -> CommandEffect:
    target = _first_target(arguments, rule)
    operation = _EDITOR.get(str(arguments.get("command")))
    if operation is not None:
        return CommandEffect(operation, target, True)
    return CommandEffect(Operation.LIST if _is_folder(target, arguments) else Operation.READ, target, False)


def _is_folder(path: str | None, arguments: dict[str, Any]) -> bool:
    """Return whether a path counts as a folder: it has no suffix, and no range of lines is given."""
    if path is None or arguments.get("view_range"):
        return False
    name = posixpath.basename(path)
    return "." not in name.lstrip(".") and name.lower() not in _NO_SUFFIX


def _first_target(arguments: dict[str, Any], rule: ToolRule) -> str | None:
    for name in rule.target:
        value = arguments.get(name)
        if isinstance(value, str | int) and str(value).strip():
            text = str(value).strip()[:_MAX_TARGET_CHARS]
            return posixpath.normpath(text) if name in rule.paths else text
    return rule.default_target
