"""How probable it is that asking at a step gives a pair: Bayesian logistic regression over words.

Each word of a step (`teachers.gate.features`) has a weight with a normal prior; the posterior is Laplace's:
its mode, found by Newton's method, and the curvature there (C. M. Bishop, Pattern Recognition and Machine
Learning, 4.5). Words never met before have their prior weight. The prior is set by hand and small, and says
what holds before anything was asked.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tracemill.records.identity import canonical_json, digest

BASE = "base"
"""The weight that every step has."""
PRIOR_NAME = "hand-3"
_BASE_MEAN, _BASE_PRECISION = -1.7, 1.0
_PRECISION, _CORE_PRECISION = 16.0, 4.0
_MOST_STEPS, _CLOSE = 50, 1e-9

PRIOR: Mapping[str, float] = {
    "ended=resolved": -2.0,  # the act that solved the task
    "prev=failed": 0.3,
    "prev=tests_failed": 0.3,
    "repeated=last": 0.5,
    "repeated=loop": 0.5,
    "unread=yes": 0.4,
    "untested=yes": 0.5,
    "invalid=call_written_as_text": 1.0,
    "invalid=tool_not_offered": 0.7,
    "invalid=argument_of_a_wrong_type": 0.7,
    "invalid=required_argument_missing": 0.7,
    "invalid=fakes_a_tool_result": 0.5,
    "fits=said*0": -0.7,  # nothing to call, and nothing called
    "fits=said*2": 0.3,
    "fits=said*3": 0.5,
    "fits=said*4": 0.5,
    "fits=called*0": 0.5,
    "fits=called*3": -0.2,
    "fits=called*4": -0.2,
    **{f"sentence={size}": 0.4 * (7.5 - size) for size in range(2, 11)},  # the shorter, the more agree
    "told=0": 0.8,
    "told=1": 0.4,
    "told=3": -0.4,
    "told=4": -0.8,
    "second=different": 1.0,
    "second=class": 0.7,
    "second=effect": -1.2,
    "heard1=effect": -2.0,
    "heard1=intent": -0.5,
}
"""Prior means of weights; 0 where a word is not here."""
CORE = frozenset(
    {"op", "prev", "own", "op*own", "length", "context", "guess", "invalid", "repeated", "ended", "place"}
    | {"fits", "items*calls", "sentence", "told", "second", "entropy"}
)
"""Features whose weights may move soon; those of the others are held closer to their prior."""

HEARD = "heard"
"""How the words of answers begin (`teachers.gate.value_stages`)."""

Row = tuple[tuple[str, ...], float]
"""The words of a step at which was asked, and whether a pair came of it: 1 or 0, or how probable that was
where asking ended before it was known."""


def pair_model_prior(word: str) -> tuple[float, float]:
    """Mean and precision of a weight before anything was asked."""
    if word == BASE:
        return _BASE_MEAN, _BASE_PRECISION
    core = word.partition("=")[0] in CORE or word.startswith(HEARD)
    return PRIOR.get(word, 0.0), _CORE_PRECISION if core else _PRECISION


@dataclass(frozen=True, slots=True)
class Belief:
    """Weights by word with their standard deviations, and on how many steps and pairs they rest.

    `version` names it by its content: equal weights, equal versions.
    """

    weights: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    asked: int = 0
    pairs: int = 0

    @property
    def version(self) -> str:
        """A digest of prior and weights."""
        return digest("belief", PRIOR_NAME, canonical_json(self.to_json()), size=4)

    def probability(self, words: Iterable[str]) -> float:
        """The probability of a pair at a step, at the mode of the posterior."""
        total = self._weight(BASE) + math.fsum(map(self._weight, words))
        return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, total))))

    def _weight(self, word: str) -> float:
        known = self.weights.get(word)
        return pair_model_prior(word)[0] if known is None else known[0]

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Belief":
        """The inverse of `to_json`. Raises KeyError, TypeError or ValueError for anything else."""
        weights = {str(word): (float(m), float(s)) for word, (m, s) in value["weights"].items()}
        return cls(weights, int(value["asked"]), int(value["pairs"]))

    def to_json(self) -> dict[str, object]:
        """Plain values, to six digits."""
        kept = {word: [round(m, 6), round(s, 6)] for word, (m, s) in sorted(self.weights.items())}
        return {"prior": PRIOR_NAME, "asked": self.asked, "pairs": self.pairs, "weights": kept}


def learn_pair_model(rows: Iterable[Row]) -> Belief:
    """The belief after these steps; their order does not matter."""
    met = Counter(rows)
    if not met:
        return Belief()
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
    return Belief(weights, counts.total(), round(math.fsum(pairs.values())))


def _laplace(
    x: np.ndarray, n: np.ndarray, k: np.ndarray, names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Mode and standard deviations of the posterior, of `k` pairs among `n` steps with the words in `x`."""
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
