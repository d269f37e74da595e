"""Measure a gate on a table: medians over draws and seeds, and intervals over tasks."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from tracemill.evaluate.gate.gate_pass import GatePolicy, StepSelection, run_gate_pass
from tracemill.evaluate.gate.gate_step import (
    SHARES,
    GateStep,
    build_gate_steps,
    learn_from_gate_steps,
    oracle_gate_scores,
    recall_area,
)
from tracemill.evaluate.table.draw_steps import DrawStepBuilder
from tracemill.evaluate.table.recorded_states import StateTable, is_recorded_in_half, is_tuning
from tracemill.evaluate.table.rules import Voters, product_label_rule
from tracemill.evaluate.table.scores import quantiles
from tracemill.evaluate.table.student_draws import StudentDraw, TableVotes
from tracemill.teachers.gate.features import GateStepFeatures
from tracemill.teachers.gate.pair_model import PairModel

BASELINES: tuple[GatePolicy, ...] = ("all", "random")
COLD, OFFLINE, ORACLE = "gate, cold", "gate, trained offline", "oracle"
FEWEST = 5
"""Least counted pairs of a draw on each half of the tasks."""
_TOTALS_AT = 0.3
_TOTALS_PASSES = 6
"""Passes per seed to measure totals, which are noisy in one pass."""
_RECALLS = (0.9, 0.95)


@dataclass(frozen=True, slots=True)
class GateDraw:
    """The steps of a draw on the counted tasks, and a pair model trained on each half of them.

    The key True is the tuning half.
    """

    steps: Sequence[GateStep]
    beliefs: Mapping[bool, PairModel]

    def belief_of(self, step: GateStep) -> PairModel:
        """Return the pair model for a step, trained on the other half of the tasks."""
        return self.beliefs[not is_tuning(step.task)]


def gate_figure_draws(
    table: StateTable,
    facts: Mapping[tuple[int, str], GateStepFeatures],
    draws: Sequence[StudentDraw],
    voters: Voters,
    half: str,
) -> list[GateDraw]:
    """Return the draws with enough counted pairs on both halves of the tasks, and with costs.

    `table` has all tasks; `half` is the one that counts.
    """
    rule = product_label_rule(voters)
    asker, found = DrawStepBuilder(TableVotes(table), rule), list[GateDraw]()
    for draw in draws:
        steps = build_gate_steps(asker.steps(draw), facts, table.rewarded)
        parts = {side: [step for step in steps if is_tuning(step.task) == side] for side in (True, False)}
        if all(sum(step.good for step in part) >= FEWEST for part in parts.values()):
            counting = [step for step in steps if is_recorded_in_half(step.task, half)]
            if sum(step.tiered_usd for step in counting) > 0:
                found.append(
                    GateDraw(counting, {side: learn_from_gate_steps(part) for side, part in parts.items()})
                )
    return found


def gate_figures(draws: Sequence[GateDraw], seeds: int, samples: int = 200) -> dict[str, Any]:
    """Return the figures of each rule of step selection.

    These are the recall of correct pairs by share of the USD, the area under it, the share of the area
    between random and oracle, and the share of the USD at 90 and 95 % recall, for baselines, an untrained
    gate, one trained on the other half of the tasks, and the oracle; for the gate also the error of its
    estimated totals.
    """
    out: dict[str, Any] = {"draws": len(draws), "seeds": seeds, "shares": list(SHARES)}
    if not draws or not seeds:
        return out | {"ways": {}}
    curves = {str(policy): _curves(draws, policy, seeds) for policy in BASELINES}
    curves[COLD] = _curves(draws, "voi", seeds)
    curves[OFFLINE] = _curves(draws, "voi", seeds, offline=True)
    curves[ORACLE] = [oracle_gate_scores(draw.steps) for draw in draws for _ in range(seeds)]
    chance, best = ([recall_area(curve) for curve in curves[name]] for name in ("random", ORACLE))
    out["ways"] = {name: _row(found, chance, best) for name, found in curves.items()}
    out["ways"][COLD]["recall_interval"] = _interval(draws, samples)
    return out | {"totals": _totals(draws, seeds)}


def _row(found: Sequence[Sequence[float]], chance: Sequence[float], best: Sequence[float]) -> dict[str, Any]:
    areas = [recall_area(curve) for curve in found]
    gaps = [(a - r) / (o - r) for a, r, o in zip(areas, chance, best, strict=True) if o > r]
    recalls = [round(median(values), 4) for values in zip(*found, strict=True)]
    return {
        "recall": recalls,
        "area": round(median(areas), 4),
        "of_gap": round(median(gaps), 4) if gaps else None,
        "usd_at_recall": {str(recall): _usd_at(recalls, recall) for recall in _RECALLS},
    }


def _curves(
    draws: Sequence[GateDraw], policy: GatePolicy, seeds: int, offline: bool = False
) -> list[list[float]]:
    """Return a recall curve for every draw and seed."""
    found: list[list[float]] = []
    for number, draw in enumerate(draws):
        way = StepSelection(policy, draw.belief_of if offline else None)
        for seed in range(seeds):
            found.append(
                [run_gate_pass(draw.steps, way, share, 1000 * number + seed).good for share in SHARES]
            )
    return found


def _usd_at(recalls: Sequence[float], wanted: float) -> float | None:
    """Return the share of the USD at which a curve reaches a recall, by linear interpolation."""
    points = [(0.0, 0.0), *zip(SHARES, recalls, strict=True), (1.0, 1.0)]
    for (a, low), (b, high) in pairwise(points):
        if low < wanted <= high:
            return round(a + (b - a) * (wanted - low) / (high - low), 4)
    return None


def _totals(draws: Sequence[GateDraw], seeds: int) -> dict[str, float]:
    """Return the ratio of estimated to true pairs of all steps, for a gate that spends 30 % of the USD."""
    ratios, plain, inside = list[float](), list[float](), list[bool]()
    estimated = true = 0.0
    for number, draw in enumerate(draws):
        truth = sum(step.tiered_pair for step in draw.steps)
        for seed in range(seeds * _TOTALS_PASSES):
            totals = run_gate_pass(draw.steps, StepSelection(), _TOTALS_AT, 1000 * number + seed).totals
            ratios.append(totals.estimate / truth)
            plain.append(totals.weighted / truth)
            inside.append(totals.low <= truth <= totals.high)
            estimated, true = estimated + totals.estimate, true + truth
    low, middle, high = quantiles(ratios, (0.1, 0.5, 0.9))
    return {
        "passes": len(ratios),
        "ratio": round(estimated / true, 4),
        "median": round(middle, 4),
        "p10": round(low, 4),
        "p90": round(high, 4),
        "weighted_mean": round(sum(plain) / len(plain), 4),
        "covered": round(sum(inside) / len(inside), 4),
    }


def _interval(draws: Sequence[GateDraw], samples: int) -> dict[str, tuple[float, float]]:
    """Return the gate's recall by share of USD, as 95 % intervals over resampled tasks."""
    tasks = sorted({step.task for draw in draws for step in draw.steps})
    there = Counter(step.task for draw in draws for step in draw.steps if step.good)
    rng, out = random.Random(0), dict[str, tuple[float, float]]()
    drawn = [rng.choices(tasks, k=len(tasks)) for _ in range(samples)]
    for share in SHARES:
        got: Counter[str] = Counter()
        for number, draw in enumerate(draws):
            got.update(run_gate_pass(draw.steps, StepSelection(), share, 1000 * number).found)
        ratios = [
            sum(got[task] for task in some) / max(1, sum(there[task] for task in some)) for some in drawn
        ]
        low, high = quantiles(ratios)
        out[str(share)] = (round(low, 4), round(high, 4))
    return out
