"""Actions written in the text of a message, in harnesses that act that way.

SWE-agent: one command in a fenced block, or in `<command>` tags. OpenHands without native tool calls:
`<function=NAME><parameter=KEY>VALUE</parameter></function>`.
"""

import json
import re

from records.message import Action, ToolCall

_FENCE = re.compile(r"^```(?:bash|sh|shell)?[ \t]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_TAGGED = re.compile(r"<command>\n?(.*?)\n?</command>", re.DOTALL)
_FUNCTION = re.compile(r"<function=([\w.-]+)>(.*?)</function>", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([\w.-]+)>\n?(.*?)\n?</parameter>", re.DOTALL)


def calls_in_text(text: str, harness: str) -> tuple[ToolCall, ...]:
    """The calls written in a text, as tool calls with empty ids; none where there are none.

    A command of SWE-agent becomes a call of `bash`; the last block counts, as it does there.
    """
    functions = tuple(
        ToolCall("", name, json.dumps(dict(_PARAMETER.findall(body)), ensure_ascii=False))
        for name, body in _FUNCTION.findall(text)
    )
    if functions or not harness.startswith("swe_agent"):
        return functions
    commands = _TAGGED.findall(text) or _FENCE.findall(text)
    if not commands:
        return ()
    return (ToolCall("", "bash", json.dumps({"command": commands[-1].strip("\n")}, ensure_ascii=False)),)


def calls_of(action: Action, harness: str) -> tuple[ToolCall, ...]:
    """The calls of an action: its tool calls, else those written in its text."""
    if action.tool_calls or not action.text:
        return action.tool_calls
    return calls_in_text(action.text, harness)
