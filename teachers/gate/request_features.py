"""What a request asks for, and whether an action takes it up, as words of a step: `fits=said*3`.

A student that only says something where a tool fits, that calls one that does not, or that answers a request
for several things with one call is likely to be outvoted. Where a line of code is written, teachers are the
likelier to agree the shorter the request is, and the student to be outvoted the less of its line was asked
for. Said of the first action after a request. Of a long text the beginning is read.
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
"""Letters by which words are told apart, so that `converted` meets `conversion`."""
_SHORTEST = 3
_ENOUGH_WORDS = 8
_LONGEST = 31
"""Words of a request that is one sentence: of a longer one, how long it is tells nothing."""
_OF_CODE = frozenset(
    {Operation.READ, Operation.SEARCH, Operation.LIST, Operation.EDIT, Operation.CREATE}
    | {Operation.RUN, Operation.RUN_TEST, Operation.VCS}
)
_QUARTERS = 4
_MANY_ITEMS, _MANY_CALLS = 4, 2


@dataclass(frozen=True, slots=True)
class Request:
    """What a user asked: the stems of its words, how many words it has, and in how many places it goes on
    with a further item."""

    stems: frozenset[str]
    length: int
    items: int

    @classmethod
    def of(cls, text: str) -> "Request":
        """That of a text."""
        read = text[:_READ_CHARS]
        return cls(_stems(read), len(_WORD.findall(read)), len(_ITEMS.findall(read)))


def request_feature_words(
    request: Request, action: Action, operation: Operation, tools: Sequence[ToolSpec]
) -> list[str]:
    """The words of the first action after a request."""
    return [*_of_line(request, action, operation), *_of_tools(request, action, tools)]


def _of_line(request: Request, action: Action, operation: Operation) -> list[str]:
    """Of an action on code or files after a request of a sentence: `sentence` has the words of the request
    in half powers of two, `told` in quarters how much of the action's words the request has too."""
    if operation not in _OF_CODE or not 0 < request.length <= _LONGEST:
        return []
    stems = _stems(" ".join(_written(call) for call in action.tool_calls) or action.text)
    told = round(_QUARTERS * len(stems & request.stems) / len(stems)) if stems else 0
    return [f"sentence={round(2 * math.log2(request.length + 1))}", f"told={told}"]


def _written(call: ToolCall) -> str:
    """The values of a call without their names."""
    values = read_arguments(call.arguments)
    return call.arguments if values is None else " ".join(str(value) for value in values.values())


def _of_tools(request: Request, action: Action, tools: Sequence[ToolSpec]) -> list[str]:
    """None where no tool is offered, or none is described: of names alone nothing is told.

    `fits` has, in quarters, how much of the tool called is in the words of the request, of several calls the
    most; where the action only says something, of the tool that fits best. `items*calls` has the further
    items asked for, up to 4, and the calls made, up to 2.
    """
    if not any(tool.description for tool in tools):
        return []
    names = {clean_schema_name(call.name) for call in action.tool_calls}
    near = (tool for tool in tools if not names or clean_schema_name(tool.name) in names)
    fit = max((_fit(request, tool) for tool in near), default=0)
    items, calls = min(request.items, _MANY_ITEMS), min(len(action.tool_calls), _MANY_CALLS)
    return [f"fits={'called' if names else 'said'}*{fit}", f"items*calls={items}*{calls}"]


def _fit(request: Request, tool: ToolSpec) -> int:
    """Quarters of the words of a tool's name and description, of eight at most, that the request has too."""
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
