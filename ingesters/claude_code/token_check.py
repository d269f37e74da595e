"""Check rebuilt prefixes against the reported tokens.

Characters and tokens rise and fall together over the steps of a session (median correlation 0.998 on real
sessions). Where they do not, the session was rebuilt wrongly, or the agent saw something that the file does
not hold. Two consecutive steps show where: tokens fall while the prefix grew, or rise by more than was added.
Thinking is not part of a prefix, and how much of it was sent again is not recorded, so a difference that
thinking may explain is no fault.
"""

from statistics import StatisticsError, correlation
from typing import Literal, NamedTuple

MIN_STEPS = 8
MIN_CORRELATION = 0.9
"""A session with a lower correlation is flagged."""

SHORTENED = "context cut without a record"
ADDED = "context added without a record"
Fault = Literal["", "context cut without a record", "context added without a record"]

_MIN_SPREAD_TOKENS = 2000
_FALL_TOKENS = 4000
_RISE_TOKENS = 8000
_BASE_TOKENS = 5000
_CHARS_A_TOKEN = 3


class CheckedStep(NamedTuple):
    """A step for the check: characters of its prefix, reported tokens, and thinking tokens before it.

    `thought_tokens` is the maximum for the step before, `all_thought_tokens` an estimate for all steps
    before.
    """

    chars: int
    tokens: int
    thought_tokens: int = 0
    all_thought_tokens: int = 0


class PromptCheck:
    """The check of one trace; its steps are added context by context."""

    def __init__(self) -> None:
        self._first: list[tuple[int, int]] = []
        self._segments = [self._first]
        self._segment = self._first
        self._base: int | None = None
        self._before: CheckedStep | None = None
        self._contexts = 0

    def start_context(self, before: CheckedStep | None) -> None:
        """Begin a context; `before` is the last step it shares with an older one."""
        self._segment, self._before = self._first, before
        self._contexts += 1

    def start_segment(self) -> None:
        """Begin a new segment: context is missing, so characters and tokens do not compare with before."""
        self._segment = []
        self._segments.append(self._segment)

    def check_step(self, step: CheckedStep, first: bool, fresh: bool) -> Fault:
        """Check one step and return its fault, "" for none.

        `first` is True for the first step of a context, `fresh` if that context shares nothing with an
        older one and all of it is recorded.
        """
        self._segment.append((step.chars, step.tokens))
        before, self._before = self._before, step
        if before is not None:
            return _compare(before, step)
        if not (first and fresh):
            return ""
        if self._contexts == 1:
            self._base = step.tokens - step.chars // 4
            return ""
        # System prompt and tools change little inside a session.
        expected = self._base + step.chars // 2 + _BASE_TOKENS if self._base is not None else step.tokens
        return ADDED if step.tokens > expected else ""

    def correlation(self) -> float | None:
        """Return Pearson's r of prefix characters and prompt tokens, the lowest of all segments.

        Returns None if no segment has MIN_STEPS steps with tokens, or the tokens hardly change.
        """
        return min((_pearson(segment) for segment in self._segments if _has_spread(segment)), default=None)


def thinking_tokens_for_check(reasoning: int, shown: int, completion: int | None) -> int:
    """Estimate the thinking tokens of a response from its recorded characters.

    Where they are not recorded: from the tokens beyond those of the shown characters.
    """
    if reasoning or completion is None:
        return reasoning // _CHARS_A_TOKEN
    return max(0, completion - shown // _CHARS_A_TOKEN)


def _compare(before: CheckedStep, now: CheckedStep) -> Fault:
    """Return whether the change of tokens contradicts the change of the prefix."""
    change = now.tokens - before.tokens
    if change < -(_FALL_TOKENS + now.all_thought_tokens):
        return SHORTENED
    if change > now.chars - before.chars + now.thought_tokens + _RISE_TOKENS:
        return ADDED
    return ""


def _has_spread(points: list[tuple[int, int]]) -> bool:
    tokens = [y for _, y in points]
    return len(points) >= MIN_STEPS and max(tokens) - min(tokens) >= _MIN_SPREAD_TOKENS


def _pearson(points: list[tuple[int, int]]) -> float:
    try:
        return correlation(*zip(*points, strict=True))
    except StatisticsError:  # all prefixes have the same length
        return 0.0
