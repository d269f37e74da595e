"""Find actions written in the text of a message, in harnesses that act that way.

| harness | an action is |
|---|---|
| SWE-agent | the last fenced block outside of any other, or the content of the last `<command>` tags |
| mini-swe-agent | the one block fenced as `bash` or `mswea_bash_command`, or in `<mswea_bash_command>` tags |
| any | `<function=NAME><parameter=KEY>VALUE</parameter></function>`; in SWE-agent the first counts |
"""

import json
import re
from functools import lru_cache

from tracemill.harnesses.agents.registry import harness_for
from tracemill.records.message import Action, ToolCall

_TAGS = "(?:command|mswea_bash_command|bash_code)"
_OPENING = re.compile(rf"(?:```\S*[ \t]*\n|<{_TAGS}>\s*)\Z")
_CLOSING = re.compile(rf"\s*(?:```|</{_TAGS}>)")
_MAX_OPENING_CHARS = 64
_FUNCTION = re.compile(r"<function=([\w.-]+)>(.*?)</function>", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([\w.-]+)>\n?(.*?)\n?</parameter>", re.DOTALL)


@lru_cache(maxsize=64)
def calls_in_text(text: str, harness: str) -> tuple[ToolCall, ...]:
    """Return the calls written in a text, as tool calls with empty ids.

    There are none if the harness would refuse the text.
    """
    return tuple(call for _, call in _placed_calls(text, harness))


def _placed_calls(text: str, harness: str) -> list[tuple[slice, ToolCall]]:
    """Return the calls that a harness takes from a text, each with its position."""
    functions = [(slice(*match.span()), _function_call(match)) for match in _FUNCTION.finditer(text)]
    commands = harness_for(harness).text_commands
    if commands is None:
        return functions
    if functions and commands.functions_first:
        return functions[:1]
    places = commands.find(text)
    return [(places[0], commands.parse(text[places[0]]))] if len(places) == 1 else functions


def _function_call(match: re.Match[str]) -> ToolCall:
    arguments = dict(_PARAMETER.findall(match[2]))
    return ToolCall("", match[1], json.dumps(arguments, ensure_ascii=False))


def find_text_call(text: str, harness: str) -> str | None:
    """Return the part of a text that is its only call, with its fences or tags; None if there is none."""
    place = _place_of_call(text, harness)
    if place is None:
        return None
    opening = _OPENING.search(text[: place.start][-_MAX_OPENING_CHARS:])
    closing = _CLOSING.match(text, place.stop)
    start = place.start - (len(opening[0]) if opening else 0)
    return text[start : closing.end() if closing else place.stop]


def replace_text_call(text: str, other: str, harness: str) -> str | None:
    """Replace the call in a text by that of another text.

    Returns None unless both hold exactly one call that the harness takes, written in the same form.
    """
    one, two = _place_of_call(text, harness), _place_of_call(other, harness)
    if one is None or two is None:
        return None
    call = other[two]
    if call.startswith("<function=") != text[one].startswith("<function="):
        return None
    return text[: one.start] + call + text[one.stop :]


def _place_of_call(text: str, harness: str) -> slice | None:
    """Return the position of the only call that a harness takes from a text."""
    placed = _placed_calls(text, harness)
    return placed[0][0] if len(placed) == 1 else None


def tool_or_text_calls(action: Action, harness: str) -> tuple[ToolCall, ...]:
    """Return the calls of an action: its tool calls, else those written in its text."""
    if action.tool_calls or not action.text:
        return action.tool_calls
    return calls_in_text(action.text, harness)
