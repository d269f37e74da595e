"""Cut contexts to a trainer's length, so that the system prompt, the task and the last turns stay.

Trainers truncate the end or drop long rows. Here observations are shortened first, then the oldest turns are
left out; a call and its results stay together.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tracemill.normalize.context_length.cut_plan import WHOLE, CutPlan
from tracemill.normalize.context_length.identity_cache import IdentityCache
from tracemill.normalize.context_length.token_counts import Count, count_message_tokens, count_tool_tokens
from tracemill.records.message import Message, ToolSpec
from tracemill.records.pair import RowTokens
from tracemill.records.trace import MessageView

LIMITS = (4096, 8192, 16384, 32768)
OBSERVATION_CHARS = (8000, 2000, 500)
"""Lengths to which observations are shortened, tried in order until the context fits."""
LEFT_OUT = "\n\n[... {n:,} earlier messages left out ...]"
_CACHED_PLANS = 16
_CACHED_TOOLS = 64


@dataclass(frozen=True, slots=True)
class FittedContext:
    """A context that fits, and its length in tokens with tools and the longer side."""

    messages: Sequence[Message]
    length: RowTokens


@dataclass(frozen=True, slots=True)
class _Prefix:
    """The first `cut` messages of a context: `head` messages before the agent's first, then `turns` turns.

    `other_tokens` are those of tools and sides.
    """

    plan: CutPlan
    cut: int
    head: int
    turns: int
    other_tokens: int

    def tokens_from(self, start: int, most: int) -> int:
        """Return the tokens from message `start` on, with observations of at most `most` characters."""
        sizes = self.plan.sizes(most)
        return sizes[self.cut] - sizes[start]

    @property
    def fixed_tokens(self) -> int:
        """Return the tokens that no cut removes."""
        return self.other_tokens + self.plan.sizes(WHOLE)[self.head]


class ContextCutter:
    """A cutter of contexts so that a row has at most `max_tokens`; 0 cuts nothing.

    Token counts of a context are shared by all of its steps while it is among the last 16 contexts.
    """

    def __init__(self, count: Count, max_tokens: int) -> None:
        self._count = count
        self._max_tokens = max_tokens
        self._notice_tokens = count([LEFT_OUT.format(n=9999)])[0]
        self._plans = IdentityCache[Sequence[Message], CutPlan](
            lambda messages: CutPlan(messages, count), _CACHED_PLANS
        )
        self._tool_tokens = IdentityCache[tuple[ToolSpec, ...], int](
            lambda tools: count_tool_tokens(tools, count), _CACHED_TOOLS
        )

    def fit(
        self, messages: Sequence[Message], tools: tuple[ToolSpec, ...], sides: Sequence[Sequence[Message]]
    ) -> FittedContext | int:
        """Return the context cut to fit with its tools and longest side.

        Returns the tokens of its shortest form if even that does not fit.
        """
        prefix = self._prefix(messages, tools, sides)
        whole = prefix.fixed_tokens + prefix.tokens_from(prefix.head, WHOLE)
        least = self._least_tokens(prefix, whole)
        if not self._max_tokens or whole <= self._max_tokens:
            return FittedContext(messages, RowTokens(whole, whole, least, ""))
        *first, shortest = OBSERVATION_CHARS
        return (
            self._shorten_observations(prefix, first, whole, least)
            or self._keep_last_turns(prefix, first[-1], whole, least)
            or self._shorten_observations(prefix, [shortest], whole, least)
            or self._keep_last_turns(prefix, shortest, whole, least)
            or least
        )

    def _prefix(
        self, messages: Sequence[Message], tools: tuple[ToolSpec, ...], sides: Sequence[Sequence[Message]]
    ) -> _Prefix:
        plan = self._plans.get(messages.whole if isinstance(messages, MessageView) else messages)
        longest = max((sum(count_message_tokens(side, self._count)) for side in sides), default=0)
        cut, other = len(messages), longest + self._tool_tokens.get(tools)
        return _Prefix(plan, cut, min(plan.head, cut), bisect_left(plan.starts, cut), other)

    def _shorten_observations(
        self, prefix: _Prefix, lengths: Sequence[int], whole: int, least: int
    ) -> FittedContext | None:
        """Keep all turns, with observations of the first of `lengths` characters that fits."""
        for chars in lengths:
            tokens = prefix.fixed_tokens + prefix.tokens_from(prefix.head, chars)
            if tokens <= self._max_tokens:
                kept = prefix.plan.short(chars)[: prefix.cut]
                return FittedContext(kept, RowTokens(tokens, whole, least, "observations"))
        return None

    def _keep_last_turns(self, prefix: _Prefix, chars: int, whole: int, least: int) -> FittedContext | None:
        """Keep as many of the last turns as fit, with observations of at most `chars` characters."""
        plan, starts, sizes = prefix.plan, prefix.plan.starts, prefix.plan.sizes(chars)
        fixed = prefix.fixed_tokens + plan.notice_tokens(prefix.head, _add_notice)
        enough = sizes[prefix.cut] - (self._max_tokens - fixed)
        first = bisect_left(starts, enough, hi=prefix.turns, key=sizes.__getitem__)
        if first == prefix.turns:
            return None
        start = starts[first]
        head = _add_notice(plan.messages[: prefix.head], start - prefix.head)
        tokens = fixed + prefix.tokens_from(start, chars)
        kept = [*head, *plan.short(chars)[start : prefix.cut]]
        return FittedContext(kept, RowTokens(tokens, whole, least, "turns"))

    def _least_tokens(self, prefix: _Prefix, whole: int) -> int:
        """Return the tokens of the shortest form: the last turn with its observations at their shortest."""
        if prefix.turns == 0 or whole <= LIMITS[0]:
            return whole
        last = prefix.tokens_from(prefix.plan.starts[prefix.turns - 1], OBSERVATION_CHARS[-1])
        return min(whole, prefix.fixed_tokens + (self._notice_tokens if prefix.turns > 1 else 0) + last)


def _add_notice(head: Sequence[Message], left_out: int = 9999) -> list[Message]:
    """Add a notice to the head on the number of messages left out after it."""
    if not head:
        return []
    last = head[-1]
    return [*head[:-1], replace(last, content=last.content + LEFT_OUT.format(n=left_out))]
