"""Run the gate on recorded multi-model data: correct pairs found by share of the USD.

A draw is processed as a run would be: tasks in an order drawn by a seed, in batches. The gate decides each
batch by the batches before it (prequential), pays the recorded cost, and learns from the results. USD are
relative to tiered asking at every step.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import mul
from typing import Literal

from tracemill.evaluate.gate.gate_step import (
    EXPLORE,
    THRESHOLD,
    GateStep,
    shuffle_gate_steps,
    tiered_gate_step_shares,
)
from tracemill.records.identity import digest
from tracemill.teachers.gate.budget_pacing import BudgetPacer, paced_explored_share
from tracemill.teachers.gate.gate_decisions import coin
from tracemill.teachers.gate.pair_model import PRIOR, PairModel, PairPrior, Row, learn_pair_model
from tracemill.teachers.gate.pair_value import ValuedStep, score_pair_values
from tracemill.teachers.gate.totals_estimate import EstimatedTotals, LoggedStep, estimate_totals

BATCH = 64
GatePolicy = Literal["all", "voi", "random"]
"""How a pass chooses steps: all, those worth their cost, or by chance."""


@dataclass(frozen=True, slots=True)
class GatePassResult:
    """The result of one pass: shares of the USD spent and of pairs found, and estimated totals."""

    spent: float
    good: float
    pairs: float
    totals: EstimatedTotals
    found: tuple[str, ...] = ()
    """The task of each correct pair found."""
    asked: Mapping[str, int] = field(default_factory=dict[str, int])
    """Number of answers asked for, by step id."""


@dataclass(frozen=True, slots=True)
class StepSelection:
    """The rule by which a gate pass selects the steps to ask at.

    `prior` is the prior of the pair model that the gate fits during the pass. With `belief_of` the gate
    uses the model that it returns for a step, and fits none.
    """

    policy: GatePolicy = "voi"
    belief_of: Callable[[GateStep], PairModel] | None = None
    prior: PairPrior = PRIOR


@dataclass(slots=True)
class _Run:
    way: StepSelection
    steps: Sequence[GateStep]
    budget_usd: float
    seed: int
    explore: float
    belief: PairModel
    pacer: BudgetPacer = field(default_factory=BudgetPacer)
    rows: list[Row] = field(default_factory=list[Row])
    spent_usd: float = 0.0
    kept_usd: float = 0.0
    """Cost of the random steps to come, which is not spent on others."""
    lots: dict[str, bool] = field(default_factory=dict[str, bool])
    """Whether a step is drawn at random, by step id."""
    coming: list[float] = field(default_factory=list[float])
    """Cost of each teacher at the other steps to come."""
    chances: list[LoggedStep] = field(default_factory=list[LoggedStep])
    asked: dict[str, tuple[GateStep, int]] = field(default_factory=dict[str, tuple[GateStep, int]])

    def learns(self) -> bool:
        """Return whether the results of a batch change later decisions."""
        return self.way.policy == "voi" and self.way.belief_of is None

    def probability(self, step: GateStep) -> float:
        """Return the gate's probability of a pair at a step; 0 for baselines."""
        if self.way.belief_of is not None:
            return self.way.belief_of(step).probability(step.facts.words)
        return self.belief.probability(step.facts.words) if self.learns() else 0.0


def run_gate_pass(steps: Sequence[GateStep], way: StepSelection, share: float, seed: int) -> GatePassResult:
    """Run one pass with a share of the USD of tiered asking."""
    total_usd = sum(step.tiered_usd for step in steps)
    full_usd = sum(usd for step in steps for usd in step.expected_usd)
    explore = paced_explored_share(EXPLORE, share * total_usd / max(full_usd, 1e-12))
    run = _Run(way, steps, share * total_usd, seed, explore, PairModel(prior=way.prior))
    ordered = shuffle_gate_steps(steps, seed)
    run.lots = {step.facts.step_id: coin(seed, step.facts.step_id) < run.explore for step in ordered}
    run.kept_usd = sum(step.full_usd for step in ordered if run.lots[step.facts.step_id])
    most = max((len(step.calls_usd) for step in ordered), default=0)
    run.coming = [
        sum(s.expected_usd[at] for s in ordered if at < len(s.calls_usd) and not run.lots[s.facts.step_id])
        for at in range(most)
    ]
    for start in range(0, len(ordered), BATCH):
        _batch(run, ordered[start : start + BATCH])
    return _passed(run, total_usd)


def _passed(run: _Run, total_usd: float) -> GatePassResult:
    found = [(step, *step.found(count)) for step, count in run.asked.values()]
    return GatePassResult(
        run.spent_usd / total_usd if total_usd else 0.0,
        sum(good for *_, good in found) / max(sum(step.good for step in run.steps), 1),
        sum(pair for _, pair, _ in found) / max(sum(step.pair for step in run.steps), 1),
        estimate_totals(run.chances),
        tuple(step.task for step, _, good in found if good),
        {name: count for name, (_, count) in run.asked.items()},
    )


def _batch(run: _Run, batch: Sequence[GateStep]) -> None:
    beliefs = [run.probability(step) for step in batch]
    shares = tiered_gate_step_shares(len(run.coming), THRESHOLD)
    costs = [sum(map(mul, step.expected_usd, shares)) for step in batch]
    made = score_pair_values([step.facts for step in batch], beliefs, costs)
    everywhere = run.way.policy == "all"
    scores = [_score(step, run) for step in made]
    coming = sum(usd * share for usd, share in zip(run.coming, shares, strict=True))
    left = max(run.budget_usd - run.spent_usd - run.kept_usd, 0.0) / max(coming, 1e-12)
    threshold = -math.inf if everywhere else run.pacer.threshold(scores, costs, left)
    run.pacer.remember(scores, costs)
    drawn = [run.lots[step.facts.step_id] for step in batch]
    for step, lot in zip(batch, drawn, strict=True):
        for at, usd in enumerate(step.expected_usd):
            run.coming[at] -= 0.0 if lot else usd
    order = sorted(range(len(batch)), key=lambda at: (not drawn[at], -scores[at]))
    for at in order:
        _ask(run, batch[at], made[at], drawn[at], scores[at] >= threshold)
    if run.learns():
        run.belief = learn_pair_model(run.rows, run.way.prior)


def _ask(run: _Run, step: GateStep, made: ValuedStep, explored: bool, taken: bool) -> None:
    """Ask at a step if it is explored or selected and the budget covers it, and record the result."""
    cost = step.full_usd if explored else step.tiered_usd
    run.kept_usd -= cost if explored else 0.0
    asked = (explored or taken) and run.spent_usd + cost + run.kept_usd <= run.budget_usd
    label = float(step.tiered_pair) if asked else None
    chance = 1.0 if taken else run.explore
    run.chances.append(LoggedStep(chance, made.belief, label, explored or taken))
    if asked:
        run.spent_usd += cost
        run.asked[step.facts.step_id] = (step, len(step.calls_usd) if explored else step.agreed)
        run.rows.append((step.facts.words, float(step.tiered_pair)))


def _score(step: ValuedStep, run: _Run) -> float:
    """Return the gate's score, or a hash of seed and step for random selection."""
    if run.way.policy != "random":
        return step.score
    return int(digest("order", str(run.seed), step.facts.step_id, size=7), 16) / 2**56
