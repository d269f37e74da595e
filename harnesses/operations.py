"""Tool calls → operations and targets, whatever a harness calls its tools."""

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
from tracemill.harnesses.shell.operations import Effect, find_command_operation
from tracemill.harnesses.shell.patches import PATCH_TOOL, find_applied_patch, read_patch
from tracemill.harnesses.shell.program_tables import ANNOUNCED, REFUSED
from tracemill.harnesses.shell.sql import sql_operation
from tracemill.harnesses.text_calls import tool_or_text_calls
from tracemill.harnesses.text_intents import find_text_intent
from tracemill.records.message import Action, ToolCall, read_arguments

__all__ = [
    "Operation",
    "find_action_operation",
    "find_action_target",
    "find_call_operation",
    "find_operation_and_target",
    "is_mutating",
]

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
_MAX_TARGET = 300
_DONE = frozenset({"true", "yes", "1"})
_SHELLS = frozenset({"bash", "sh", "zsh"})


def find_action_operation(action: Action, harness: str) -> Operation:
    """What an action does.

    The first mutating call decides, else the first call that is no planning, else the first. Without a
    call it is ASK where the text ends with a question, FINISH where it has any other text, OTHER where it
    has none, or where the harness refuses a text alone, or where it is an error of whoever carries the model.
    """
    return find_operation_and_target(action, harness)[0]


def find_action_target(action: Action, harness: str) -> str | None:
    """The file, pattern, test or command the action is about, paths normalised; None where unclear. Of an
    end with less than the task done it is what the agent says of it (`false`, `partial`, `forfeit`), or
    `announced` or `refused` where a text only announces an act or will not do the task."""
    return find_operation_and_target(action, harness)[1]


def find_operation_and_target(action: Action, harness: str) -> tuple[Operation, str | None]:
    """What an action does and what it is about (`find_action_operation`, `find_action_target`)."""
    return choose_action_operation(
        [find_call_operation(call, harness) for call in tool_or_text_calls(action, harness)], action, harness
    )


def choose_action_operation(
    effects: Sequence[Effect], action: Action, harness: str
) -> tuple[Operation, str | None]:
    """`find_operation_and_target` of an action whose calls have these effects."""
    if effects:
        effect = _deciding(effects)
        return effect.operation, effect.target
    if not action.text.strip() or not harness_for(harness).text_ends:
        return Operation.OTHER, None
    return _TEXT_ENDS[find_text_intent(action.text)]


def is_mutating(call: ToolCall, harness: str) -> bool:
    """True where a call may change files, processes or anything else than what the agent knows."""
    return find_call_operation(call, harness).mutating


def find_call_operation(call: ToolCall, harness: str) -> Effect:
    """Operation, target and whether it changes anything, of one call. Never raises."""
    return find_tool_operation(resolve_operation_tool(call, harness), harness)


def find_tool_operation(call: ToolCall, harness: str) -> Effect:
    """`find_call_operation` of a call that is one of the tool it uses (`resolve_operation_tool`)."""
    return _effect_of(call.name, call.arguments, harness)


def resolve_operation_tool(call: ToolCall, harness: str) -> ToolCall:
    """The call as that of the tool it uses: a shell that applies a patch and does nothing else is the tool
    that applies patches; any other call is itself."""
    if "*** " not in call.arguments or "apply" not in call.arguments:
        return call
    arguments = _patch_arguments(call.name, call.arguments, harness)
    return call if arguments is None else replace(call, name=PATCH_TOOL, arguments=arguments)


@lru_cache(maxsize=512)
def _patch_arguments(name: str, given: str, harness: str) -> str | None:
    rule = rule_of(harness, name)
    arguments = read_arguments(given)
    if rule is None or rule.reading != "shell" or arguments is None:
        return None
    command = next((arguments[each] for each in rule.target if each in arguments), None)
    folder = arguments.get(action_folder_argument(arguments, rule))
    place = folder.strip() if isinstance(folder, str) else ""
    patch = find_applied_patch(command, action_command_line(arguments, rule), place)
    return None if patch is None else json.dumps({"input": patch}, ensure_ascii=False)


def action_folder_argument(given: Mapping[str, Any], rule: ToolRule) -> str:
    """The argument that names the folder of a shell: the rule's, or another name it is known by."""
    if WORKING_FOLDERS.isdisjoint(given):
        return rule.folder
    names = (rule.folder, *WORKING_FOLDERS)
    return next((name for name in names if isinstance(given.get(name), str)), rule.folder)


@lru_cache(maxsize=2048)
def _effect_of(name: str, given: str, harness: str) -> Effect:
    rule = rule_of(harness, name)
    if rule is None:
        return Effect(Operation.OTHER, None, True)
    arguments = read_arguments(given)
    if arguments is None:
        arguments = {rule.target[0]: given} if rule.reading == "patch" else {}
    if rule.reading == "shell":
        command = action_command_line(arguments, rule)
        return Effect(rule.operation, None, True) if command is None else find_command_operation(command)
    if rule.reading in ("sql", "patch"):
        return _written_effect(arguments, rule)
    if rule.reading == "editor":
        return _editor_effect(arguments, rule)
    mutating = rule.operation not in READ_ONLY and rule.operation != Operation.ASK
    target = _first_target(arguments, rule)
    if rule.operation == Operation.FINISH and target is not None:
        target = None if target.lower() in _DONE else target.lower()
    return Effect(rule.operation, target, mutating)


def action_command_line(arguments: Mapping[str, Any], rule: ToolRule) -> str | None:
    """The command line of a call of a shell; None where it gives none. Words are joined to a line, and
    `bash -lc LINE` is LINE."""
    given = None
    for name in rule.target:
        if name in arguments:
            given = arguments[name]
            break
    if isinstance(given, str):
        return given
    if not isinstance(given, list) or not given or not all(isinstance(word, str) for word in given):
        return None
    if len(given) == 3 and posixpath.basename(given[0]) in _SHELLS and given[1] in ("-c", "-lc"):
        return given[2]
    return shlex.join(given)


def action_patched_files(patch: str) -> tuple[str, ...]:
    """The files a patch names, in its order, each once."""
    return tuple(dict.fromkeys(each.path for each in read_patch(patch)))


def _written_effect(arguments: dict[str, Any], rule: ToolRule) -> Effect:
    given = next((arguments[name] for name in rule.target if isinstance(arguments.get(name), str)), "")
    if rule.reading == "sql":
        operation = sql_operation(given)
        return Effect(operation, given[:_MAX_TARGET] or None, operation not in READ_ONLY)
    return Effect(Operation.EDIT, next(iter(action_patched_files(given)), None), True)


def _deciding(effects: Sequence[Effect]) -> Effect:
    if len(effects) == 1:
        return effects[0]
    for effect in effects:
        if effect.mutating:
            return effect
    return next((effect for effect in effects if effect.operation != Operation.PLAN), effects[0])


def _editor_effect(arguments: dict[str, Any], rule: ToolRule) -> Effect:
    target = _first_target(arguments, rule)
    operation = _EDITOR.get(str(arguments.get("command")))
    if operation is not None:
        return Effect(operation, target, True)
    return Effect(Operation.LIST if _is_folder(target, arguments) else Operation.READ, target, False)


def _is_folder(path: str | None, arguments: dict[str, Any]) -> bool:
    """A path without a suffix and without a range of lines is taken for a folder."""
    if path is None or arguments.get("view_range"):
        return False
    name = posixpath.basename(path)
    return "." not in name.lstrip(".") and name.lower() not in _NO_SUFFIX


def _first_target(arguments: dict[str, Any], rule: ToolRule) -> str | None:
    for name in rule.target:
        value = arguments.get(name)
        if isinstance(value, str | int) and str(value).strip():
            text = str(value).strip()[:_MAX_TARGET]
            return posixpath.normpath(text) if name in rule.paths else text
    return rule.standing
