"""Actions written in the text of a message, in harnesses that act that way.

| harness | an action is |
|---|---|
| SWE-agent | the last fenced block that stands in no other, or what the last `<command>` tags hold |
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
_MARK = 64
_FUNCTION = re.compile(r"<function=([\w.-]+)>(.*?)</function>", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([\w.-]+)>\n?(.*?)\n?</parameter>", re.DOTALL)


@lru_cache(maxsize=64)
def calls_in_text(text: str, harness: str) -> tuple[ToolCall, ...]:
    """The calls written in a text, as tool calls with empty ids; none where there are none, or where the
    harness would refuse the text."""
    functions = _functions(text) if "<function=" in text else ()
    written = harness_for(harness).written
    if written is None:
        return functions
    if functions and written.functions_first:
        return functions[:1]
    places = written.places(text)
    return (written.call(text[places[0]]),) if len(places) == 1 else functions


def find_text_call(text: str, harness: str) -> str | None:
    """The part of a text that its one call is, with the marks around it; None where it holds no such call."""
    place = _place_of_call(text, harness)
    if place is None:
        return None
    opening, closing = _OPENING.search(text[: place.start][-_MARK:]), _CLOSING.match(text, place.stop)
    start = place.start - (len(opening[0]) if opening else 0)
    return text[start : closing.end() if closing else place.stop]


def replace_text_call(text: str, other: str, harness: str) -> str | None:
    """The text with the call of another text in the place of its own; None unless both hold one call that
    the harness takes, written in the same form."""
    one, two = _place_of_call(text, harness), _place_of_call(other, harness)
    if one is None or two is None:
        return None
    call = other[two]
    if call.startswith("<function=") != text[one].startswith("<function="):
        return None
    return text[: one.start] + call + text[one.stop :]


def _place_of_call(text: str, harness: str) -> slice | None:
    """Where the only call that a harness takes from a text stands."""
    functions = [slice(*found.span()) for found in _FUNCTION.finditer(text)]
    written = harness_for(harness).written
    if written is None:
        return functions[0] if len(functions) == 1 else None
    if functions and written.functions_first:
        return functions[0]
    places = written.places(text)
    places = places if len(places) == 1 else functions
    return places[0] if len(places) == 1 else None


def tool_or_text_calls(action: Action, harness: str) -> tuple[ToolCall, ...]:
    """The calls of an action: its tool calls, else those written in its text."""
    if action.tool_calls or not action.text:
        return action.tool_calls
    return calls_in_text(action.text, harness)


def _functions(text: str) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall("", name, json.dumps(dict(_PARAMETER.findall(body)), ensure_ascii=False))
        for name, body in _FUNCTION.findall(text)
    )
