"""The figures of a gate on a table: medians over draws and seeds, and an interval over tasks."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from tracemill.evaluate.gate.gate_pass import Way, run_gate_pass
from tracemill.evaluate.gate.gate_step import (
    SHARES,
    GateStep,
    Known,
    build_gate_steps,
    learn_from_gate_steps,
    oracle_gate_scores,
    recall_area,
)
from tracemill.evaluate.gate.value_stop import compare_stops, compared_stop_beliefs
from tracemill.evaluate.table.draw_steps import Asker
from tracemill.evaluate.table.recorded_states import Table, is_recorded_in_half, is_tuning
from tracemill.evaluate.table.rules import Voters, product_label_rule
from tracemill.evaluate.table.scores import quantiles
from tracemill.evaluate.table.student_draws import Draw, Poll
from tracemill.teachers.core.teacher_settings import GatePolicy
from tracemill.teachers.gate.features import StepFacts

BASELINES: tuple[GatePolicy, ...] = ("all", "random", "first_k", "after_error", "entropy_only")
COLD, OFFLINE, ORACLE = "gate, cold", "gate, trained offline", "oracle"
COLD_VALUE, OFFLINE_VALUE = "gate and value, cold", "gate and value, offline"
FEWEST = 5
"""Pairs that count a draw has at least, on each half of the tasks."""
_TOTALS_AT = 0.3
_TOTALS_PASSES = 6
"""Passes by which totals are measured for each of the curves: one is noisy, and a curve takes eight."""
_RECALLS = (0.9, 0.95)


@dataclass(frozen=True, slots=True)
class GateDraw:
    """The steps of a draw on the tasks that count, and what a gate believes that was shown all steps of one
    half of the tasks: True is that of the tuning ones."""

    steps: Sequence[GateStep]
    beliefs: Mapping[bool, Known]

    def told(self, step: GateStep) -> Known:
        """What a gate believes of a step that learned from the half it is not of."""
        return compared_stop_beliefs(self.beliefs)(step)


def gate_figure_draws(
    table: Table, facts: Mapping[tuple[int, str], StepFacts], draws: Sequence[Draw], voters: Voters, half: str
) -> list[GateDraw]:
    """Those of the draws with enough pairs that count on either half of the tasks, and where asking costs
    anything. `table` has all tasks; `half` is the one that counts."""
    rule = product_label_rule(voters)
    asker, found = Asker(Poll(table), rule), list[GateDraw]()
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
    """Of each way to choose the recall of correct pairs by share of the USD, its area, how much of the area
    between random and oracle, and the share of the USD at 90 and 95 % recall: of the baselines, a gate from
    a cold start, one trained offline on the other half of the tasks, and the oracle. Of the gate also how
    near its estimated totals come. A baseline that the table has nothing for is left out."""
    out: dict[str, Any] = {"draws": len(draws), "seeds": seeds, "shares": list(SHARES)}
    if not draws or not seeds:
        return out | {"ways": {}}
    sure = any(step.facts.entropy is not None for draw in draws for step in draw.steps)
    named: dict[str, GatePolicy] = {name: name for name in BASELINES if sure or name != "entropy_only"}
    curves = {name: _curves(draws, policy, seeds) for name, policy in named.items()}
    for value, cold, offline in ((False, COLD, OFFLINE), (True, COLD_VALUE, OFFLINE_VALUE)):
        curves[cold] = _curves(draws, "voi", seeds, value=value)
        curves[offline] = _curves(draws, "voi", seeds, value=value, offline=True)
    curves[ORACLE] = [oracle_gate_scores(draw.steps) for draw in draws for _ in range(seeds)]
    chance, best = ([recall_area(curve) for curve in curves[name]] for name in ("random", ORACLE))
    out["ways"] = {name: _row(found, chance, best) for name, found in curves.items()}
    out["ways"][COLD]["recall_interval"] = _interval(draws, samples)
    out["between"] = compare_stops([(draw.steps, draw.told) for draw in draws])
    return out | {"totals": _totals(draws, seeds), "totals_value": _totals(draws, seeds, value=True)}


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
    draws: Sequence[GateDraw], policy: GatePolicy, seeds: int, offline: bool = False, value: bool = False
) -> list[list[float]]:
    """A curve for every draw and seed."""
    found: list[list[float]] = []
    for number, draw in enumerate(draws):
        way = Way(policy, draw.told if offline else None, value)
        for seed in range(seeds):
            found.append(
                [run_gate_pass(draw.steps, way, share, 1000 * number + seed).good for share in SHARES]
            )
    return found


def _usd_at(recalls: Sequence[float], wanted: float) -> float | None:
    """The share of the USD at which a curve reaches a recall, between its points by straight lines."""
    points = [(0.0, 0.0), *zip(SHARES, recalls, strict=True), (1.0, 1.0)]
    for (a, low), (b, high) in pairwise(points):
        if low < wanted <= high:
            return round(a + (b - a) * (wanted - low) / (high - low), 4)
    return None


def _totals(draws: Sequence[GateDraw], seeds: int, value: bool = False) -> dict[str, float]:
    """Estimated pairs of all steps over the true number, at 30 % of the USD; of the full vote where asking
    stops by value, else of tiered asking."""
    ratios, plain, inside = list[float](), list[float](), list[bool]()
    estimated = true = 0.0
    for number, draw in enumerate(draws):
        truth = sum(step.pair if value else step.tiered_pair for step in draw.steps)
        for seed in range(seeds * _TOTALS_PASSES):
            totals = run_gate_pass(draw.steps, Way(value=value), _TOTALS_AT, 1000 * number + seed).totals
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
    """95 % interval over tasks of the recall of the gate, of all draws together at one seed."""
    tasks = sorted({step.task for draw in draws for step in draw.steps})
    there = Counter(step.task for draw in draws for step in draw.steps if step.good)
    rng, out = random.Random(0), dict[str, tuple[float, float]]()
    drawn = [rng.choices(tasks, k=len(tasks)) for _ in range(samples)]
    for share in SHARES:
        got: Counter[str] = Counter()
        for number, draw in enumerate(draws):
            got.update(run_gate_pass(draw.steps, Way(), share, 1000 * number).found)
        ratios = [
            sum(got[task] for task in some) / max(1, sum(there[task] for task in some)) for some in drawn
        ]
        low, high = quantiles(ratios)
        out[str(share)] = (round(low, 4), round(high, 4))
    return out
