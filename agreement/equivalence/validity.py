"""Check which replies could have been carried out where they were given, and so may vote."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tracemill.agreement.calls.schemas import why_schema_misfit
from tracemill.agreement.calls.text_written_calls import has_text_written_call
from tracemill.agreement.equivalence.ladder import ActionKeys, paths_needed_by_ladder
from tracemill.agreement.files.edits import TextChange, parse_edit_changes, parse_patch_edits
from tracemill.agreement.files.file_text import FileText
from tracemill.agreement.world.edit_checks import is_noop_edit, why_edit_check_fails
from tracemill.agreement.world.world_state import EnvironmentState
from tracemill.harnesses.agents.registry import harness_for, rule_for
from tracemill.harnesses.core.schema_builders import clean_schema_name
from tracemill.harnesses.operations import action_command_line, resolve_operation_tool
from tracemill.harnesses.shell.quotes import ends_in_quote
from tracemill.harnesses.text_calls import calls_in_text, tool_or_text_calls
from tracemill.harnesses.text_intents import find_text_intent
from tracemill.records.message import Action, ToolCall, ToolSpec
from tracemill.records.reply import TeacherReply

_FAKED_RESULT = re.compile(
    r"^[ \t]*(?:observation:|<function_results?>|<tool_results?>|<tool_response>|<observation>|"
    r"execution result of \[|\[?tool (?:result|output)\]?:|(?:human|user):[ \t]*$|"
    r"<\|(?:im_start|user|tool|observation)\|>)",
    re.IGNORECASE | re.MULTILINE,
)
_WRITTEN_CALL = re.compile(
    r"^[ \t]*(?:<function_calls>|<function=|<invoke |<tool_call>|<\|tool_calls?_begin\|>|\[TOOL_CALLS\])",
    re.MULTILINE,
)
_USUAL_NAMES = """pyproject.toml setup.py setup.cfg requirements.txt package.json makefile cargo.toml go.mod
    pom.xml build.gradle tsconfig.json dockerfile license changelog.md contributing.md claude.md agents.md
    .gitignore __init__.py conftest.py tox.ini . .."""
_USUAL = frozenset(_USUAL_NAMES.split())
_CODE_BLOCK = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)


def why_reply_invalid(reply: TeacherReply, tools: Sequence[ToolSpec], harness: str = "") -> str | None:
    """Return why a reply has no vote, as a short fixed phrase; None where it has one.

    It has none where the call failed, was truncated or empty, where it calls a tool that was not offered or
    breaks its schema, where its text fakes a tool result, spells out or announces a call, or is a provider's
    error, and where it has no command in a harness that needs one.
    """
    if reply.action is None:
        return f"failed: {reply.failure or 'unknown'}"
    if reply.finish_reason == "length":
        return "failed: truncated"
    action = reply.action
    if not action.tool_calls and not action.text.strip():
        return "empty"
    reason = why_calls_invalid(action, tools) or why_text_invalid(action, tools, harness)
    if reason is None and not harness_for(harness).text_ends_run and not _acts(action, tools, harness):
        return "no command"
    return reason


def why_action_impossible(action: Action, known: ActionKeys, world: EnvironmentState) -> str | None:
    """Return why an action could not be carried out here, as a short fixed phrase; None where it could.

    Impossible are a command line that ends inside a quote and an edit that changes nothing; an edit of text
    that neither the file, as far as it is known, nor anything shown holds, that it holds more often than the
    tool accepts, or of lines beyond the end; and a file that no message names. The last three are not judged
    where messages were lost. Patches are matched line by line, whitespace apart.
    """
    given = tool_or_text_calls(action, world.harness)
    if any(_has_open_quote(call, world.harness) for call in given):
        return "shell line with an open quote"
    calls = [resolve_operation_tool(call, world.harness) for call in given]
    if any(is_noop_edit(call, world.harness) for call in calls):
        return "edit changes nothing"
    if not world.complete or not world.record.messages:
        return None
    files: dict[str, FileText | None] = {}
    for call in calls:
        asked, made = call.parsed() or {}, ""
        changes = parse_edit_changes(asked)
        for change in _patch_changes(asked) if changes is None else changes:
            by_lines = changes is None or bool(made)
            if not (
                _text_known(change.old, known, world)
                or (by_lines and _lines_known(change.old, made, known, world))
            ):
                return "edit text absent"
            made += "\n" + change.new
        if why := why_edit_check_fails(call, world, files):
            return why
    unseen = (
        path for path in paths_needed_by_ladder(known) if not _is_usual(path) and not world.mentions(path)
    )
    return "path never seen" if next(unseen, None) is not None else None


def _has_open_quote(call: ToolCall, harness: str) -> bool:
    """Return whether a call gives a shell a line that ends inside a quote.

    Input for a running program is no line.
    """
    rule = rule_for(harness_for(harness), call.name)
    if rule is None or rule.reading != "shell":
        return False
    asked = call.parsed() or {}
    line = action_command_line(asked, rule)
    return line is not None and str(asked.get("is_input")).lower() != "true" and ends_in_quote(line)


def _patch_changes(arguments: Mapping[str, Any]) -> list[TextChange]:
    patch = next((arguments[name] for name in ("input", "patch") if isinstance(arguments.get(name), str)), "")
    return [change for kind, _, changes in parse_patch_edits(patch) if kind == "Update" for change in changes]


def _lines_known(old: str, made: str, known: ActionKeys, world: EnvironmentState) -> bool:
    lines = (line.strip() for line in old.split("\n"))
    return all(line in made or _text_known(line, known, world) for line in lines)


def _text_known(old: str, known: ActionKeys, world: EnvironmentState) -> bool:
    if not old.strip():
        return True
    texts = (world.text_of(path) for path in paths_needed_by_ladder(known))
    return any(text is not None and old in text.text for text in texts) or world.holds(old)


def _is_usual(path: str) -> bool:
    """Return whether a file is one that most projects have; patterns and variables name none."""
    name = path.rsplit("/", 1)[-1]
    return name.lower() in _USUAL or name.upper().startswith("README") or any(sign in path for sign in "*$~{")


def _acts(action: Action, tools: Sequence[ToolSpec], harness: str) -> bool:
    """Return whether the harness would carry something out.

    That is a call, or a command in the text where no tool is offered.
    """
    return bool(action.tool_calls) or (not tools and bool(calls_in_text(action.text, harness)))


def why_calls_invalid(action: Action, tools: Sequence[ToolSpec]) -> str | None:
    """Return why the first invalid call of an action could not be carried out; None where all could.

    Arguments are checked against the schema only where it is not inferred from the calls seen.
    """
    reasons = (_why_call_invalid(call, tools) for call in action.tool_calls)
    return next((reason for reason in reasons if reason), None)


def _why_call_invalid(call: ToolCall, tools: Sequence[ToolSpec]) -> str | None:
    """Return why a call could not be carried out with these tools; None where it could."""
    tool = next((tool for tool in tools if tool.name == clean_schema_name(call.name)), None)
    if tool is None:
        return "tool not offered"
    arguments = call.parsed()
    if arguments is None:
        return "arguments are no JSON object"
    return None if tool.origin == "inferred" else why_schema_misfit(arguments, tool.parameters)


def why_text_invalid(action: Action, tools: Sequence[ToolSpec], harness: str) -> str | None:
    """Return why the text of an action is invalid, None where it is not.

    It is where it fakes a tool result, spells out or only announces a call, or is a provider's error.
    """
    prose = _CODE_BLOCK.sub("", action.text)
    if _FAKED_RESULT.search(prose):
        return "fakes a tool result"
    if tools and (
        _WRITTEN_CALL.search(prose) or (not action.tool_calls and has_text_written_call(action.text, tools))
    ):
        return "call written as text"
    return None if tool_or_text_calls(action, harness) else _why_no_end(action.text, tools, harness)


def _why_no_end(text: str, tools: Sequence[ToolSpec], harness: str) -> str | None:
    """Return why a text without a call ends nothing; None where it may end the work."""
    kind = find_text_intent(text)
    if kind == "error":
        return "error as text"
    known = harness_for(harness)
    if kind == "announcement" and known.text_ends_run and (tools or known.text_actions):
        return "only announces an act"
    rules = (rule_for(known, tool.name) for tool in tools if kind == "command")
    shell = any(rule is not None and rule.reading == "shell" for rule in rules)
    return "call written as text" if shell else None
