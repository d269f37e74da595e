"""Value a pair at a step, and estimate what asking there costs.

Asking is worth it where `utility * probability > lambda * expected cost`: the gate sorts by their ratio and
leaves lambda to `teachers.gate.budget_pacing`.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tracemill.teachers.core.teacher_settings import UtilitySettings
from tracemill.teachers.gate.features import GateStepFacts

_FREE_USD = 1e-9
"""Cost used for free steps, so that they are sorted by value alone."""


@dataclass(frozen=True, slots=True)
class ValuedStep:
    """A step with its value.

    `belief` is the probability of a pair, `utility` its value, `expected_usd` the cost of asking, `score` the
    sort key.
    """

    facts: GateStepFacts
    belief: float
    utility: float
    expected_usd: float
    score: float


def pair_value_cost_usd(costs_usd: Sequence[float], shares: Sequence[float]) -> float:
    """Return the expected cost of asking teachers in order, cheapest first, in USD.

    Teacher j, at `costs_usd[j]`, is asked with probability `shares[j]`.
    """
    return sum(cost * share for cost, share in zip(costs_usd, shares, strict=True))


def pair_value_weight(facts: GateStepFacts, settings: UtilitySettings) -> float:
    """Return `w_outcome * w_op`; after an error the larger of the two operation weights counts."""
    weight = settings.operation.get(facts.operation, 1.0)
    if facts.after_error:
        weight = max(weight, settings.after_error)
    return settings.outcome.get(facts.outcome, 1.0) * weight


def score_pair_values(
    facts: Sequence[GateStepFacts],
    beliefs: Sequence[float],
    costs_usd: Sequence[float],
    settings: UtilitySettings,
    taken: Mapping[tuple[str, str], float] | None = None,
) -> list[ValuedStep]:
    """Return every step with its score, in order.

    Each further pair of one trace and operation is worth less: `w_novel = 1 / (1 + novelty * pairs expected
    of better steps)`, on top of those `taken` already.
    """
    utilities = [pair_value_weight(each, settings) for each in facts]
    usd = [max(cost, _FREE_USD) for cost in costs_usd]
    bare = [u * p / c for u, p, c in zip(utilities, beliefs, usd, strict=True)]
    expected = defaultdict(float, taken or {})
    found: dict[int, ValuedStep] = {}
    for at in sorted(range(len(facts)), key=lambda at: (-bare[at], facts[at].step_id)):
        place = (facts[at].trace_id, facts[at].operation)
        novel = 1.0 / (1.0 + settings.novelty * expected[place])
        expected[place] += beliefs[at]
        found[at] = ValuedStep(facts[at], beliefs[at], utilities[at] * novel, costs_usd[at], bare[at] * novel)
    return [found[at] for at in range(len(facts))]
