"""Measure what early stopping, prompt caches and a gate save and lose, alone and together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracemill.agreement.voting.early_stop import Stop
from tracemill.evaluate.table.draw_steps import WAYS, AskedStep
from tracemill.evaluate.table.scores import quantiles

_FIELDS = ("calls", "usd", "pairs", "good", "pairs_kept", "good_kept")
NO_GATE = "none"
StepChooser = Callable[[Sequence[AskedStep]], Sequence[bool]]
"""(steps of a draw) to whether each is asked."""


@dataclass(slots=True)
class SavingsSums:
    """Results of one way to ask: sums over draws by task, [tasks, fields].

    Fields are calls, USD, pairs, correct pairs, and the number of both that asking every teacher at every
    step also finds.
    """

    stop: Stop
    cached: bool
    gate: str
    sums: NDArray[np.float64]


class Savings:
    """Sums over draws, for each way to ask."""

    def __init__(self, tasks: Sequence[str], gates: Mapping[str, StepChooser] | None = None) -> None:
        """Start without draws; `gates` are step choosers by name."""
        self._places = {task: at for at, task in enumerate(tasks)}
        self._gates: dict[str, StepChooser] = {NO_GATE: lambda steps: [True] * len(steps), **(gates or {})}
        self.ways = [
            SavingsSums(stop, cached, gate, np.zeros((len(tasks), len(_FIELDS))))
            for cached in (False, True)
            for gate in self._gates
            for stop in WAYS
        ]

    def add(self, steps: Sequence[AskedStep]) -> None:
        """Add the steps of a draw."""
        chosen = {gate: choose(steps) for gate, choose in self._gates.items()}
        for way in self.ways:
            for step, is_asked in zip(steps, chosen[way.gate], strict=True):
                if is_asked:
                    self._count(way, step)

    def _count(self, way: SavingsSums, step: AskedStep) -> None:
        replies = step.replies[: step.asked[way.stop]]
        score = step.kept[way.stop]
        way.sums[self._places[step.task]] += (
            len(replies),
            sum(reply.cached_usd if way.cached else reply.usd for reply in replies),
            score is not None,
            score == "good",
            score is not None and step.pair is not None,
            score == "good" and step.pair == "good",
        )

    def rows(self, weights: NDArray[np.float64]) -> list[dict[str, Any]]:
        """Return a row for each way to ask: sums, and ratios to asking everywhere without a cache.

        Each ratio has an interval over resampled tasks, whose counts are `weights`.
        """
        base = self.ways[0].sums
        return [_row(way, base, weights) for way in self.ways]


def _row(way: SavingsSums, base: NDArray[np.float64], weights: NDArray[np.float64]) -> dict[str, Any]:
    calls, usd, pairs, good, *_ = way.sums.sum(axis=0)
    row: dict[str, Any] = {"stop": way.stop, "cache": way.cached, "gate": way.gate}
    row |= {"calls": int(calls), "usd": round(float(usd), 6), "pairs": int(pairs), "good": int(good)}
    shares = {
        "fewer_calls": (base[:, 0], way.sums[:, 0]),
        "cheaper": (base[:, 1], way.sums[:, 1]),
        "pairs_kept": (way.sums[:, 4], base[:, 2]),
        "good_kept": (way.sums[:, 5], base[:, 3]),
    }
    for name, (over, under) in shares.items():
        row[name] = _share(over.sum(), under.sum())
        drawn = [_share(one, other) for one, other in zip(weights @ over, weights @ under, strict=True)]
        spread = [value for value in drawn if value is not None]
        row[f"{name}_interval"] = [round(end, 4) for end in quantiles(spread)] if spread else None
    return row


def _share(over: float, under: float) -> float | None:
    return round(float(over / under), 4) if under else None
