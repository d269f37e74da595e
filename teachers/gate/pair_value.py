"""Score steps by what asking there is expected to give for its cost.

Asking is worth it where `probability of a pair > lambda * expected cost`: the gate sorts by their ratio and
leaves lambda to `teachers.gate.budget_pacing`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tracemill.teachers.gate.features import GateStepFeatures

_FREE_USD = 1e-9
"""Cost used for free steps, so that they are sorted by probability alone."""


@dataclass(frozen=True, slots=True)
class ValuedStep:
    """A step with the probability of a pair (`belief`), the expected cost, and their ratio, the sort key."""

    facts: GateStepFeatures
    belief: float
    expected_usd: float
    score: float


def score_pair_values(
    facts: Sequence[GateStepFeatures], beliefs: Sequence[float], costs_usd: Sequence[float]
) -> list[ValuedStep]:
    """Return every step with its score, in order."""
    return [
        ValuedStep(step, belief, usd, belief / max(usd, _FREE_USD))
        for step, belief, usd in zip(facts, beliefs, costs_usd, strict=True)
    ]
