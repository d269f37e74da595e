"""Contexts cut to a trainer's length: the system prompt, the task and the last turns stay.

Trainers cut off at the end or drop what is too long. Here observations are shortened first, then the oldest
turns are left out; a call and its results go together or stay together.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from normalize.tokens import Count, message_tokens, tools_tokens
from records.message import Message, ToolSpec
from records.pair import Length

LIMITS = (4096, 8192, 16384, 32768)
OBSERVATION_CHARS = (8000, 2000, 500)
"""To what observations are shortened, one after the other, until the context fits."""
SHORTENED = "\n[... {n:,} characters left out ...]\n"
LEFT_OUT = "\n\n[... {n:,} earlier messages left out ...]"
_CACHED = 20_000


@dataclass(frozen=True, slots=True)
class Fitted:
    """A context that fits, and its length in tokens with tools and the longer of the sides."""

    messages: Sequence[Message]
    length: Length


class Cutter:
    """Cuts contexts so that a row has at most `max_tokens`; 0 cuts nothing. Messages of one context are
    counted and shortened once as long as they are remembered."""

    def __init__(self, count: Count, max_tokens: int) -> None:
        self._count = count
        self._max_tokens = max_tokens
        self._known: dict[Hashable, tuple[object, Any]] = {}

    def fit(
        self, messages: Sequence[Message], tools: tuple[ToolSpec, ...], sides: Sequence[Sequence[Message]]
    ) -> Fitted | int:
        """The context as it fits with its tools and its longest side, or the tokens of its shortest form
        where even that does not fit."""
        beside = self._tools(tools) + max((sum(map(self._tokens, side)) for side in sides), default=0)
        head, turns = _turns(messages)
        sizes = [sum(map(self._tokens, turn)) for turn in turns]
        head_size = sum(map(self._tokens, head))
        whole = beside + head_size + sum(sizes)
        least = self._least(whole, beside + head_size, turns)
        room = self._max_tokens - beside - head_size
        if not self._max_tokens or sum(sizes) <= room:
            return Fitted(messages, Length(whole, whole, least, ""))
        for most in OBSERVATION_CHARS[:2]:
            short = [self._shortened(turn, most) for turn in turns]
            size = sum(sum(map(self._tokens, turn)) for turn in short)
            if size <= room:
                kept = [message for turn in (head, *short) for message in turn]
                return Fitted(kept, Length(beside + head_size + size, whole, least, "observations"))
        return self._last(head, turns, room, whole, least) or least

    def _last(
        self, head: Sequence[Message], turns: list[list[Message]], room: int, whole: int, least: int
    ) -> Fitted | None:
        """As many of the last turns as there is room for, the last one at least."""
        marked = self._marked(head)
        room -= sum(map(self._tokens, marked)) - sum(map(self._tokens, head))
        fixed = self._max_tokens - room
        for most in OBSERVATION_CHARS[1:]:
            short = [self._shortened(turn, most) for turn in turns]
            sizes = accumulate(sum(map(self._tokens, turn)) for turn in reversed(short))
            fits = [size for size in sizes if size <= room]
            if fits:
                last = [message for turn in short[-len(fits) :] for message in turn]
                left = sum(len(turn) for turn in turns[: -len(fits)])
                begin = self._marked(head, left)
                return Fitted([*begin, *last], Length(fixed + fits[-1], whole, least, "turns"))
        return None

    def _least(self, whole: int, fixed: int, turns: list[list[Message]]) -> int:
        """Tokens of the shortest form there is: the last turn alone, its observations at their shortest."""
        if len(turns) == 0 or whole <= LIMITS[0]:
            return whole
        last = self._shortened(turns[-1], OBSERVATION_CHARS[-1])
        mark = 0 if len(turns) == 1 else self._count(LEFT_OUT.format(n=9999))
        return min(whole, fixed + mark + sum(map(self._tokens, last)))

    def _marked(self, head: Sequence[Message], left: int = 9999) -> list[Message]:
        """The head with a word on what is left out behind it."""
        if not head:
            return []
        last = head[-1]
        return [*head[:-1], replace(last, content=last.content + LEFT_OUT.format(n=left))]

    def _shortened(self, turn: list[Message], most: int) -> list[Message]:
        return [self._short(message, most) if _is_observation(message) else message for message in turn]

    def _short(self, message: Message, most: int) -> Message:
        if len(message.content) <= most:
            return message
        return self._remembered(
            (id(message), most), message, lambda: replace(message, content=shortened(message.content, most))
        )

    def _tokens(self, message: Message) -> int:
        return self._remembered(id(message), message, lambda: message_tokens(message, self._count))

    def _tools(self, tools: tuple[ToolSpec, ...]) -> int:
        return self._remembered(id(tools), tools, lambda: tools_tokens(tools, self._count))

    def _remembered(self, key: Hashable, value: object, make: Any) -> Any:
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _CACHED:
                self._known.clear()
            known = self._known[key] = (value, make())  # the value is held, so its id stays its own
        return known[1]


def shortened(text: str, most: int) -> str:
    """The beginning and the end of a text, `most` characters together, and between them how many are left
    out."""
    half = most // 2
    return f"{text[:half]}{SHORTENED.format(n=len(text) - 2 * half)}{text[-half:]}"


def _is_observation(message: Message) -> bool:
    """What came back: the result of a tool, or behind the task what stands in the user's place."""
    return message.role in ("tool", "user")


def _turns(messages: Sequence[Message]) -> tuple[list[Message], list[list[Message]]]:
    """Everything before the agent first speaks, and its turns: what was said before it spoke, what it did,
    and what came back."""
    head: list[Message] = []
    turns: list[list[Message]] = []
    before = ""
    for message in messages:
        asked = before in ("user", "system")
        if not turns and message.role != "assistant":
            head.append(message)
        elif not turns or (message.role != "tool" and not asked):
            turns.append([message])
        else:
            turns[-1].append(message)
        before = message.role
    return head, turns
