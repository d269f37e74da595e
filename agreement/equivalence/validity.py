"""Check which replies may vote: calls that their tools take, and texts that end the work."""

import re
from collections.abc import Sequence

from tracemill.agreement.calls.schemas import why_schema_misfit
from tracemill.agreement.calls.text_written_calls import has_text_written_call
from tracemill.harnesses.agents.registry import harness_for, rule_for
from tracemill.harnesses.core.schema_builders import clean_schema_name
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
_CODE_BLOCK = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)


def why_reply_invalid(reply: TeacherReply, tools: Sequence[ToolSpec], harness: str = "") -> str | None:
    """Return why a reply has no vote, as a short fixed phrase; None if it has one.

    It has none if the call failed, was truncated or empty, if it calls a tool that was not offered or
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


def _acts(action: Action, tools: Sequence[ToolSpec], harness: str) -> bool:
    """Return whether the harness would execute something.

    That is a call, or a command in the text if no tool is offered.
    """
    return bool(action.tool_calls) or (not tools and bool(calls_in_text(action.text, harness)))


def why_calls_invalid(action: Action, tools: Sequence[ToolSpec]) -> str | None:
    """Return why the first invalid call of an action could not be carried out; None if all could.

    Arguments are checked against the schema only where it is not inferred from the calls seen.
    """
    reasons = (_why_call_invalid(call, tools) for call in action.tool_calls)
    return next((reason for reason in reasons if reason), None)


def _why_call_invalid(call: ToolCall, tools: Sequence[ToolSpec]) -> str | None:
    """Return why a call could not be carried out with these tools; None if it could."""
    tool = next((tool for tool in tools if tool.name == clean_schema_name(call.name)), None)
    if tool is None:
        return "tool not offered"
    arguments = call.parsed()
    if arguments is None:
        return "arguments are no JSON object"
    return None if tool.origin == "inferred" else why_schema_misfit(arguments, tool.parameters)


def why_text_invalid(action: Action, tools: Sequence[ToolSpec], harness: str) -> str | None:
    """Return why the text of an action is invalid, None if it is not.

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
    """Return why a text without a call ends nothing; None if it may end the work."""
    kind = find_text_intent(text)
    if kind == "error":
        return "error as text"
    known = harness_for(harness)
    if kind == "announcement" and known.text_ends_run and (tools or known.text_actions):
        return "only announces an act"
    rules = (rule_for(known, tool.name) for tool in tools if kind == "command")
    shell = any(rule is not None and rule.reading == "shell" for rule in rules)
    return "call written as text" if shell else None
