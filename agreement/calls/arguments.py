"""Arguments of a call in a normal form: defaults dropped, values coerced, paths made alike."""

import posixpath
import re
import shlex
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeGuard

from tracemill.agreement.shell.normal_form import shell_normal_form
from tracemill.harnesses.agents.registry import rule_of
from tracemill.harnesses.core.vocabulary import Operation, ToolRule
from tracemill.harnesses.operations import action_command_line, action_folder_argument
from tracemill.harnesses.shell.operations import join_path
from tracemill.harnesses.shell.patches import read_patch
from tracemill.harnesses.shell.sql import fold_sql, sql_form
from tracemill.records.message import ToolCall, ToolSpec, read_arguments

_NO_FLOATS = frozenset((str, int, bool, type(None)))
_ANY: Mapping[str, Any] = {}
_BODY_NAMES = """content contents text body source code code_edit code_edits patch diff file_text new_source
    file_content old_string new_string oldString newString old_str new_str oldStr newStr old_text new_text
    oldText newText search replace replacement replacement_text insert_text text_to_insert"""
_BODIES = frozenset(_BODY_NAMES.split())
"""Arguments that hold text as it stands in a file, by the names that tools give them."""
_WITH_BODIES = frozenset({Operation.EDIT, Operation.CREATE, Operation.RUN, Operation.SEARCH})
"""What tools do whose texts are taken to the letter, all but paths and the command of an editor."""


def canonical_arguments(
    call: ToolCall, tool: ToolSpec | None, cwd: str | None, harness: str
) -> dict[str, Any] | None:
    """The arguments that matter, in normal form; None where they are no JSON object.

    By the tool's schema: an argument that is null, empty and not required, or equal to its default goes;
    numbers and truth values written as text become such. By the harness's rule for the tool: arguments
    that only comment go, paths are joined with `cwd` and normalised, command lines are folded. Texts of
    files, code, keys pressed and patterns stay to the letter; around others blanks go, and Unicode is
    composed.
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
    if rule is not None and rule.reading == "shell":
        given = _moved(given, rule)
    kept: dict[str, Any] = {}
    ignored = rule.ignored if rule is not None else ()
    for name, value in given.items():
        if name in ignored:
            continue
        schema = properties.get(name)
        schema = schema if _is_schema(schema) else _ANY
        value = _value(name, value, schema, rule, cwd)
        if not _is_idle(name, value, schema, name in required, rule, cwd):
            kept[name] = value
    return kept


def fold_text(text: str) -> str:
    """Text with Unicode composed and every run of blanks folded to one space."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def coerce_argument(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value as its schema wants it, where nothing is lost; else unchanged."""
    kind = schema.get("type")
    if isinstance(value, str) and kind in ("integer", "number"):
        text = value.strip()
        if re.fullmatch(r"[+-]?\d{1,15}", text):
            return int(text)
        if kind == "number" and re.fullmatch(r"[+-]?\d{1,15}\.\d{1,15}", text):
            return _whole(float(text))
    if isinstance(value, str) and kind == "boolean" and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    return _whole(value) if isinstance(value, float) else value


def _is_schema(schema: Any) -> TypeGuard[Mapping[str, Any]]:
    return type(schema) is dict or isinstance(schema, Mapping)  # a dict is told much faster


def line_from_arguments(given: Mapping[str, Any], rule: ToolRule) -> str | None:
    """The command line of a call of a shell, beginning by going to the folder it names; None where it
    gives no line."""
    line, folder = action_command_line(given, rule), given.get(action_folder_argument(given, rule))
    if line is None:
        return None
    moves = isinstance(folder, str) and folder.strip()
    return f"cd {shlex.quote(str(folder).strip())} && {line}" if moves else line.strip()


def _moved(given: dict[str, Any], rule: ToolRule) -> dict[str, Any]:
    folder = action_folder_argument(given, rule)
    if not folder and isinstance(given.get(rule.target[0]), str):
        return given
    line = line_from_arguments(given, rule)
    if line is None:
        return given
    left_out = (folder, *rule.target)
    rest = {name: value for name, value in given.items() if name not in left_out}
    return {**rest, rule.target[0]: line}


def _whole(value: float) -> float | int:
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _value(name: str, value: Any, schema: Mapping[str, Any], rule: ToolRule | None, cwd: str | None) -> Any:
    told = isinstance(value, str) and schema.get("type", "string") == "string"
    if not told or not (value.isascii() or is_body(name, rule)):
        value = coerce_argument(value, schema)
        value = whole_number_arguments(value) if is_body(name, rule) else compose_argument_value(value)
    if not isinstance(value, str):
        return value
    if rule is not None and name in rule.paths and value.strip():
        return join_path(cwd or "", value.strip())
    if rule is not None and name in rule.target:
        if rule.reading == "shell" and name == rule.target[0]:
            return _line_form(value, cwd)
        if rule.reading == "sql":
            return _statement_form(value)
        if rule.reading == "patch":
            return _patch_form(value.strip(), cwd)
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
    """The patch of a call of a tool for patches, which may be its arguments as they stand."""
    given = read_arguments(call.arguments)
    if given is None:
        return call.arguments
    return next((given[name] for name in rule.target if isinstance(given.get(name), str)), "")


def _patch_form(patch: str, cwd: str | None) -> Any:
    """A patch file by file, its paths as seen from `cwd`; as it stands where it cannot be read."""
    files = read_patch(patch)
    if not files or not all(each.readable for each in files):
        return patch
    told = [
        [
            each.kind,
            join_path(cwd or "", each.path),
            None if each.moved_to is None else join_path(cwd or "", each.moved_to),
            [[hunk.anchors, hunk.old, hunk.new, hunk.at_end] for hunk in each.hunks],
        ]
        for each in files
    ]
    return ["patch", told]


def is_body(name: str, rule: ToolRule | None) -> bool:
    """True for an argument in which each blank counts: by its name where nothing is known of the tool, else
    where the tool changes files, runs code or searches, and the argument is neither path nor command."""
    if rule is None:
        return name in _BODIES
    if rule.reading == "shell" and name == rule.target[0]:
        return False
    chooses = rule.reading == "editor" and name == "command"
    return rule.operation in _WITH_BODIES and name not in rule.paths and not chooses


def compose_argument_value(value: Any) -> Any:
    """The JSON value with Unicode composed in its texts and whole numbers written as such."""
    if isinstance(value, str):
        return value if value.isascii() else unicodedata.normalize("NFC", value)
    if isinstance(value, list):
        return [compose_argument_value(item) for item in value]
    if isinstance(value, dict):
        return {
            key: item if type(item) is str and item.isascii() else compose_argument_value(item)
            for key, item in value.items()
        }
    return _whole(value) if isinstance(value, float) else value


def whole_number_arguments(value: Any) -> Any:
    """The JSON value with whole numbers written as such; itself where it is a flat object without floats."""
    if type(value) is dict and _NO_FLOATS.issuperset(map(type, value.values())):
        return value
    if isinstance(value, list):
        return [whole_number_arguments(item) for item in value]
    if isinstance(value, dict):
        return {
            key: item if type(item) is str else whole_number_arguments(item) for key, item in value.items()
        }
    return _whole(value) if isinstance(value, float) else value


@lru_cache(maxsize=256)
def _normal(folder: str) -> str:
    return posixpath.normpath(folder)


def _is_idle(
    name: str, value: Any, schema: Mapping[str, Any], required: bool, rule: ToolRule | None, cwd: str | None
) -> bool:
    """True where leaving the argument out would do the same."""
    if value is None or (not value and not name.strip()):
        return True
    if required:
        return False
    if schema.get("default", ...) == value:
        return type(schema["default"]) is type(value)
    if rule is not None and name in rule.paths and cwd and value == _normal(cwd):
        return name != next(iter(rule.target), None)
    return value == "" and name not in _BODIES
