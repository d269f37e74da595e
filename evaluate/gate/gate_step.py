"""Describe a step of a draw as a gate sees it, and what an oracle would choose."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from tracemill.agreement.voting.policy import DEFAULT
from tracemill.evaluate.table.draw_steps import AskedStep
from tracemill.teachers.gate.features import GateStepFeatures
from tracemill.teachers.gate.pair_model import PairModel, learn_pair_model
from tracemill.teachers.planning.early_stop_rates import early_stop_ask_rates

THRESHOLD = DEFAULT.threshold
SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)
EXPLORE = 0.05


@dataclass(frozen=True, slots=True)
class GateStep:
    """A step of a draw: the gate's features, and the costs and results of asking.

    `calls_usd` and `expected_usd` are the actual and expected cost of each teacher, in order. The label is
    certain after `certain` answers; `tiered` asking ends after `agreed`, with the results `tiered_pair` and
    `tiered_good`. `pair` and `good` are of the full vote; without rewards every pair is good.
    """

    task: str
    facts: GateStepFeatures
    expected_usd: tuple[float, ...]
    calls_usd: tuple[float, ...]
    certain: int
    agreed: int
    pair: bool
    good: bool
    tiered_pair: bool
    tiered_good: bool

    def usd(self, answers: int) -> float:
        """Return the cost of this many answers in USD."""
        return sum(self.calls_usd[:answers])

    @property
    def tiered_usd(self) -> float:
        """Return the cost of tiered asking in USD."""
        return self.usd(self.agreed)

    @property
    def full_usd(self) -> float:
        """Return the cost of all teachers in USD."""
        return sum(self.calls_usd)

    def found(self, answers: int) -> tuple[bool, bool]:
        """Return whether there is a pair, and a correct one, after this many answers."""
        if answers >= self.certain:
            return self.pair, self.good
        return (self.tiered_pair, self.tiered_good) if answers >= self.agreed else (False, False)


def build_gate_steps(
    steps: Sequence[AskedStep],
    facts: Mapping[tuple[int, str], GateStepFeatures],
    rewarded: bool = True,
) -> list[GateStep]:
    """Return the steps of a draw in the form that a gate reads.

    `rewarded` is whether the table's rewards show which pairs are correct.
    """
    answers = _mean_answers(steps)
    return [
        _gate_step(step, facts[step.state.number, step.student.model], answers, rewarded) for step in steps
    ]


def _gate_step(
    step: AskedStep, facts: GateStepFeatures, answers: Mapping[str, float], rewarded: bool
) -> GateStep:
    costs = [
        answer.usd
        * (answer.acted.prompt_tokens + answers[answer.teacher])
        / max(answer.acted.prompt_tokens + answer.acted.answer_tokens, 1)
        for answer in step.replies
    ]
    full, tiered = step.kept["lossless"], step.kept["tiered"]
    return GateStep(
        step.task,
        facts,
        tuple(costs),
        tuple(answer.usd for answer in step.replies),
        step.asked["lossless"],
        step.asked["tiered"],
        full is not None,
        full == "good" if rewarded else full is not None,
        tiered is not None,
        tiered == "good" if rewarded else tiered is not None,
    )


def _mean_answers(steps: Sequence[AskedStep]) -> dict[str, float]:
    tokens: dict[str, list[int]] = {}
    for step in steps:
        for answer in step.replies:
            tokens.setdefault(answer.teacher, []).append(answer.acted.answer_tokens)
    return {teacher: sum(each) / len(each) for teacher, each in tokens.items()}


def shuffle_gate_steps(steps: Sequence[GateStep], seed: int) -> list[GateStep]:
    """Return the steps with their tasks in an order drawn by the seed."""
    tasks = sorted({step.task for step in steps})
    random.Random(seed).shuffle(tasks)
    places = {task: place for place, task in enumerate(tasks)}
    return sorted(steps, key=lambda step: places[step.task])


def tiered_gate_step_shares(teachers: int, threshold: int) -> tuple[float, ...]:
    """Return how often each teacher is asked under tiered asking, by default."""
    return early_stop_ask_rates(teachers, threshold, "tiered", EXPLORE)


def oracle_gate_scores(steps: Sequence[GateStep], shares: Sequence[float] = SHARES) -> list[float]:
    """Return an oracle's recall of correct pairs at each share of the USD, cheapest first."""
    total = sum(step.tiered_usd for step in steps)
    costs = sorted(step.usd(step.agreed if step.tiered_good else step.certain) for step in steps if step.good)
    spent = list(accumulate(costs))
    return [sum(usd <= (share + 1e-9) * total for usd in spent) / max(len(costs), 1) for share in shares]


def recall_area(recalls: Sequence[float], shares: Sequence[float] = SHARES) -> float:
    """Return the area under a curve of recall by share of USD, from (0, 0) to (1, 1)."""
    points = [(0.0, 0.0), *zip(shares, recalls, strict=True), (1.0, 1.0)]
    return sum((b - a) * (low + high) / 2 for (a, low), (b, high) in pairwise(points))


def learn_from_gate_steps(steps: Sequence[GateStep]) -> PairModel:
    """Return the pair model fitted to all of these steps and their results."""
    return learn_pair_model((step.facts.words, float(step.pair)) for step in steps)
