"""Rows for trainers with short contexts: fewer tools, a shorter system prompt and task, the last turns."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tracemill.normalize.context_length.cut_context import Cutter, Fitted
from tracemill.normalize.context_length.cut_plan import shorten_for_cut_plan
from tracemill.normalize.context_length.token_counts import Count
from tracemill.records.message import Message, ToolSpec
from tracemill.records.pair import Length
from tracemill.records.placeholders import head_with_whole_placeholders
from tracemill.records.trace import MessageView

TEMPLATE_TOKENS = 160
"""What a chat template writes beside messages and schemas, such as how tools are to be called."""
HEAD_CHARS = (8000, 4000, 2000, 1000, 500, 250, 200, 100)
"""To what the system prompt and what the user said first are shortened, one after the other."""
EVERY_CHARS = 200
"""From so many characters on observations are shortened likewise, so that a turn of several results fits."""
TOOL_CHARS = 200
"""To what descriptions of tools are shortened; those of their parameters go."""
_KNOWN = 16


class ShortRow(NamedTuple):
    """A state that fits with its sides: what is shown, the tools, and its length."""

    messages: Sequence[Message]
    tools: tuple[ToolSpec, ...]
    length: Length


@dataclass(slots=True)
class Shortener:
    """Brings rows to `max_tokens`. All tools stay where a row fits with them, unless `called_tools` alone are
    wanted; else those that are called in the row, with their descriptions cut where that is not enough."""

    count: Count
    max_tokens: int
    called_tools: bool = False
    _cutter: Cutter = field(init=False)
    _heads: dict[tuple[int, int], tuple[object, tuple[Message, ...]]] = field(default_factory=dict)
    _briefs: dict[tuple[int, ...], tuple[object, tuple[ToolSpec, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._cutter = Cutter(self.count, self.max_tokens - TEMPLATE_TOKENS)

    def fit(
        self, messages: Sequence[Message], tools: tuple[ToolSpec, ...], sides: Sequence[Sequence[Message]]
    ) -> ShortRow | None:
        """The row as it fits; None where it does not, since a side or the last turn is too long."""
        called = called_tools(messages, tools, sides)
        brief = self._brief(called)
        for shown in [called, brief] if self.called_tools else [tools, called, brief]:
            fitted = self._cutter.fit(messages, shown, sides)
            if isinstance(fitted, Fitted):
                return ShortRow(fitted.messages, shown, fitted.length)
        for most in HEAD_CHARS:
            fitted = self._cutter.fit(self._with_head(messages, most), brief, sides)
            if isinstance(fitted, Fitted):
                cut = fitted.length.cut or "observations"
                return ShortRow(fitted.messages, brief, replace(fitted.length, cut=cut))
        return None

    def _brief(self, tools: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
        """The tools in few words; the same objects for the same tools, so that they are counted once."""
        key = tuple(map(id, tools))
        known = self._briefs.pop(key, None) or (tools, tuple(map(brief_tool, tools)))
        self._briefs[key] = known
        if len(self._briefs) > _KNOWN:
            del self._briefs[next(iter(self._briefs))]
        return known[1]

    def _with_head(self, messages: Sequence[Message], most: int) -> Sequence[Message]:
        """The messages, those before the agent first speaks in at most so many characters each; from
        `EVERY_CHARS` on all that are not the agent's."""
        whole = messages.whole if isinstance(messages, MessageView) else messages
        key = (id(whole), most)
        known = self._heads.pop(key, None) or (whole, tuple(_shortened(whole, most)))
        self._heads[key] = known  # the messages are held, so their id stays their own
        if len(self._heads) > _KNOWN * len(HEAD_CHARS):
            del self._heads[next(iter(self._heads))]
        return MessageView(known[1], len(messages))


def _shortened(messages: Sequence[Message], most: int) -> Iterator[Message]:
    spoken = False
    for message in messages:
        own = message.role == "assistant"
        spoken = spoken or own
        if own or (spoken and most > EVERY_CHARS) or len(message.content) <= most:
            yield message
        else:
            yield replace(message, content=shorten_for_cut_plan(message.content, most))


def called_tools(
    messages: Sequence[Message], tools: Sequence[ToolSpec], sides: Sequence[Sequence[Message]]
) -> tuple[ToolSpec, ...]:
    """The tools that are called in a context or on a side, in their order."""
    said = [*messages, *(message for side in sides for message in side)]
    names = {call.name for message in said for call in message.tool_calls}
    return tuple(tool for tool in tools if tool.name in names)


def brief_tool(tool: ToolSpec) -> ToolSpec:
    """A tool with the beginning of its description, and no word on its parameters."""
    description = head_with_whole_placeholders(tool.description, TOOL_CHARS)
    return replace(tool, description=description, parameters=_undescribed(tool.parameters))


def _undescribed(schema: Any) -> Any:
    """A JSON schema without its descriptions; a parameter of that name is a schema, and stays."""
    if isinstance(schema, Mapping):
        kept = {k: v for k, v in schema.items() if not (k == "description" and isinstance(v, str))}
        return {name: _undescribed(value) for name, value in kept.items()}
    return [_undescribed(each) for each in schema] if isinstance(schema, list | tuple) else schema
