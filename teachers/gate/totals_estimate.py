"""Estimate what all steps would have given, from those asked with known probability.

Horvitz-Thompson weights asked steps by one over their probability: unbiased and noisy, since a step asked at
5 % counts for twenty. The difference estimator used here counts what the gate expected of every step and
weights only its error (Sarndal, Swensson and Wretman, Model Assisted Survey Sampling, 6.3): as unbiased, and
less noisy the better the gate.
"""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from tracemill.records.wilson_interval import TWO_SIDED_95

_UNSEEN = 2.0
"""Steps that the interval adds to those drawn, each with the error that the gate expects, so that a
few drawn steps without a pair do not count as certainty (A. Agresti and B. Coull, Approximate is
better than "exact" for interval estimation of binomial proportions, 1998)."""


@dataclass(frozen=True, slots=True)
class LoggedStep:
    """A step of the log: probability of asking, expected pairs, and pairs found.

    `found` is 1.0 or 0.0, None if it was not asked or no answer came.
    """

    probability: float
    expected: float
    found: float | None
    asked: bool


@dataclass(frozen=True, slots=True)
class EstimatedTotals:
    """Estimated pairs if all steps were asked, with a 95 % interval.

    `low` is at least the pairs found, `high` at most these plus the steps of unknown result. `counted` are
    the pairs found, `weighted` is the inverse-propensity sum. `never` steps could not be asked and are not
    counted; `censored` ones were asked without a label, and the others are weighted to represent them.
    """

    steps: int
    asked: int
    counted: float
    weighted: float
    estimate: float
    low: float
    high: float
    never: int = 0
    censored: int = 0

    def to_json(self) -> dict[str, float | int]:
        """Return plain values, rounded to two digits."""
        return {k: round(v, 2) if isinstance(v, float) else v for k, v in asdict(self).items()}


def estimate_totals(chances: Iterable[LoggedStep]) -> EstimatedTotals:
    """Estimate the totals of a log of steps."""
    drawn = list(chances)
    able = [each for each in drawn if each.probability > 0]
    certain = [each for each in able if each.probability >= 1]
    by_chance = [each for each in able if each.probability < 1]
    parts = [_sum(certain), _sum(by_chance)]
    estimate = sum(part[0] for part in parts)
    spread = TWO_SIDED_95 * math.sqrt(sum(part[2] for part in parts))
    known = [each for each in able if each.asked and each.found is not None]
    counted = sum(each.found or 0.0 for each in known)
    most = counted + len(able) - len(known)
    return EstimatedTotals(
        steps=len(drawn),
        asked=sum(each.asked for each in drawn),
        counted=counted,
        weighted=sum(part[1] for part in parts),
        estimate=min(max(estimate, counted), most),
        low=min(max(estimate - spread, counted), most),
        high=min(max(estimate + spread, counted), most),
        never=len(drawn) - len(able),
        censored=sum(each.asked and each.found is None for each in able),
    )


def _sum(group: list[LoggedStep]) -> tuple[float, float, float]:
    """Return difference estimate, inverse-propensity sum and the estimate's variance."""
    asked = [each for each in group if each.asked]
    known = [each for each in asked if each.found is not None]
    lost = len(asked) / len(known) if known else 1.0
    base = sum(each.expected for each in group)
    if group and not known:
        return base, 0.0, (len(group) / TWO_SIDED_95) ** 2
    estimate, weighted, variance = base, 0.0, _UNSEEN * _of_one_more(group)
    for each in known:
        p = each.probability / lost
        error = (each.found or 0.0) - each.expected
        estimate += error / p
        weighted += (each.found or 0.0) / p
        variance += (1 - p) / (p * p) * error * error
    return estimate, weighted, variance


def _of_one_more(group: list[LoggedStep]) -> float:
    """Return the variance that one more drawn step adds at the gate's expected error rate."""
    if not group:
        return 0.0
    p = sum(each.probability for each in group) / len(group)
    wrong = sum(each.expected * (1 - each.expected) for each in group) / len(group)
    return (1 - p) / (p * p) * wrong
