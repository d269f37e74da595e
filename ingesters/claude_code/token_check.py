"""The ingester's check on itself: characters of the rebuilt prefixes against the tokens reported.

Over the steps of a session the two rise and fall together (median correlation 0.998 on real sessions).
A session where they do not was rebuilt wrongly, or the agent saw something else than the file holds. Two
steps apart tell where: tokens that fall while the prefix grew, or rise by more than what came to it.
Thinking is no part of a prefix, and how much of it the harness sent again is not recorded: what it may
explain is no fault.
"""

from math import sqrt
from typing import Literal, NamedTuple

MIN_STEPS = 8
MIN_CORRELATION = 0.9
"""Below it a session is flagged."""

SHORTENED = "context cut without a record"
ADDED = "context added without a record"
Fault = Literal["", "context cut without a record", "context added without a record"]

_MIN_SPREAD_TOKENS = 2000
_FALL_TOKENS = 4000
_RISE_TOKENS = 8000
_BASE_TOKENS = 5000
_CHARS_A_TOKEN = 3


class Seen(NamedTuple):
    """A step as the check sees it: characters of its prefix, tokens it reports, and how many tokens of
    thinking came before it: at most in the step before, about altogether."""

    chars: int
    tokens: int
    thought_tokens: int = 0
    all_thought_tokens: int = 0


class PromptCheck:
    """Takes the steps of a trace, context by context."""

    def __init__(self) -> None:
        self._whole: list[tuple[int, int]] = []
        self._parts = [self._whole]
        self._part = self._whole
        self._base: int | None = None
        self._before: Seen | None = None
        self._contexts = 0

    def open(self, before: Seen | None) -> None:
        """A context begins; `before` is the last step it shares with an older one."""
        self._part, self._before = self._whole, before
        self._contexts += 1

    def lose(self) -> None:
        """From here on something is missing, so that characters and tokens part: a part of its own."""
        self._part = []
        self._parts.append(self._part)

    def step(self, seen: Seen, first: bool, fresh: bool) -> Fault:
        """One step; `first` of its context, whose start is `fresh` where it shares nothing and all of
        it is recorded. Gives what is wrong with it."""
        self._part.append((seen.chars, seen.tokens))
        before, self._before = self._before, seen
        if before is not None:
            return _between(before, seen)
        if not (first and fresh):
            return ""
        if self._contexts == 1:
            self._base = seen.tokens - seen.chars // 4
            return ""
        # What a prompt holds beside its messages changes little inside a session.
        expected = self._base + seen.chars // 2 + _BASE_TOKENS if self._base is not None else seen.tokens
        return ADDED if seen.tokens > expected else ""

    def correlation(self) -> float | None:
        """Pearson's r of prefix characters and prompt tokens, the worst of the parts. None where no part
        has MIN_STEPS steps that report tokens, or the tokens hardly move."""
        return min((_pearson(part) for part in self._parts if _tells(part)), default=None)


def thinking_tokens_for_check(reasoning: int, shown: int, completion: int | None) -> int:
    """About how many tokens of thinking a response holds: by its recorded characters; where they are
    not recorded, by the tokens it took beyond the characters it shows."""
    if reasoning or completion is None:
        return reasoning // _CHARS_A_TOKEN
    return max(0, completion - shown // _CHARS_A_TOKEN)


def _between(before: Seen, now: Seen) -> Fault:
    """Whether the tokens can have come from the one prefix to the other."""
    change = now.tokens - before.tokens
    if change < -(_FALL_TOKENS + now.all_thought_tokens):
        return SHORTENED
    if change > now.chars - before.chars + now.thought_tokens + _RISE_TOKENS:
        return ADDED
    return ""


def _tells(points: list[tuple[int, int]]) -> bool:
    tokens = [y for _, y in points]
    return len(points) >= MIN_STEPS and max(tokens) - min(tokens) >= _MIN_SPREAD_TOKENS


def _pearson(points: list[tuple[int, int]]) -> float:
    n = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    xy = sum((x - mean_x) * (y - mean_y) for x, y in points)
    xx = sum((x - mean_x) ** 2 for x, _ in points)
    yy = sum((y - mean_y) ** 2 for _, y in points)
    return xy / sqrt(xx * yy) if xx and yy else 0.0
