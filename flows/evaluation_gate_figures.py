"""The figures of a gate on a table: medians over draws and seeds, and an interval over tasks."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from flows.evaluate_gate import SHARES, GateStep, area, gate_steps, oracle, pass_over, trained
from flows.evaluation_draws import Poll, draws_of
from flows.evaluation_gate_facts import facts_in
from flows.evaluation_rules import PRODUCT, Voters, rules
from flows.evaluation_steps import Asker
from flows.evaluation_table import in_half, read_table
from teachers.settings import GatePolicy

POLICIES: tuple[GatePolicy, ...] = ("random", "first_k", "after_error", "voi")
FEWEST = 5
"""Correct pairs a draw has at least, on each half of the tasks."""
_TOTALS_AT = 0.3
_RECALLS = (0.9, 0.95)


@dataclass(frozen=True, slots=True)
class GateDraw:
    """The steps of a draw on the tasks that count, and on those an offline-trained gate learned from."""

    steps: Sequence[GateStep]
    learned_from: Sequence[GateStep]


def gate_draws(path: Path, half: str, voters: Voters, most: int, stronger: bool = True) -> list[GateDraw]:
    """The draws of a table with enough correct pairs; `half` is the one that counts, `stronger` keeps those
    whose teachers are at least as strong as the student. Raises as `read_table`."""
    table = read_table(path)
    facts = facts_in(path, table)
    asker = Asker(Poll(table), next(r for r in rules() if r.name == PRODUCT and r.voters == voters))
    found: list[GateDraw] = []
    for draw in draws_of(table, most, 0)[0]:
        if stronger and not draw.stronger:
            continue
        steps = gate_steps(asker.steps(draw), facts, asker.rule.policy.threshold)
        counting = [step for step in steps if in_half(step.task, half)]
        other = [step for step in steps if not in_half(step.task, half)]
        if all(sum(step.good for step in part) >= FEWEST for part in (counting, other)):
            found.append(GateDraw(counting, other))
    return found


def gate_figures(draws: Sequence[GateDraw], seeds: int, samples: int = 200) -> dict[str, Any]:
    """Per policy, and for an offline-trained gate and the oracle: recall of correct pairs by share of USD,
    area, how much of the area between random and oracle, the share of USD at 90 and 95 % recall; and for
    the gate how near its estimated totals come."""
    curves = {name: _curves(draws, name, seeds) for name in (*POLICIES, "offline")}
    best = [oracle(draw.steps) for draw in draws for _ in range(seeds)]
    chance = [area(curve) for curve in curves["random"]]
    out: dict[str, Any] = {"draws": len(draws), "seeds": seeds, "shares": SHARES}
    for name, found in (*curves.items(), ("oracle", best)):
        areas = [area(curve) for curve in found]
        gaps = [(a - r) / (area(o) - r) for a, r, o in zip(areas, chance, best, strict=True) if area(o) > r]
        recalls = [round(median(values), 4) for values in zip(*found, strict=True)]
        out[name] = {
            "recall": recalls,
            "area": round(median(areas), 4),
            "of_gap": round(median(gaps), 4),
            "usd_at_recall": {str(recall): _usd_at(recalls, recall) for recall in _RECALLS},
        }
    out["totals"] = _totals(draws, seeds)
    out["voi"]["recall_interval"] = _interval(draws, samples)
    return out


def _curves(draws: Sequence[GateDraw], name: str, seeds: int) -> list[list[float]]:
    """A curve for every draw and seed."""
    found: list[list[float]] = []
    for number, draw in enumerate(draws):
        belief = trained(draw.learned_from) if name == "offline" else None
        policy: GatePolicy = "voi" if belief else next(p for p in POLICIES if p == name)
        for seed in range(seeds):
            place = 1000 * number + seed
            found.append([pass_over(draw.steps, policy, share, place, belief).good for share in SHARES])
    return found


def _usd_at(recalls: Sequence[float], wanted: float) -> float | None:
    """The share of the USD at which a curve reaches a recall, between its points by straight lines."""
    points = [(0.0, 0.0), *zip(SHARES, recalls, strict=True), (1.0, 1.0)]
    for (a, low), (b, high) in pairwise(points):
        if low < wanted <= high:
            return round(a + (b - a) * (wanted - low) / (high - low), 4)
    return None


def _totals(draws: Sequence[GateDraw], seeds: int) -> dict[str, float]:
    """Estimated pairs of all steps over the true number, at 30 % of the USD."""
    ratios, plain, inside = list[float](), list[float](), list[bool]()
    estimated = true = 0.0
    for number, draw in enumerate(draws):
        truth = sum(step.pair for step in draw.steps)
        for seed in range(seeds):
            totals = pass_over(draw.steps, "voi", _TOTALS_AT, 1000 * number + seed).totals
            ratios.append(totals.estimate / truth)
            plain.append(totals.weighted / truth)
            inside.append(totals.low <= truth <= totals.high)
            estimated, true = estimated + totals.estimate, true + truth
    middle = len(ratios) // 10
    ordered = sorted(ratios)
    return {
        "ratio": round(estimated / true, 4),
        "median": round(median(ratios), 4),
        "p10": round(ordered[middle], 4),
        "p90": round(ordered[-1 - middle], 4),
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
            got.update(pass_over(draw.steps, "voi", share, 1000 * number).found)
        ratios = sorted(
            sum(got[task] for task in some) / max(1, sum(there[task] for task in some)) for some in drawn
        )
        out[str(share)] = (
            round(ratios[int(0.025 * samples)], 4),
            round(ratios[int(0.975 * samples) - 1], 4),
        )
    return out
