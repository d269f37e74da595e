"""What the answers heard so far at a step say of whether asking on gives a pair: a stop by value.

Before the first teacher the gate decides (`teachers.gate.pair_value`). Between teachers there is a Bayesian
logistic regression a stage, stage j after j answers, over the words of the step and those of the answers:
whether each does what the student did, and what it does else. Asking ends where

    utility x probability of a pair  <  lambda x what asking on is expected to cost

Each stage is learned from the steps that were asked beyond it until their label was certain. A stage that
rests on too little is not gone by: there a step ends as under `tiered`. A cheap answer that decides on the
dear one is the cascade of FrugalGPT (L. Chen et al., 2023).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracemill.agreement.equivalence.ladder import Keys
from tracemill.agreement.equivalence.same_effect import is_same_effect
from tracemill.records.identity import canonical_json, digest
from tracemill.teachers.gate.pair_model import HEARD, Belief, Row, learn_pair_model

FEWEST_STEPS, FEWEST_PAIRS = 30, 3
"""Steps and pairs among them from which on a stage is gone by."""
OWN, SILENT = "effect", "none"
"""What is said of an answer that does what the student did, and of one that has no vote."""


def value_stage_words(student: Keys, heard: Sequence[Keys | None]) -> tuple[str, ...]:
    """The words of the answers at a step, in the order in which they were asked; None has no vote."""
    words: list[str] = []
    for at, one in enumerate(heard):
        name = f"{HEARD}{at + 1}"
        if one is None:
            words.append(f"{name}={SILENT}")
            continue
        near = _near(one, student)
        words += [
            f"{name}={near}",
            f"{name}_op={one.cls}",
            f"{name}_guess={'yes' if one.guess else 'no'}",
            f"{name}*op={near}*{student.cls}*{one.cls}",
        ]
        words += [
            f"{name}~{before + 1}={_near(one, other)}"
            for before, other in enumerate(heard[:at])
            if other is not None
        ]
    return tuple(words)


def _near(one: Keys, other: Keys) -> str:
    """The lowest rung on which two actions are alike; two that end are alike."""
    if is_same_effect(one, other):
        return OWN
    if one.intent == other.intent:
        return "intent"
    return "class" if one.cls == other.cls else "different"


def are_own_answers(words: Iterable[str]) -> bool:
    """Whether there are votes among these answers and all are for the student's action."""
    return set(_said(words)) - {SILENT} == {OWN}


def value_stage_of(words: Iterable[str]) -> int:
    """How many answers these words are of."""
    return len(_said(words))


def _said(words: Iterable[str]) -> list[str]:
    parts = (word.partition("=") for word in words)
    return [said for name, _, said in parts if name.removeprefix(HEARD).isdigit()]


def is_worth(belief: float, utility: float, price: float, to_go_usd: float) -> bool:
    """Whether asking on is worth what it costs; what costs nothing is."""
    return to_go_usd <= 0 or utility * belief >= price * to_go_usd


@dataclass(frozen=True, slots=True)
class Stages:
    """The beliefs by stage: the first after one answer."""

    beliefs: tuple[Belief, ...] = ()

    @property
    def version(self) -> str:
        """A digest of what they hold."""
        return digest("stages", canonical_json(self.to_json()), size=4)

    def probability(self, features: Sequence[str], heard: Sequence[str], stage: int) -> float | None:
        """The probability of a pair after `stage` answers; None where too little is known of that."""
        if not 0 < stage <= len(self.beliefs):
            return None
        belief = self.beliefs[stage - 1]
        if belief.asked < FEWEST_STEPS or belief.pairs < FEWEST_PAIRS:
            return None
        return belief.probability((*features, *heard))

    def to_json(self) -> list[dict[str, object]]:
        """Plain values."""
        return [belief.to_json() for belief in self.beliefs]

    @classmethod
    def from_json(cls, values: Sequence[Mapping[str, Any]]) -> "Stages":
        """The inverse of `to_json`. Raises KeyError, TypeError or ValueError for anything else."""
        return cls(tuple(Belief.from_json(value) for value in values))

    @classmethod
    def learn(cls, rows: Mapping[int, Iterable[Row]]) -> "Stages":
        """From the steps known by stage: all words there and whether a pair came of it."""
        return cls(tuple(learn_pair_model(rows[stage]) for stage in sorted(rows)))


Chain = Sequence[tuple[float, float, float]]
"""What is believed of a step stage by stage, whose label became known: the probability of a pair, what one is
worth, and what asking on was expected to cost."""


def price_that_keeps(chains: Iterable[Chain], keep: float) -> float:
    """The highest price at which stopping by value is expected to keep the share `keep` of the pairs of these
    steps; 0 where none does."""
    every = [chain for chain in chains if chain]
    total = sum(chain[0][0] for chain in every)
    prices = sorted({w * p / usd for chain in every for p, w, usd in chain if usd > 0})
    low, high = 0, len(prices)
    while low < high:
        middle = (low + high) // 2
        if sum(_lost(chain, prices[middle]) for chain in every) <= (1.0 - keep) * total:
            low = middle + 1
        else:
            high = middle
    return prices[low - 1] if low else 0.0


def _lost(chain: Chain, price: float) -> float:
    """The probability of a pair at which asking ends at a step; 0 where it goes on to the end."""
    return next((p for p, worth, usd in chain if not is_worth(p, worth, price, usd)), 0.0)
