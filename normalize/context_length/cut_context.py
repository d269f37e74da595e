"""Contexts cut to a trainer's length: the system prompt, the task and the last turns stay.

Trainers cut off at the end or drop what is too long. Here observations are shortened first, then the oldest
turns are left out; a call and its results go together or stay together.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from tracemill.normalize.context_length.cut_plan import WHOLE, Plan
from tracemill.normalize.context_length.token_counts import Count, count_message_tokens, count_tool_tokens
from tracemill.records.message import Message, ToolSpec
from tracemill.records.pair import Length
from tracemill.records.trace import MessageView

LIMITS = (4096, 8192, 16384, 32768)
OBSERVATION_CHARS = (8000, 2000, 500)
"""To what observations are shortened, one after the other, until the context fits."""
LEFT_OUT = "\n\n[... {n:,} earlier messages left out ...]"
_PLANS = 16
_TOOLS = 64
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Fitted:
    """A context that fits, and its length in tokens with tools and the longer of the sides."""

    messages: Sequence[Message]
    length: Length


@dataclass(frozen=True, slots=True)
class _Place:
    """A cut of a context: its plan, how many of its messages there are (`cut`), how many of them stand before
    the agent first speaks (`head`), how many turns follow, and the tokens `beside` the context."""

    plan: Plan
    cut: int
    head: int
    turns: int
    beside: int

    def size(self, most: int, start: int) -> int:
        """Tokens from a message on, observations of at most so many characters."""
        sizes = self.plan.sizes(most)
        return sizes[self.cut] - sizes[start]

    @property
    def fixed(self) -> int:
        """Tokens that stay however the context is cut."""
        return self.beside + self.plan.sizes(WHOLE)[self.head]


class Cutter:
    """Cuts contexts so that a row has at most `max_tokens`; 0 cuts nothing. What is known of a context is
    found once for all of its steps, as long as it is among the last contexts that were cut."""

    def __init__(self, count: Count, max_tokens: int) -> None:
        self._count = count
        self._max_tokens = max_tokens
        self._mark = count([LEFT_OUT.format(n=9999)])[0]
        self._plans: dict[int, tuple[object, Plan]] = {}
        self._tools: dict[int, tuple[object, int]] = {}

    def fit(
        self, messages: Sequence[Message], tools: tuple[ToolSpec, ...], sides: Sequence[Sequence[Message]]
    ) -> Fitted | int:
        """The context as it fits with its tools and its longest side, or the tokens of its shortest form
        where even that does not fit."""
        place = self._place(messages, self._beside(tools, sides))
        size = place.size(WHOLE, place.head)
        whole, least = place.fixed + size, self._least(place)
        room = self._max_tokens - place.fixed
        if not self._max_tokens or size <= room:
            return Fitted(messages, Length(whole, whole, least, ""))
        *first, shortest = OBSERVATION_CHARS
        return (
            self._shortened(place, first, whole, least)
            or self._last(place, first[-1], whole, least)
            or self._shortened(place, [shortest], whole, least)
            or self._last(place, shortest, whole, least)
            or least
        )

    def _shortened(self, place: _Place, most: Sequence[int], whole: int, least: int) -> Fitted | None:
        """All turns with observations of the first of these lengths that is short enough."""
        for chars in most:
            tokens = place.fixed + place.size(chars, place.head)
            if tokens <= self._max_tokens:
                kept = place.plan.short(chars)[: place.cut]
                return Fitted(kept, Length(tokens, whole, least, "observations"))
        return None

    def _place(self, messages: Sequence[Message], beside: int) -> _Place:
        whole = messages.whole if isinstance(messages, MessageView) else messages
        plan = _remembered(self._plans, _PLANS, whole, partial(Plan, whole, self._count))
        cut = len(messages)
        return _Place(plan, cut, min(plan.head, cut), bisect_left(plan.starts, cut), beside)

    def _beside(self, tools: tuple[ToolSpec, ...], sides: Sequence[Sequence[Message]]) -> int:
        sizes = iter(count_message_tokens([message for side in sides for message in side], self._count))
        longest = max((sum(next(sizes) for _ in side) for side in sides), default=0)
        return longest + _remembered(
            self._tools, _TOOLS, tools, partial(count_tool_tokens, tools, self._count)
        )

    def _last(self, place: _Place, most: int, whole: int, least: int) -> Fitted | None:
        """As many of the last turns as there is room for, the last one at least."""
        plan, starts, sizes = place.plan, place.plan.starts, place.plan.sizes(most)
        fixed = place.fixed + plan.marked(place.head, self._marked)
        enough = sizes[place.cut] - (self._max_tokens - fixed)
        first = bisect_left(starts, enough, hi=place.turns, key=sizes.__getitem__)
        if first == place.turns:
            return None
        begin = self._marked(plan.messages[: place.head], starts[first] - place.head)
        kept = [*begin, *plan.short(most)[starts[first] : place.cut]]
        return Fitted(kept, Length(fixed + place.size(most, starts[first]), whole, least, "turns"))

    def _least(self, place: _Place) -> int:
        """Tokens of the shortest form there is: the last turn alone, its observations at their shortest."""
        whole = place.fixed + place.size(WHOLE, place.head)
        if place.turns == 0 or whole <= LIMITS[0]:
            return whole
        last = place.size(OBSERVATION_CHARS[-1], place.plan.starts[place.turns - 1])
        return min(whole, place.fixed + (self._mark if place.turns > 1 else 0) + last)

    def _marked(self, head: Sequence[Message], left: int = 9999) -> list[Message]:
        """The head with a word on what is left out behind it."""
        if not head:
            return []
        last = head[-1]
        return [*head[:-1], replace(last, content=last.content + LEFT_OUT.format(n=left))]


def _remembered(known: dict[int, tuple[object, V]], most: int, value: object, make: Callable[[], V]) -> V:
    """What is made of a value, of the last so many values. The value is held, so its id stays its own."""
    found = known.pop(id(value), None) or (value, make())
    known[id(value)] = found
    if len(known) > most:
        del known[next(iter(known))]
    return found[1]
