"""The gate on recorded multi-model data: how many of the correct pairs it finds for which share of the USD.

Every (student, teachers) draw of a table is gone through as a run would: its tasks in an order drawn by a
seed, in batches; the gate decides on each batch by what the batches before have shown (prequential), pays
what asking there cost, and learns from what came of it. The share of USD is of what tiered asking at every
step costs.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tracemill.evaluate.gate.gate_step import (
    EXPLORE,
    KEEP,
    THRESHOLD,
    GateStep,
    Known,
    gate_step_stop_price,
    shuffle_gate_steps,
    stage_report_rows,
    tiered_gate_step_shares,
)
from tracemill.records.identity import digest
from tracemill.teachers.core.teacher_settings import GatePolicy, UtilitySettings
from tracemill.teachers.gate.baselines import baseline_scores
from tracemill.teachers.gate.budget_pacing import Pacer, paced_explored_share
from tracemill.teachers.gate.pair_model import Belief, Row, learn_pair_model
from tracemill.teachers.gate.pair_value import Valued, pair_value_cost_usd, score_pair_values
from tracemill.teachers.gate.step_costs import step_costs_to_go
from tracemill.teachers.gate.totals_estimate import Chance, Totals, estimate_totals
from tracemill.teachers.gate.value_stages import Stages, are_own_answers, is_worth

BATCH = 64
FLAT = UtilitySettings(outcome={}, operation={}, after_error=1.0, novelty=0.0)
"""Every correct pair counts the same."""
_PRIOR_STEPS = 50


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
    asked: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many answers were asked for, by the id of the step."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a pass chooses. With `told` the gate goes by what that gives for a step, and learns nothing more;
    with `value` asking stops by value between teachers, else as tiered asking does. `explore` is the share
    of the steps drawn at random, less where that would take too much of the money."""

    policy: GatePolicy = "voi"
    told: Callable[[GateStep], Known] | None = None
    value: bool = False
    explore: float = EXPLORE
    keep: float = KEEP


@dataclass(slots=True)
class _Run:
    way: Way
    steps: Sequence[GateStep]
    budget_usd: float
    seed: int
    explore: float
    belief: Belief = field(default_factory=Belief)
    stages: Stages = field(default_factory=Stages)
    price: float = 0.0
    pacer: Pacer = field(default_factory=Pacer)
    rows: list[Row] = field(default_factory=list[Row])
    stage_rows: dict[int, list[Row]] = field(default_factory=dict[int, list[Row]])
    ended: list[GateStep] = field(default_factory=list[GateStep])
    """The steps that were asked until their label was certain."""
    spent_usd: float = 0.0
    kept_usd: float = 0.0
    """What the steps drawn at random and not met yet will cost: it is not spent on others."""
    lots: dict[str, bool] = field(default_factory=dict[str, bool])
    """By step id, whether it is drawn at random."""
    coming: list[float] = field(default_factory=list[float])
    """What each teacher costs at all steps still to come but these."""
    chances: list[Chance] = field(default_factory=list[Chance])
    asked: dict[str, tuple[GateStep, int]] = field(default_factory=dict[str, tuple[GateStep, int]])
    reached: list[int] = field(default_factory=list[int])

    def shares(self, teachers: int) -> tuple[float, ...]:
        """How often each teacher is asked at a step that is chosen."""
        before = tiered_gate_step_shares(teachers, THRESHOLD)
        if not self.way.value or not self.reached:
            return before
        known = self.reached[0]
        return tuple(
            (count + _PRIOR_STEPS * share) / (known + _PRIOR_STEPS)
            for count, share in zip(self.reached, before, strict=True)
        )

    def learns(self) -> bool:
        """Whether what came of a batch changes how the next is decided."""
        return (self.way.policy == "voi" or self.way.value) and self.way.told is None

    def look_back(self) -> None:
        """Learns from what came of the steps so far."""
        self.belief = learn_pair_model(self.rows)
        if self.way.value:
            self.stages = Stages.learn(self.stage_rows)
            shares = self.shares(len(self.reached))
            self.price = gate_step_stop_price(self.ended, self.stages, shares, self.way.keep)

    def known(self, step: GateStep) -> Known:
        """What is believed of a step."""
        if self.way.told is not None:
            return self.way.told(step)
        return Known(self.belief, self.stages, self.price)


def run_gate_pass(steps: Sequence[GateStep], way: Way, share: float, seed: int) -> Passed:
    """One pass at a share of the USD of tiered asking."""
    total_usd = sum(step.tiered_usd for step in steps)
    full_usd = sum(usd for step in steps for usd in step.expected_usd)
    explore = paced_explored_share(way.explore, share * total_usd / max(full_usd, 1e-12))
    run = _Run(way, steps, share * total_usd, seed, explore)
    ordered = shuffle_gate_steps(steps, seed)
    run.lots = {step.facts.step_id: _coin(seed, step) < run.explore for step in ordered}
    run.kept_usd = sum(step.full_usd for step in ordered if run.lots[step.facts.step_id])
    most = max((len(step.calls_usd) for step in ordered), default=0)
    run.coming = [
        sum(s.expected_usd[at] for s in ordered if at < len(s.calls_usd) and not run.lots[s.facts.step_id])
        for at in range(most)
    ]
    run.reached = [0] * most
    for start in range(0, len(ordered), BATCH):
        _batch(run, ordered[start : start + BATCH])
    return _passed(run, total_usd)


def _passed(run: _Run, total_usd: float) -> Passed:
    found = [(step, *step.found(count)) for step, count in run.asked.values()]
    return Passed(
        run.spent_usd / total_usd if total_usd else 0.0,
        sum(good for *_, good in found) / max(sum(step.good for step in run.steps), 1),
        sum(pair for _, pair, _ in found) / max(sum(step.pair for step in run.steps), 1),
        estimate_totals(run.chances),
        tuple(step.task for step, _, good in found if good),
        {name: count for name, (_, count) in run.asked.items()},
    )


def _batch(run: _Run, batch: Sequence[GateStep]) -> None:
    beliefs = [_probability(run, step) for step in batch]
    shares = run.shares(len(run.coming))
    costs = [pair_value_cost_usd(step.expected_usd, shares[: len(step.expected_usd)]) for step in batch]
    made = score_pair_values([step.facts for step in batch], beliefs, costs, FLAT)
    everywhere = run.way.policy == "all"
    scores = [0.0] * len(made) if everywhere else baseline_scores(made, run.way.policy, run.seed)
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
        _ask(run, batch[at], made[at], drawn[at], scores[at] >= threshold, threshold, shares)
    if run.learns():
        run.look_back()


def _probability(run: _Run, step: GateStep) -> float:
    """What the gate believes of a step; baselines believe nothing."""
    if not run.learns() and run.way.told is None:
        return 0.0
    return run.known(step).belief.probability(step.facts.words)


def stop_by_value(
    step: GateStep, stages: Stages, price: float, shares: Sequence[float]
) -> tuple[int, float | None]:
    """After how many answers asking ends at a step, and the probability of a pair where that is by value;
    None where the label is certain. Where a stage knows too little it ends as tiered."""
    costs = step_costs_to_go(step.expected_usd, shares[: len(step.expected_usd)])
    for stage in range(1, step.certain):
        belief = stages.probability(step.facts.words, step.heard[stage], stage)
        if belief is None:
            if are_own_answers(step.heard[stage]):
                return stage, 0.0
            continue
        if not is_worth(belief, 1.0, price, costs[stage]):
            return stage, belief
    return step.certain, None


def _ask(
    run: _Run,
    step: GateStep,
    made: Valued,
    explored: bool,
    taken: bool,
    price: float,
    shares: Sequence[float],
) -> None:
    answers, belief = step.agreed, None
    if run.way.value:
        known = run.known(step)
        answers, belief = stop_by_value(step, known.stages, max(price, known.price), shares)
    ended = belief is not None
    cost = step.full_usd if explored else step.usd(answers)
    run.kept_usd -= cost if explored else 0.0
    asked = (explored or taken) and run.spent_usd + cost + run.kept_usd <= run.budget_usd
    if run.way.value:
        sure = taken and not ended
        expected = belief if belief is not None and taken else made.belief
        label = float(step.pair) if asked and (sure or explored) else None
        run.chances.append(Chance(1.0 if sure else run.explore, expected, label, explored or sure))
    else:
        label = float(step.tiered_pair) if asked else None
        run.chances.append(Chance(1.0 if taken else run.explore, made.belief, label, explored or taken))
    if not asked:
        return
    run.spent_usd += cost
    heard = len(step.calls_usd) if explored else answers
    run.asked[step.facts.step_id] = (step, heard)
    if not explored:
        for at in range(answers):
            run.reached[at] += 1
    _remember(run, step, heard, belief)


def _remember(run: _Run, step: GateStep, answers: int, belief: float | None) -> None:
    """What is learned from a step after so many answers."""
    if not run.way.value:
        run.rows.append((step.facts.words, float(step.tiered_pair)))
        return
    label = float(step.pair) if answers >= step.certain else belief or 0.0
    run.rows.append((step.facts.words, label))
    if answers >= step.certain:
        run.ended.append(step)
        for stage, row in enumerate(stage_report_rows(step), 1):
            run.stage_rows.setdefault(stage, []).append(row)


def _coin(seed: int, step: GateStep) -> float:
    return int(digest("coin", str(seed), step.facts.step_id, size=7), 16) / 2**56
