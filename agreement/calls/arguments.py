"""Normalise call arguments: drop defaults, resolve paths."""

import posixpath
import shlex
import unicodedata
from collections.abc import Mapping
from typing import Any, TypeGuard

from tracemill.agreement.shell.normal_form import shell_normal_form
from tracemill.harnesses.agents.registry import rule_of
from tracemill.harnesses.core.vocabulary import Operation, ToolRule
from tracemill.harnesses.operations import action_command_line, action_folder_argument
from tracemill.harnesses.shell.operations import join_path
from tracemill.harnesses.shell.sql import fold_sql, sql_form
from tracemill.records.message import ToolCall, ToolSpec, read_arguments

_ANY: Mapping[str, Any] = {}
_BODY_NAMES = """content contents text body source code code_edit code_edits patch diff file_text new_source
    file_content old_string new_string oldString newString old_str new_str oldStr newStr old_text new_text
    oldText newText search replace replacement replacement_text insert_text text_to_insert"""
_BODIES = frozenset(_BODY_NAMES.split())
"""Names of arguments that hold file text verbatim."""
_WITH_BODIES = frozenset({Operation.EDIT, Operation.CREATE, Operation.RUN, Operation.SEARCH})
"""Operations whose text arguments are compared verbatim, except paths and an editor's command."""


def canonical_arguments(
    call: ToolCall, tool: ToolSpec | None, cwd: str | None, harness: str
) -> dict[str, Any] | None:
    """Return the arguments that matter, in normal form; None if they are no JSON object.

    By the tool's schema, arguments that are null, optional and empty, or equal to their default are dropped.
    By the harness's rule for the tool, comments are dropped, paths are joined with `cwd` and command lines
    are normalised. File texts, code, keys pressed and patterns stay verbatim; other texts are stripped.
    """
    given = read_arguments(call.arguments)
    rule = rule_of(harness, call.name)
    if given is None and rule is not None and rule.reading == "patch":
        given = {rule.target[0]: call.arguments}
    if given is None:
        return None
    parameters = tool.parameters if tool is not None else {}
    properties = parameters.get("properties") or {}
    required = parameters.get("required") or ()
    kept: dict[str, Any] = {}
    ignored = rule.ignored if rule is not None else ()
    for name, value in given.items():
        if name in ignored:
            continue
        schema = properties.get(name)
        schema = schema if _is_schema(schema) else _ANY
        value = _value(name, value, rule, cwd)
        if not _is_redundant(name, value, schema, name in required, rule, cwd):
            kept[name] = value
    return kept


def fold_text(text: str) -> str:
    """Return the text with Unicode composed and every run of whitespace as one space."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def _is_schema(schema: Any) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(schema, Mapping)


def line_from_arguments(given: Mapping[str, Any], rule: ToolRule) -> str | None:
    """Return the command line of a shell call, prefixed by `cd` to its folder argument.

    Return None if the call has no line.
    """
    line, folder = action_command_line(given, rule), given.get(action_folder_argument(given, rule))
    if line is None:
        return None
    has_folder = isinstance(folder, str) and folder.strip()
    return f"cd {shlex.quote(str(folder).strip())} && {line}" if has_folder else line.strip()


def leaves_sandbox(given: Mapping[str, Any], rule: ToolRule) -> bool:
    """Return whether a shell call asks to run outside of the agent's sandbox."""
    return any(given.get(name) in (True, "require_escalated") for name in rule.outside)


def _value(name: str, value: Any, rule: ToolRule | None, cwd: str | None) -> Any:
    if not isinstance(value, str):
        return value
    if rule is not None and name in rule.paths and value.strip():
        return join_path(cwd or "", value.strip())
    if rule is not None and name in rule.target:
        if rule.reading == "shell" and name == rule.target[0]:
            return _line_form(value, cwd)
        if rule.reading == "sql":
            return _statement_form(value)
    return value if is_body(name, rule) else value.strip()


def _line_form(line: str, cwd: str | None) -> list[Any]:
    form = shell_normal_form(line.strip(), cwd)
    return ["raw", fold_text(line)] if form is None else ["shell", form]


def _statement_form(text: str) -> list[Any]:
    statement = sql_form(text.strip())
    if statement is None:
        return ["raw", fold_sql(text)]
    return ["sql", statement.text, *statement.double_quoted]


def patch_from_arguments(call: ToolCall, rule: ToolRule) -> str:
    """Return the patch of a call of a patch tool, which may be its bare arguments."""
    given = read_arguments(call.arguments)
    if given is None:
        return call.arguments
    return next((given[name] for name in rule.target if isinstance(given.get(name), str)), "")


def is_body(name: str, rule: ToolRule | None) -> bool:
    """Return whether every character of an argument counts.

    Without a rule this is decided by the argument's name. With one it holds where the tool changes files,
    runs code or searches, and the argument is neither a path nor a command.
    """
    if rule is None:
        return name in _BODIES
    if rule.reading == "shell" and name == rule.target[0]:
        return False
    chooses = rule.reading == "editor" and name == "command"
    return rule.operation in _WITH_BODIES and name not in rule.paths and not chooses


def _is_redundant(
    name: str, value: Any, schema: Mapping[str, Any], required: bool, rule: ToolRule | None, cwd: str | None
) -> bool:
    """Return whether leaving the argument out would do the same."""
    if value is None or (not value and not name.strip()):
        return True
    if required:
        return False
    if schema.get("default", ...) == value:
        return type(schema["default"]) is type(value)
    if rule is not None and name in rule.paths and cwd and value == posixpath.normpath(cwd):
        return name != next(iter(rule.target), None)
    return value == "" and name not in _BODIES
