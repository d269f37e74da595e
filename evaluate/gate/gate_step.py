"""A step of a draw as a gate meets it, and what one who knows the pairs would do."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from tracemill.agreement.voting.policy import DEFAULT
from tracemill.evaluate.table.draw_steps import AskedStep
from tracemill.teachers.gate.features import StepFacts
from tracemill.teachers.gate.pair_model import Belief, Row, learn_pair_model
from tracemill.teachers.gate.step_costs import step_costs_to_go
from tracemill.teachers.gate.value_stages import Chain, Stages, price_that_keeps, value_stage_words
from tracemill.teachers.planning.early_stop_rates import early_stop_ask_rates

THRESHOLD = DEFAULT.threshold
KEEP = 0.98
"""The share of the pairs that stopping by value is to keep where money is not short."""
SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)
EXPLORE = 0.05


@dataclass(frozen=True, slots=True)
class GateStep:
    """A step of a draw: what the gate knows, what asking is expected to cost and costs, and what comes of it.

    `calls_usd` is what each teacher costs, in their order, and `expected_usd` what it is expected to.
    `heard` has the words of the answers before each. The label is certain after `certain` answers, and
    `tiered` asking ends after `agreed`; then there is a pair where `tiered_pair`, and a correct one where
    `tiered_good`. `pair` and `good` are of the full vote; where the table has no rewards every pair is good.
    """

    task: str
    facts: StepFacts
    expected_usd: tuple[float, ...]
    calls_usd: tuple[float, ...]
    heard: tuple[tuple[str, ...], ...]
    certain: int
    agreed: int
    pair: bool
    good: bool
    tiered_pair: bool
    tiered_good: bool

    def usd(self, answers: int) -> float:
        """What so many answers cost."""
        return sum(self.calls_usd[:answers])

    @property
    def tiered_usd(self) -> float:
        """What tiered asking costs."""
        return self.usd(self.agreed)

    @property
    def full_usd(self) -> float:
        """What all teachers cost."""
        return sum(self.calls_usd)

    def found(self, answers: int) -> tuple[bool, bool]:
        """Whether there is a pair, and a correct one, after so many answers."""
        if answers >= self.certain:
            return self.pair, self.good
        return (self.tiered_pair, self.tiered_good) if answers >= self.agreed else (False, False)


def build_gate_steps(
    steps: Sequence[AskedStep],
    facts: Mapping[tuple[int, str], StepFacts],
    rewarded: bool = True,
) -> list[GateStep]:
    """The steps of a draw as a gate meets them; `rewarded` says whether the table tells correct pairs."""
    answers = _mean_answers(steps)
    return [
        _gate_step(step, facts[step.state.number, step.student.model], answers, rewarded) for step in steps
    ]


def _gate_step(step: AskedStep, facts: StepFacts, answers: Mapping[str, float], rewarded: bool) -> GateStep:
    known = [told.acted.keys if told.vote is not None else None for told in step.replies]
    costs = [
        told.usd
        * (told.acted.prompt_tokens + answers[told.teacher])
        / max(told.acted.prompt_tokens + told.acted.answer_tokens, 1)
        for told in step.replies
    ]
    full, tiered = step.kept["lossless"], step.kept["tiered"]
    return GateStep(
        step.task,
        facts,
        tuple(costs),
        tuple(told.usd for told in step.replies),
        tuple(value_stage_words(step.student.keys, known[:count]) for count in range(len(known))),
        step.heard["lossless"],
        step.heard["tiered"],
        full is not None,
        full == "good" if rewarded else full is not None,
        tiered is not None,
        tiered == "good" if rewarded else tiered is not None,
    )


def _mean_answers(steps: Sequence[AskedStep]) -> dict[str, float]:
    tokens: dict[str, list[int]] = {}
    for step in steps:
        for told in step.replies:
            tokens.setdefault(told.teacher, []).append(told.acted.answer_tokens)
    return {teacher: sum(each) / len(each) for teacher, each in tokens.items()}


def shuffle_gate_steps(steps: Sequence[GateStep], seed: int) -> list[GateStep]:
    """The steps with their tasks in an order drawn by the seed."""
    tasks = sorted({step.task for step in steps})
    random.Random(seed).shuffle(tasks)
    places = {task: place for place, task in enumerate(tasks)}
    return sorted(steps, key=lambda step: places[step.task])


def tiered_gate_step_shares(teachers: int, threshold: int) -> tuple[float, ...]:
    """How often each teacher is asked under tiered asking, before anything is known."""
    return early_stop_ask_rates(teachers, threshold, "tiered", EXPLORE)


def oracle_gate_scores(steps: Sequence[GateStep], shares: Sequence[float] = SHARES) -> list[float]:
    """The share of the correct pairs within each share of the USD for one who knows them: the cheapest
    first."""
    total = sum(step.tiered_usd for step in steps)
    costs = sorted(step.usd(step.agreed if step.tiered_good else step.certain) for step in steps if step.good)
    spent = list(accumulate(costs))
    return [sum(usd <= (share + 1e-9) * total for usd in spent) / max(len(costs), 1) for share in shares]


def recall_area(recalls: Sequence[float], shares: Sequence[float] = SHARES) -> float:
    """The area under a curve of recall by share of USD, from (0, 0) to (1, 1), by trapezoids."""
    points = [(0.0, 0.0), *zip(shares, recalls, strict=True), (1.0, 1.0)]
    return sum((b - a) * (low + high) / 2 for (a, low), (b, high) in pairwise(points))


@dataclass(frozen=True, slots=True)
class Known:
    """What a gate believes: of steps nobody was asked at, and of those with answers; and the price at which
    stopping by value keeps `KEEP` of the pairs."""

    belief: Belief
    stages: Stages
    price: float = 0.0


def stage_report_rows(step: GateStep) -> list[Row]:
    """What is learned between teachers from a step that was asked to the end, stage by stage."""
    return [((*step.facts.words, *step.heard[stage]), float(step.pair)) for stage in range(1, step.certain)]


def gate_step_stop_price(
    steps: Iterable[GateStep], stages: Stages, shares: Sequence[float], keep: float = KEEP
) -> float:
    """The price at which stopping by value keeps a share of the pairs of these steps, asked to the end."""
    return price_that_keeps((_chain(step, stages, shares) for step in steps), keep)


def _chain(step: GateStep, stages: Stages, shares: Sequence[float]) -> Chain:
    costs = step_costs_to_go(step.expected_usd, shares[: len(step.expected_usd)])
    beliefs = (
        (stage, stages.probability(step.facts.words, step.heard[stage], stage))
        for stage in range(1, step.certain)
    )
    return [(belief, 1.0, costs[stage]) for stage, belief in beliefs if belief is not None]


def learn_from_gate_steps(steps: Sequence[GateStep]) -> Known:
    """What a gate knows that was shown every step of these, and what came of asking there."""
    rows: dict[int, list[Row]] = {}
    for step in steps:
        for stage, row in enumerate(stage_report_rows(step), 1):
            rows.setdefault(stage, []).append(row)
    belief, stages = (
        learn_pair_model((step.facts.words, float(step.pair)) for step in steps),
        Stages.learn(rows),
    )
    most = max((len(step.expected_usd) for step in steps), default=0)
    return Known(
        belief, stages, gate_step_stop_price(steps, stages, tiered_gate_step_shares(most, THRESHOLD))
    )
