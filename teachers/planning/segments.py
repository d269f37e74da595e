"""Cut a long chain into parallel segments where saved time is worth a prefix written again.

Steps of a chain wait for each other, because each reads the prompt of the one before from the cache. A
segment that starts in the middle goes at once, but pays its first prompt in full.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tracemill.teachers.pricing.prompt_cache import TokenCosts

SHORTEST = 8
"""Least steps of a segment."""


@dataclass(frozen=True, slots=True)
class StepTokens:
    """One step of a chain: tokens of its prompt, and how many of them the step before has too."""

    tokens: int
    shared: int


@dataclass(frozen=True, slots=True)
class ChainCutRule:
    """The rule for cutting a chain: where it takes longer than `target_s` at `step_s` seconds a step.

    All cuts together may add at most the share `max_extra` of the uncut cost.
    """

    target_s: float
    step_s: float
    max_extra: float


def find_segment_cuts(
    lengths: Sequence[StepTokens], costs: Sequence[TokenCosts], answer_tokens: int, worth: ChainCutRule
) -> list[int]:
    """Return the steps at which a segment starts, in order, 0 included.

    The longest segment is cut again and again, near its middle, where the fewest tokens are written twice.
    `costs` are those of every teacher along the chain.
    """
    uncut = sum(cost.call_usd(step.tokens, step.shared, answer_tokens) for cost in costs for step in lengths)
    budget = worth.max_extra * uncut
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


def _extra(lengths: Sequence[StepTokens], at: int, start: int, end: int) -> tuple[float, int]:
    """Return the penalty of a cut: tokens written again, more the further from the middle."""
    away = abs(2 * at - start - end) / (end - start)
    return lengths[at].shared * (1 + away), at
