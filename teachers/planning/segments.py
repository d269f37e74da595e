"""Cutting a long chain into parallel segments, where time is worth a prefix written once more.

Steps of a chain wait for each other, because each reads the prompt of the one before from the cache. A
segment that starts in the middle goes at once, but pays its first prompt as new.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tracemill.teachers.pricing.prompt_cache import TokenCosts

SHORTEST = 8
"""Steps a segment has at least."""


@dataclass(frozen=True, slots=True)
class Length:
    """One step of a chain: tokens of its prompt, and how many of them the step before it ends with too."""

    tokens: int
    shared: int


@dataclass(frozen=True, slots=True)
class Worth:
    """When a chain is cut: where it takes longer than `target_s` seconds at `step_s` a step, as long as
    all cuts together cost at most the share `max_extra` of what the chain costs uncut."""

    target_s: float
    step_s: float
    max_extra: float


def find_segment_cuts(
    lengths: Sequence[Length], costs: Sequence[TokenCosts], answer_tokens: int, worth: Worth
) -> list[int]:
    """The steps at which a segment starts, 0 always among them, in order.

    Again and again the longest segment is cut where, near its middle, the least has to be written once
    more; `costs` are those of every teacher that is asked along the chain.
    """
    budget = worth.max_extra * _uncut_usd(lengths, costs, answer_tokens)
    per_token = sum(max(cost.fresh_usd - cost.read_usd, 0.0) for cost in costs)
    starts = [0]
    while True:
        longest, start, end = max(
            (b - a, a, b) for a, b in zip(starts, [*starts[1:], len(lengths)], strict=True)
        )
        if longest < 4 * SHORTEST or longest * worth.step_s <= worth.target_s:
            return starts
        quarter = max(longest // 4, SHORTEST)
        cut = min(range(start + quarter, end - quarter + 1), key=lambda at: _extra(lengths, at, start, end))
        budget -= lengths[cut].shared * per_token
        if budget < 0:
            return starts
        starts = sorted([*starts, cut])


def _extra(lengths: Sequence[Length], at: int, start: int, end: int) -> tuple[float, int]:
    """How bad a cut is: tokens written again, a tenth of them for each tenth away from the middle."""
    away = abs(2 * at - start - end) / (end - start)
    return lengths[at].shared * (1 + away), at


def _uncut_usd(lengths: Sequence[Length], costs: Sequence[TokenCosts], answer_tokens: int) -> float:
    return sum(cost.call_usd(step.tokens, step.shared, answer_tokens) for cost in costs for step in lengths)
