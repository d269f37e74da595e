"""Turn scores into probabilities, and measure how far they can be believed."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import rankdata

BINS = 10
LEAST_PAIRS = 4

Scores = Sequence[float]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Platt scaling (Platt, 1999): probability = sigmoid(slope score + offset)."""

    slope: float = 1.0
    offset: float = 0.0

    def probability(self, score: float) -> float:
        """Return the probability that an action of this score is a preferred one."""
        return 0.5 * (1.0 + math.tanh(0.5 * (self.slope * score + self.offset)))


def fit_calibration(scores: Scores, labels: Sequence[bool]) -> Calibration:
    """Fit slope and offset by likelihood; labels are smoothed as Platt does, so that few rows stay finite."""
    given, positive = np.asarray(scores, float), np.asarray(labels, bool)
    good, bad = positive.sum(), (~positive).sum()
    targets = np.where(positive, (good + 1) / (good + 2), 1 / (bad + 2))

    def loss(parameters: NDArray[np.float64]) -> float:
        logits = parameters[0] * given + parameters[1]
        return float(np.sum(np.logaddexp(0, logits) - targets * logits))

    slope, offset = minimize(loss, np.array([1.0, 0.0]), method="BFGS").x
    return Calibration(float(slope), float(offset))


def expected_calibration_error(probabilities: Scores, labels: Sequence[bool]) -> float:
    """Return the mean distance between probability and share of true labels, over `BINS` equal bins."""
    given, positive = np.asarray(probabilities, float), np.asarray(labels, float)
    bins = np.minimum((given * BINS).astype(int), BINS - 1)
    parts = (bins == number for number in range(BINS))
    apart = [abs(float(np.sum(given[part] - positive[part]))) for part in parts]
    return sum(apart) / len(given)


def area_under_curve(scores: Scores, labels: Sequence[bool]) -> float:
    """Return the odds that a true row has a higher score than a false one; equal scores count half."""
    positive = np.asarray(labels, bool)
    good, bad = int(positive.sum()), int((~positive).sum())
    if not good or not bad:
        return math.nan
    ranks = rankdata(np.asarray(scores, float))
    return float((ranks[positive].sum() - good * (good + 1) / 2) / (good * bad))


def calibrate_pairs(chosen: Scores, rejected: Scores) -> dict[str, Any] | None:
    """Calibrate on both sides of held-out pairs; return None if there are too few of them.

    `ece_after` is measured on each half of the pairs with what was fitted on the other half, `slope` and
    `offset` are fitted on all.
    """
    if len(chosen) < LEAST_PAIRS:
        return None
    sides = [(score, True, at) for at, score in enumerate(chosen)]
    sides += [(score, False, at) for at, score in enumerate(rejected)]
    scores, labels = [each[0] for each in sides], [each[1] for each in sides]
    after = [0.0] * len(sides)
    for half in (0, 1):
        other = [each for each in sides if each[2] % 2 != half]
        fitted = fit_calibration([each[0] for each in other], [each[1] for each in other])
        for place, (score, _, at) in enumerate(sides):
            if at % 2 == half:
                after[place] = fitted.probability(score)
    before = [Calibration().probability(score) for score in scores]
    pairs = zip(chosen, rejected, strict=True)
    return {
        "pairs": len(chosen),
        **asdict(fit_calibration(scores, labels)),
        "accuracy": sum(better > worse for better, worse in pairs) / len(chosen),
        "auc": area_under_curve(scores, labels),
        "ece_before": expected_calibration_error(before, labels),
        "ece_after": expected_calibration_error(after, labels),
    }
