"""Compute features of a request and of the first action after it: `fits=said*3`.

A student that only answers where a tool fits, that calls one that does not, or that answers a request for
several things with one call is likely to be outvoted. For one line of code, teachers agree more the shorter
the request is, and outvote the student more the less of its line was asked for. Only the beginning of a long
text is read.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tracemill.harnesses.core.schema_builders import clean_schema_name
from tracemill.harnesses.core.vocabulary import Operation
from tracemill.records.message import Action, ToolCall, ToolSpec, read_arguments

_READ_CHARS = 4000
_WORDS = re.compile(r"[a-z]+|\d+")
_WORD = re.compile(r"\w+")
_CAPITAL = re.compile(r"([a-z])([A-Z])")
_ITEMS = re.compile(r"\b(?:and|also|then|respectively)\b|[,;]", re.IGNORECASE)
_COMMON_WORDS = """about are calculate can find for from get give given how like need please should that the
    this use using want what with would you"""
_COMMON = frozenset(_COMMON_WORDS.split())
_STEM = 5
"""Length of a word's stem in letters, so that `converted` matches `conversion`."""
_SHORTEST = 3
_ENOUGH_WORDS = 8
_LONGEST = 31
"""Most words of a one-sentence request: beyond it the length is not informative."""
_OF_CODE = frozenset(
    {Operation.READ, Operation.SEARCH, Operation.LIST, Operation.EDIT, Operation.CREATE}
    | {Operation.RUN, Operation.RUN_TEST, Operation.VCS}
)
_QUARTERS = 4
_MANY_ITEMS, _MANY_CALLS = 4, 2


@dataclass(frozen=True, slots=True)
class UserRequest:
    """A user's request: stems of its words, number of words, and number of enumerated items."""

    stems: frozenset[str]
    length: int
    items: int

    @classmethod
    def of(cls, text: str) -> "UserRequest":
        """Return the request of a text."""
        read = text[:_READ_CHARS]
        return cls(_stems(read), len(_WORD.findall(read)), len(_ITEMS.findall(read)))


def request_feature_words(
    request: UserRequest, action: Action, operation: Operation, tools: Sequence[ToolSpec]
) -> list[str]:
    """Return the features of the first action after a request."""
    return [*_of_line(request, action, operation), *_of_tools(request, action, tools)]


def _of_line(request: UserRequest, action: Action, operation: Operation) -> list[str]:
    """Return features for one-sentence requests about code or files.

    `sentence` is the number of words (log2, half steps), `told` the share of the action's words that occur
    in the request, in quarters.
    """
    if operation not in _OF_CODE or not 0 < request.length <= _LONGEST:
        return []
    stems = _stems(" ".join(_written(call) for call in action.tool_calls) or action.text)
    overlap = round(_QUARTERS * len(stems & request.stems) / len(stems)) if stems else 0
    return [f"sentence={round(2 * math.log2(request.length + 1))}", f"told={overlap}"]


def _written(call: ToolCall) -> str:
    """Return the argument values of a call without their names."""
    values = read_arguments(call.arguments)
    return call.arguments if values is None else " ".join(str(value) for value in values.values())


def _of_tools(request: UserRequest, action: Action, tools: Sequence[ToolSpec]) -> list[str]:
    """Return features of how well the request fits the tools; none without tool descriptions.

    `fits` is the share, in quarters, of the called tool's words in the request, the highest of several calls;
    of the best tool where none was called. `items*calls` is the enumerated items, up to 4, and the calls, up
    to 2.
    """
    if not any(tool.description for tool in tools):
        return []
    names = {clean_schema_name(call.name) for call in action.tool_calls}
    called = (tool for tool in tools if not names or clean_schema_name(tool.name) in names)
    fit = max((_fit(request, tool) for tool in called), default=0)
    items, calls = min(request.items, _MANY_ITEMS), min(len(action.tool_calls), _MANY_CALLS)
    return [f"fits={'called' if names else 'said'}*{fit}", f"items*calls={items}*{calls}"]


def _fit(request: UserRequest, tool: ToolSpec) -> int:
    """Return the share of a tool's words, at most eight, that the request has, in quarters."""
    stems = _of_tool(tool.name, tool.description)
    shared = len(stems & request.stems)
    return round(_QUARTERS * min(1.0, shared / max(1, min(len(stems), _ENOUGH_WORDS))))


@lru_cache(maxsize=1024)
def _of_tool(name: str, description: str) -> frozenset[str]:
    return _stems(f"{name} {description}")


def _stems(text: str) -> frozenset[str]:
    words = _WORDS.findall(_CAPITAL.sub(r"\1 \2", text[:_READ_CHARS]).lower())
    return frozenset(
        word.removesuffix("s")[:_STEM] for word in words if len(word) >= _SHORTEST and word not in _COMMON
    )
