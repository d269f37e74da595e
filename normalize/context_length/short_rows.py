"""Shorten rows for trainers with short contexts: fewer tools, shorter first messages, the last turns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from tracemill.normalize.context_length.cut_context import ContextCutter, FittedContext
from tracemill.normalize.context_length.cut_plan import shorten_for_cut_plan
from tracemill.normalize.context_length.identity_cache import IdentityCache
from tracemill.normalize.context_length.token_counts import Count
from tracemill.records.message import Message, ToolSpec
from tracemill.records.pair import RowTokens
from tracemill.records.placeholders import head_with_whole_placeholders
from tracemill.records.trace import MessageView

TEMPLATE_TOKENS = 160
"""Tokens that a chat template adds to messages and schemas, such as how to call tools."""
HEAD_CHARS = (8000, 4000, 2000, 1000, 500, 250, 200, 100)
"""Lengths to which messages before the agent's first one are shortened, tried in order."""
EVERY_CHARS = 200
"""At this length and below observations are shortened too, so that a turn of several results fits."""
TOOL_CHARS = 200
"""Length to which descriptions of tools are shortened; those of parameters are removed."""
_CACHED_CONTEXTS = 16


class ShortRow(NamedTuple):
    """A state that fits with its sides, its tools, and its length in tokens."""

    messages: Sequence[Message]
    tools: tuple[ToolSpec, ...]
    length: RowTokens


@dataclass(slots=True)
class Shortener:
    """A cutter of rows to `max_tokens`.

    All tools stay if a row fits with them, unless `called_tools` is True. Else the tools that the row calls
    stay, with shortened descriptions if that is needed.
    """

    count: Count
    max_tokens: int
    called_tools: bool = False
    _cutter: ContextCutter = field(init=False)
    _short_heads: dict[int, IdentityCache[Sequence[Message], tuple[Message, ...]]] = field(init=False)

    def __post_init__(self) -> None:
        self._cutter = ContextCutter(self.count, self.max_tokens - TEMPLATE_TOKENS)
        self._short_heads = {
            most: IdentityCache(partial(_shorten_head, most=most), _CACHED_CONTEXTS) for most in HEAD_CHARS
        }

    def fit(
        self, messages: Sequence[Message], tools: tuple[ToolSpec, ...], sides: Sequence[Sequence[Message]]
    ) -> ShortRow | None:
        """Return the row cut to fit; None if a side or the last turn alone is too long."""
        called = called_tools(messages, tools, sides)
        brief = tuple(map(brief_tool, called))
        for shown in [called, brief] if self.called_tools else [tools, called, brief]:
            fitted = self._cutter.fit(messages, shown, sides)
            if isinstance(fitted, FittedContext):
                return ShortRow(fitted.messages, shown, fitted.length)
        whole = messages.whole if isinstance(messages, MessageView) else messages
        for short_head in self._short_heads.values():
            shortened = MessageView(short_head.get(whole), len(messages))
            fitted = self._cutter.fit(shortened, brief, sides)
            if isinstance(fitted, FittedContext):
                cut = fitted.length.cut or "observations"
                return ShortRow(fitted.messages, brief, replace(fitted.length, cut=cut))
        return None


def _shorten_head(messages: Sequence[Message], most: int) -> tuple[Message, ...]:
    """Shorten the messages before the agent's first one, and all others' from `EVERY_CHARS` down."""
    roles = [message.role for message in messages]
    head = roles.index("assistant") if "assistant" in roles else len(roles)
    last = head if most > EVERY_CHARS else len(roles)
    return tuple(
        message
        if at >= last or message.role == "assistant" or len(message.content) <= most
        else replace(message, content=shorten_for_cut_plan(message.content, most))
        for at, message in enumerate(messages)
    )


def called_tools(
    messages: Sequence[Message], tools: Sequence[ToolSpec], sides: Sequence[Sequence[Message]]
) -> tuple[ToolSpec, ...]:
    """Return the tools that are called in a context or on a side, in their order."""
    everything = [*messages, *(message for side in sides for message in side)]
    names = {call.name for message in everything for call in message.tool_calls}
    return tuple(tool for tool in tools if tool.name in names)


def brief_tool(tool: ToolSpec) -> ToolSpec:
    """Return a tool with a short description and undescribed parameters."""
    description = head_with_whole_placeholders(tool.description, TOOL_CHARS)
    return replace(tool, description=description, parameters=_without_descriptions(tool.parameters))


def _without_descriptions(schema: Any) -> Any:
    """Remove descriptions from a JSON schema; a parameter named `description` is no text and stays."""
    if isinstance(schema, Mapping):
        kept = {k: v for k, v in schema.items() if not (k == "description" and isinstance(v, str))}
        return {name: _without_descriptions(value) for name, value in kept.items()}
    return [_without_descriptions(each) for each in schema] if isinstance(schema, list | tuple) else schema
