"""What stopping between teachers saves, by certainty, by the first teacher's agreement or by value, and which
steps a gate chooses beside it: as ways to save, and as a curve of correct pairs by USD."""

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from tracemill.evaluate.gate.gate_pass import Way, run_gate_pass, stop_by_value
from tracemill.evaluate.gate.gate_step import (
    THRESHOLD,
    GateStep,
    Known,
    build_gate_steps,
    tiered_gate_step_shares,
)
from tracemill.evaluate.table.draw_steps import AskedStep
from tracemill.evaluate.table.recorded_states import is_tuning
from tracemill.evaluate.table.savings import Chooser
from tracemill.teachers.gate.features import StepFacts

GATE, NO_GATE = "voi, half", "none"
"""What the gate is called among the ways to save; it may spend half of what tiered asking costs."""
GATE_SHARE = 0.5
VALUE_COLD, VALUE_OFFLINE = "value, cold", "value, offline"
RECALLS = (0.9, 0.95, 0.98)
Told = Callable[[GateStep], Known]
"""What is believed of a step."""
_PRICES = 80
_LOWEST, _HIGHEST = -7.0, 1.5
"""Powers of e of the prices of a curve, in pairs per mean cost of a step."""


def build_compared_stops(
    facts: Mapping[tuple[int, str], StepFacts],
    rewarded: bool,
    told: Told,
) -> dict[tuple[str, str], Chooser]:
    """By way to stop, "" for each of the plain ones, and gate: how many answers a draw asks for at each step.
    The gate and the stop start cold, or go by what `told` says of a step."""
    ways = {
        ("", GATE): (Way(), GATE_SHARE),
        (VALUE_COLD, NO_GATE): (Way("all", value=True), math.inf),
        (VALUE_COLD, GATE): (Way(value=True), GATE_SHARE),
        (VALUE_OFFLINE, NO_GATE): (Way("all", told, value=True), math.inf),
        (VALUE_OFFLINE, GATE): (Way(told=told, value=True), GATE_SHARE),
    }

    def chooser(way: Way, share: float) -> Chooser:
        def choose(steps: Sequence[AskedStep]) -> Sequence[int]:
            if not steps:
                return []
            met = build_gate_steps(steps, facts, rewarded)
            asked = run_gate_pass(met, way, share, 0).asked
            return [asked.get(step.facts.step_id, 0) for step in met]

        return choose

    return {name: chooser(*way) for name, way in ways.items()}


def compare_stops(
    draws: Sequence[tuple[Sequence[GateStep], Told]],
) -> dict[str, Any]:
    """Of each way to stop at every step, medians over draws: the USD as a share of asking all teachers and of
    tiered asking, and the recall of the correct pairs that asking all makes. `curve` has, for a stop by value
    trained offline at each of many prices, which share of the USD the cheapest one takes that keeps 90, 95
    and 98 % of the correct pairs."""
    rows: dict[str, list[tuple[float, float, float]]] = {}
    curves: list[list[float | None]] = []
    for number, (steps, told) in enumerate(draws):
        full = sum(step.full_usd for step in steps)
        tiered = sum(step.tiered_usd for step in steps)
        good = max(sum(step.good for step in steps), 1)
        counts = {
            "lossless": [step.certain for step in steps],
            "tiered": [step.agreed for step in steps],
            VALUE_COLD: _asked(steps, Way("all", value=True), number),
            VALUE_OFFLINE: _asked(steps, Way("all", told, value=True), number),
        }
        for name, answers in counts.items():
            usd, found = _summed(steps, answers)
            rows.setdefault(name, []).append((usd / full, usd / tiered, found / good))
        curves.append(_curve(steps, told, full, good))
    return {
        "ways": {
            name: dict(
                zip(
                    ("of_all", "of_tiered", "recall"),
                    (round(median(values), 4) for values in zip(*found, strict=True)),
                    strict=True,
                )
            )
            for name, found in rows.items()
        },
        "curve": {str(recall): _median([curve[at] for curve in curves]) for at, recall in enumerate(RECALLS)},
    }


def _asked(steps: Sequence[GateStep], way: Way, seed: int) -> list[int]:
    asked = run_gate_pass(steps, way, math.inf, seed).asked
    return [asked.get(step.facts.step_id, 0) for step in steps]


def _summed(steps: Sequence[GateStep], answers: Sequence[int]) -> tuple[float, int]:
    usd = sum(step.usd(count) for step, count in zip(steps, answers, strict=True))
    found = sum(step.found(count)[1] and step.good for step, count in zip(steps, answers, strict=True))
    return usd, found


def _curve(steps: Sequence[GateStep], told: Told, full: float, good: int) -> list[float | None]:
    """The least share of the USD of asking all at which each recall is reached; None where none does."""
    shares = tiered_gate_step_shares(max(len(step.calls_usd) for step in steps), THRESHOLD)
    unit = len(steps) / full
    points: list[tuple[float, float]] = []
    for at in range(_PRICES):
        price = unit * math.exp(_LOWEST + (_HIGHEST - _LOWEST) * at / (_PRICES - 1))
        answers = [stop_by_value(step, told(step).stages, price, shares)[0] for step in steps]
        usd, found = _summed(steps, answers)
        points.append((usd / full, found / good))
    return [min((usd for usd, found in points if found >= recall), default=None) for recall in RECALLS]


def _median(values: Sequence[float | None]) -> float | None:
    known = [math.inf if value is None else value for value in values]
    middle = median(known) if known else math.inf
    return None if math.isinf(middle) else round(middle, 4)


def compared_stop_beliefs(known: Mapping[bool, Known]) -> Told:
    """What is believed of a step by what was learned from the half of the tasks that it is not of."""
    return lambda step: known[not is_tuning(step.task)]
