"""What a pair at a step would be worth, and what asking there is expected to cost.

A step is worth asking at where `utility * probability > lambda * expected cost`: the gate sorts by their
ratio and leaves lambda to `teachers.gate.budget_pacing`.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tracemill.teachers.core.teacher_settings import UtilitySettings
from tracemill.teachers.gate.features import StepFacts

_FREE_USD = 1e-9
"""Stands in for the cost of a step that costs nothing, so that such steps are sorted by worth alone."""


@dataclass(frozen=True, slots=True)
class Valued:
    """A step with what was made of it: `belief` is the probability of a pair, `utility` what it is worth,
    `pair_value_cost_usd` what asking costs, `score` what steps are sorted by."""

    facts: StepFacts
    belief: float
    utility: float
    expected_usd: float
    score: float


def pair_value_cost_usd(costs_usd: Sequence[float], shares: Sequence[float]) -> float:
    """What asking one after the other costs: teacher j, at `costs_usd[j]`, is asked with probability
    `shares[j]`; cheapest first, `E[c] = c1 + P(go on) c2 + ...`."""
    return sum(cost * share for cost, share in zip(costs_usd, shares, strict=True))


def pair_value_weight(facts: StepFacts, settings: UtilitySettings) -> float:
    """`w_outcome * w_op`: of an operation and of a step after an error the greater weight counts."""
    weight = settings.operation.get(facts.operation, 1.0)
    if facts.after_error:
        weight = max(weight, settings.after_error)
    return settings.outcome.get(facts.outcome, 1.0) * weight


def score_pair_values(
    facts: Sequence[StepFacts],
    beliefs: Sequence[float],
    costs_usd: Sequence[float],
    settings: UtilitySettings,
    taken: Mapping[tuple[str, str], float] | None = None,
) -> list[Valued]:
    """Every step with its score, in their order. Of one trace and operation each further pair is worth less:
    `w_novel = 1 / (1 + pairs expected of the better ones)`, on top of those `taken` already."""
    utilities = [pair_value_weight(each, settings) for each in facts]
    usd = [max(cost, _FREE_USD) for cost in costs_usd]
    bare = [u * p / c for u, p, c in zip(utilities, beliefs, usd, strict=True)]
    expected = defaultdict(float, taken or {})
    found: dict[int, Valued] = {}
    for at in sorted(range(len(facts)), key=lambda at: (-bare[at], facts[at].step_id)):
        place = (facts[at].trace_id, facts[at].operation)
        novel = 1.0 / (1.0 + settings.novelty * expected[place])
        expected[place] += beliefs[at]
        found[at] = Valued(facts[at], beliefs[at], utilities[at] * novel, costs_usd[at], bare[at] * novel)
    return [found[at] for at in range(len(facts))]
