"""The gate on recorded multi-model data: how many of the correct pairs it finds for which share of the USD.

Every (student, teachers) draw of a table is gone through as a run would: its tasks in an order drawn by a
seed, in batches; the gate decides on each batch by what the batches before have shown (prequential), pays
what asking there cost, and learns from what came of it. The share of USD is of what asking at every step
costs, settled early.
"""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from agreement.policy import DEFAULT
from flows.early import asked_shares
from flows.evaluation_savings import Chooser
from flows.evaluation_steps import AskedStep
from records.identity import digest
from teachers.gate_belief import Belief, Row, learned
from teachers.gate_features import StepFacts
from teachers.gate_pacing import Pacer
from teachers.gate_policies import scores_of
from teachers.gate_totals import Chance, Totals, totals_of
from teachers.gate_value import Valued, expected_usd, valued
from teachers.settings import GatePolicy, UtilitySettings

SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)
BATCH = 64
EXPLORE = 0.05
THRESHOLD = DEFAULT.threshold
GATE_SHARE = 0.5
GATE = "voi, half"
"""What the gate is called among the ways to save."""
FLAT = UtilitySettings(outcome={}, operation={}, after_error=1.0, novelty=0.0)
"""Every correct pair counts the same."""


@dataclass(frozen=True, slots=True)
class GateStep:
    """A step of a draw: what the gate knows, what asking is expected to cost and costs, and what comes of it.
    `full_usd` is what all teachers cost, `usd` what they cost where the step is settled early."""

    task: str
    facts: StepFacts
    expected_usd: float
    usd: float
    full_usd: float
    pair: bool
    good: bool
    """Whether that is a correct pair; where the table has no rewards, whether it is a pair."""


@dataclass(frozen=True, slots=True)
class Passed:
    """One pass over a draw: the share of the USD it spent, the share of the correct pairs and of all pairs
    it found, and the totals it would estimate."""

    spent: float
    good: float
    pairs: float
    totals: Totals
    found: tuple[str, ...] = ()
    """The task of each correct pair that was found."""
    asked: frozenset[str] = frozenset()
    """The ids of the steps that were asked."""


@dataclass(slots=True)
class _Run:
    policy: GatePolicy
    belief: Belief
    told: Callable[[GateStep], Belief] | None
    learns: bool
    budget_usd: float
    coming_usd: float
    seed: int
    explore: float
    pacer: Pacer = field(default_factory=Pacer)
    rows: list[Row] = field(default_factory=list[Row])
    spent_usd: float = 0.0
    kept_usd: float = 0.0
    """What the steps drawn at random and not met yet will cost: it is not spent on others."""
    lots: dict[str, bool] = field(default_factory=dict[str, bool])
    """By step id, whether it is drawn at random."""
    chances: list[Chance] = field(default_factory=list[Chance])
    asked: list[GateStep] = field(default_factory=list[GateStep])


def gate_steps(
    steps: Sequence[AskedStep],
    facts: Mapping[tuple[int, str], StepFacts],
    threshold: int,
    rewarded: bool = True,
) -> list[GateStep]:
    """The steps of a draw as a gate meets them; `rewarded` says whether the table tells correct pairs."""
    found: list[GateStep] = []
    answers = _mean_answers(steps)
    for step in steps:
        shares = asked_shares(len(step.replies), threshold, "tiered", EXPLORE)
        costs = [
            told.usd
            * (told.acted.prompt_tokens + answers[told.teacher])
            / max(told.acted.prompt_tokens + told.acted.answer_tokens, 1)
            for told in step.replies
        ]
        score = step.kept["tiered"]
        found.append(
            GateStep(
                step.task,
                facts[step.state.number, step.student.model],
                expected_usd(costs, shares),
                step.usd("tiered"),
                step.usd("off"),
                score is not None,
                score == "good" if rewarded else score is not None,
            )
        )
    return found


def _mean_answers(steps: Sequence[AskedStep]) -> dict[str, float]:
    tokens: dict[str, list[int]] = {}
    for step in steps:
        for told in step.replies:
            tokens.setdefault(told.teacher, []).append(told.acted.answer_tokens)
    return {teacher: sum(each) / len(each) for teacher, each in tokens.items()}


def in_order(steps: Sequence[GateStep], seed: int) -> list[GateStep]:
    """The steps with their tasks in an order drawn by the seed."""
    tasks = sorted({step.task for step in steps})
    random.Random(seed).shuffle(tasks)
    places = {task: place for place, task in enumerate(tasks)}
    return sorted(steps, key=lambda step: places[step.task])


def pass_over(
    steps: Sequence[GateStep],
    policy: GatePolicy,
    share: float,
    seed: int,
    told: Callable[[GateStep], Belief] | None = None,
    explore: float = EXPLORE,
) -> Passed:
    """One pass at a share of the USD. With `told` the gate goes by the belief that it gives for a step, and
    learns nothing more."""
    total_usd = sum(step.usd for step in steps)
    run = _Run(
        policy,
        Belief(),
        told,
        told is None and policy == "voi",
        share * total_usd,
        total_usd,
        seed,
        explore,
    )
    ordered = in_order(steps, seed)
    run.lots = {step.facts.step_id: _coin(seed, step) < explore for step in ordered}
    drawn = [step for step in ordered if run.lots[step.facts.step_id]]
    run.kept_usd = sum(step.full_usd for step in drawn)
    run.coming_usd -= sum(step.usd for step in drawn)
    for start in range(0, len(ordered), BATCH):
        _batch(run, ordered[start : start + BATCH])
    good, pairs = sum(step.good for step in steps), sum(step.pair for step in steps)
    return Passed(
        run.spent_usd / total_usd,
        sum(step.good for step in run.asked) / max(good, 1),
        sum(step.pair for step in run.asked) / max(pairs, 1),
        totals_of(run.chances),
        tuple(step.task for step in run.asked if step.good),
        frozenset(step.facts.step_id for step in run.asked),
    )


def _batch(run: _Run, batch: Sequence[GateStep]) -> None:
    beliefs = [_probability(run, step) for step in batch]
    costs = [step.expected_usd for step in batch]
    made = valued([step.facts for step in batch], beliefs, costs, FLAT)
    everywhere = run.policy == "all"
    scores = [0.0] * len(made) if everywhere else scores_of(made, run.policy, run.seed)
    left = max(run.budget_usd - run.spent_usd - run.kept_usd, 0.0) / max(run.coming_usd, 1e-12)
    threshold = -math.inf if everywhere else run.pacer.threshold(scores, costs, left)
    run.pacer.remember(scores, costs)
    drawn = [run.lots[step.facts.step_id] for step in batch]
    run.coming_usd -= sum(step.usd for step, lot in zip(batch, drawn, strict=True) if not lot)
    order = sorted(range(len(batch)), key=lambda at: (not drawn[at], -scores[at]))
    for at in order:
        _ask(run, batch[at], made[at], drawn[at], scores[at] >= threshold)
    if run.learns:
        run.belief = learned(run.rows)


def _probability(run: _Run, step: GateStep) -> float:
    """What the gate believes of a step; baselines believe nothing."""
    if run.told is not None:
        return run.told(step).probability(step.facts.words)
    return run.belief.probability(step.facts.words) if run.learns else 0.0


def _ask(run: _Run, step: GateStep, made: Valued, explored: bool, taken: bool) -> None:
    cost = step.full_usd if explored else step.usd
    run.kept_usd -= cost if explored else 0.0
    asked = (explored or taken) and run.spent_usd + cost + run.kept_usd <= run.budget_usd
    probability = 1.0 if taken else run.explore
    found = float(step.pair) if asked else None
    run.chances.append(Chance(probability, made.belief, found, explored or taken))
    if asked:
        run.spent_usd += cost
        run.asked.append(step)
        run.rows.append((step.facts.words, step.pair))


def chooser(facts: Mapping[tuple[int, str], StepFacts], rewarded: bool) -> Chooser:
    """A gate from a cold start as one way to save: it may spend `GATE_SHARE` of what tiered asking
    everywhere costs."""

    def choose(steps: Sequence[AskedStep]) -> Sequence[bool]:
        if not steps:
            return []
        met = gate_steps(steps, facts, THRESHOLD, rewarded)
        asked = pass_over(met, "voi", GATE_SHARE, 0).asked
        return [step.facts.step_id in asked for step in met]

    return choose


def _coin(seed: int, step: GateStep) -> float:
    return int(digest("coin", str(seed), step.facts.step_id, size=7), 16) / 2**56


def oracle(steps: Sequence[GateStep], shares: Sequence[float] = SHARES) -> list[float]:
    """The share of the correct pairs within each share of the USD for one who knows them: the cheapest
    first."""
    total, costs = sum(step.usd for step in steps), sorted(step.usd for step in steps if step.good)
    found: list[float] = []
    for share in shares:
        room, count = share * total, 0
        for cost in costs:
            room -= cost
            if room < -1e-9 * total:
                break
            count += 1
        found.append(count / max(len(costs), 1))
    return found


def area(recalls: Sequence[float], shares: Sequence[float] = SHARES) -> float:
    """The area under a curve of recall by share of USD, from (0, 0) to (1, 1), by trapezoids."""
    points = [(0.0, 0.0), *zip(shares, recalls, strict=True), (1.0, 1.0)]
    return sum((b - a) * (low + high) / 2 for (a, low), (b, high) in pairwise(points))


def trained(steps: Sequence[GateStep]) -> Belief:
    """What a gate knows that was shown every step of these, and what came of asking there."""
    return learned((step.facts.words, step.pair) for step in steps)
