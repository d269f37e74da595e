"""Predict whether asking at a step gives a pair: Bayesian logistic regression over words.

Each word of a step (`teachers.gate.features`) has a weight with a normal prior. The posterior is Laplace's:
its mode, by Newton's method, and the curvature there (C. M. Bishop, Pattern Recognition and Machine Learning,
4.5). Unknown words have their prior weight. The prior is small and set by hand, and holds before anything was
asked.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tracemill.records.identity import canonical_json, digest

BASE = "base"
"""The word of the intercept, which every step has."""
PRIOR_NAME = "hand-4"
_BASE_MEAN, _BASE_PRECISION = -1.7, 1.0
_PRECISION, _CORE_PRECISION = 16.0, 4.0
_MOST_STEPS, _CLOSE = 50, 1e-9

PRIOR: Mapping[str, float] = {
    "ended=resolved": -2.0,  # the action that solved the task
    "invalid=call_written_as_text": 1.0,
    "invalid=tool_not_offered": 0.7,
    "invalid=argument_of_a_wrong_type": 0.7,
    "invalid=required_argument_missing": 0.7,
    "invalid=fakes_a_tool_result": 0.5,
    "fits=said*0": -0.7,  # no tool fits, and none was called
    "fits=said*2": 0.3,
    "fits=said*3": 0.5,
    "fits=said*4": 0.5,
    "fits=called*0": 0.5,
    "fits=called*3": -0.2,
    "fits=called*4": -0.2,
    **{f"sentence={size}": 0.4 * (7.5 - size) for size in range(2, 11)},  # short requests: more agreement
    "told=0": 0.8,
    "told=1": 0.4,
    "told=3": -0.4,
    "told=4": -0.8,
}
"""Prior means of weights, by word; 0 for others."""
CORE = frozenset(
    {"op", "own", "op*own", "length", "invalid", "ended", "fits", "items*calls", "sentence", "told"}
)
"""Features with a weaker prior, whose weights move sooner."""

Row = tuple[tuple[str, ...], float]
"""The words of an asked step, and whether it gave a pair: 1 or 0, or the probability where asking ended
before it was known."""


def pair_model_prior(word: str) -> tuple[float, float]:
    """Return the prior mean and precision of a weight."""
    if word == BASE:
        return _BASE_MEAN, _BASE_PRECISION
    core = word.partition("=")[0] in CORE
    return PRIOR.get(word, 0.0), _CORE_PRECISION if core else _PRECISION


@dataclass(frozen=True, slots=True)
class PairModel:
    """Weights by word with standard deviations, and the steps and pairs they rest on."""

    weights: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    asked: int = 0
    pairs: int = 0

    @property
    def version(self) -> str:
        """Return a digest of prior and weights."""
        return digest("belief", PRIOR_NAME, canonical_json(self.to_json()), size=4)

    def probability(self, words: Iterable[str]) -> float:
        """Return the probability of a pair at a step, at the mode of the posterior."""
        total = self._weight(BASE) + math.fsum(map(self._weight, words))
        return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, total))))

    def _weight(self, word: str) -> float:
        known = self.weights.get(word)
        return pair_model_prior(word)[0] if known is None else known[0]

    def to_json(self) -> dict[str, object]:
        """Return plain values, rounded to six digits."""
        kept = {word: [round(m, 6), round(s, 6)] for word, (m, s) in sorted(self.weights.items())}
        return {"prior": PRIOR_NAME, "asked": self.asked, "pairs": self.pairs, "weights": kept}


def learn_pair_model(rows: Iterable[Row]) -> PairModel:
    """Fit the model to these steps, whatever their order."""
    met = Counter(rows)
    if not met:
        return PairModel()
    counts, pairs = Counter[tuple[str, ...]](), dict[tuple[str, ...], float]()
    for words, label in sorted(met):
        counts[words] += met[words, label]
        pairs[words] = pairs.get(words, 0.0) + met[words, label] * label
    steps = sorted(counts)
    names = [BASE, *sorted({word for words in steps for word in words})]
    places = {name: place for place, name in enumerate(names)}
    x = np.zeros((len(steps), len(names)))
    x[:, 0] = 1.0
    for at, words in enumerate(steps):
        x[at, [places[word] for word in words]] = 1.0
    n = np.array([counts[words] for words in steps], dtype=float)
    k = np.array([pairs[words] for words in steps], dtype=float)
    mode, deviations = _laplace(x, n, k, names)
    weights = {
        name: (round(float(m), 6), round(float(s), 6))
        for name, m, s in zip(names, mode, deviations, strict=True)
    }
    return PairModel(weights, counts.total(), round(math.fsum(pairs.values())))


def _laplace(
    x: np.ndarray, n: np.ndarray, k: np.ndarray, names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return mode and standard deviations of the posterior.

    `x` is (steps, words) of 0 and 1; `n` and `k` are the number of steps and pairs of each row.
    """
    mean, precision = np.array([pair_model_prior(name) for name in names]).T
    w = mean.copy()
    hessian = np.diag(precision)
    for _ in range(_MOST_STEPS):
        p = 1.0 / (1.0 + np.exp(-np.clip(x @ w, -30.0, 30.0)))
        gradient = x.T @ (k - n * p) - precision * (w - mean)
        hessian = (x * (n * p * (1.0 - p))[:, None]).T @ x + np.diag(precision)
        step = np.linalg.solve(hessian, gradient)
        w = w + step
        if float(np.abs(step).max()) < _CLOSE:
            break
    return w, np.sqrt(np.diag(np.linalg.inv(hessian)))
