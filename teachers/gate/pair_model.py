"""Predict whether asking at a step gives a pair: Bayesian logistic regression over words.

Each word of a step (`teachers.gate.features`) has a weight with a normal prior. The posterior is Laplace's:
its mode, by Newton's method, and the curvature there (C. M. Bishop, Pattern Recognition and Machine Learning,
4.5). Unknown words have their prior weight. The prior that ships, `prior.json`, was learned on public tables
by `benchmarks/gate_prior.py`, and holds before anything was asked.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tracemill.records.identity import canonical_json, digest

BASE = "base"
"""The word of the intercept, which every step has."""
PRIOR_FILE = Path(__file__).with_name("prior.json")
_BASE_PRECISION, _PRECISION, _NEW_PRECISION = 1.0, 16.0, 4.0
_MOST_STEPS, _CLOSE = 50, 1e-9


@dataclass(frozen=True, slots=True)
class PairPrior:
    """Prior means of weights by word, `base` that of the intercept.

    Other words have mean 0 and a smaller precision, so that their weights move sooner.
    """

    name: str
    base: float = 0.0
    weights: Mapping[str, float] = field(default_factory=dict[str, float])

    @classmethod
    def read(cls, path: Path = PRIOR_FILE) -> "PairPrior":
        """Read the prior of a file."""
        stored = json.loads(path.read_text(encoding="utf-8"))
        return cls(stored["name"], stored["base"], stored["weights"])

    def of(self, word: str) -> tuple[float, float]:
        """Return the prior mean and precision of a weight."""
        if word == BASE:
            return self.base, _BASE_PRECISION
        known = self.weights.get(word)
        return (0.0, _NEW_PRECISION) if known is None else (known, _PRECISION)


PRIOR = PairPrior.read()

Row = tuple[tuple[str, ...], float]
"""The words of an asked step, and whether it gave a pair: 1 or 0, or the probability where asking ended
before it was known."""


@dataclass(frozen=True, slots=True)
class PairModel:
    """A model of pairs: weights by word with standard deviations, and its numbers of steps and pairs."""

    weights: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    asked: int = 0
    pairs: int = 0
    prior: PairPrior = PRIOR

    @property
    def version(self) -> str:
        """Return a digest of prior and weights."""
        return digest("belief", self.prior.name, canonical_json(self.to_json()), size=4)

    def probability(self, words: Iterable[str]) -> float:
        """Return the probability of a pair at a step, at the mode of the posterior."""
        total = self._weight(BASE) + math.fsum(map(self._weight, words))
        return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, total))))

    def _weight(self, word: str) -> float:
        known = self.weights.get(word)
        return self.prior.of(word)[0] if known is None else known[0]

    def to_json(self) -> dict[str, object]:
        """Return plain values, rounded to six digits."""
        kept = {word: [round(m, 6), round(s, 6)] for word, (m, s) in sorted(self.weights.items())}
        return {"prior": self.prior.name, "asked": self.asked, "pairs": self.pairs, "weights": kept}


def learn_pair_model(rows: Iterable[Row], prior: PairPrior = PRIOR) -> PairModel:
    """Fit the model to these steps, whatever their order."""
    met = Counter(rows)
    if not met:
        return PairModel(prior=prior)
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
    mode, deviations = laplace_posterior(x, n, k, [prior.of(name) for name in names])
    weights = {
        name: (round(float(m), 6), round(float(s), 6))
        for name, m, s in zip(names, mode, deviations, strict=True)
    }
    return PairModel(weights, counts.total(), round(math.fsum(pairs.values())), prior)


def laplace_posterior(
    x: np.ndarray, n: np.ndarray, k: np.ndarray, prior: Sequence[tuple[float, float]]
) -> tuple[np.ndarray, np.ndarray]:
    """Return mode and standard deviations of the posterior.

    `x` is (steps, words) of 0 and 1; `n` and `k` are the number of steps and pairs of each row, `prior`
    the mean and precision of each word.
    """
    mean, precision = np.array(prior).T

    def posterior(at: np.ndarray) -> float:
        total = x @ at
        return float(k @ total - n @ np.logaddexp(0.0, total) - precision @ (at - mean) ** 2 / 2)

    w = mean.copy()
    hessian = np.diag(precision)
    for _ in range(_MOST_STEPS):
        p = 1.0 / (1.0 + np.exp(-np.clip(x @ w, -30.0, 30.0)))
        gradient = x.T @ (k - n * p) - precision * (w - mean)
        hessian = (x * (n * p * (1.0 - p))[:, None]).T @ x + np.diag(precision)
        step, before = np.linalg.solve(hessian, gradient), posterior(w)
        while posterior(w + step) < before and float(np.abs(step).max()) > _CLOSE:
            step = step / 2  # a full step may overshoot
        w = w + step
        if float(np.abs(step).max()) < _CLOSE:
            break
    return w, np.sqrt(np.diag(np.linalg.inv(hessian)))
