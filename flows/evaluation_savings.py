"""What early stopping, prompt caches and a gate save, each alone and together, and what they lose."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agreement.settling import Stop
from flows.evaluation_scores import INTERVAL
from flows.evaluation_steps import WAYS, AskedStep

_FIELDS = ("calls", "usd", "pairs", "good", "pairs_kept", "good_kept")
Chooser = Callable[[Sequence[AskedStep]], Sequence[bool]]
"""Which of the steps of a draw a gate asks."""


@dataclass(slots=True)
class Saved:
    """One way to ask, by task and summed over draws, [tasks, fields]: calls, USD, pairs and correct pairs;
    and how many of the pairs and correct pairs of asking every teacher everywhere are among them."""

    stop: Stop
    cached: bool
    gate: str
    sums: NDArray[np.float64]


class Savings:
    """Adds up draws, each asked in every way."""

    def __init__(self, tasks: Sequence[str], gates: Mapping[str, Chooser] | None = None) -> None:
        """`gates` by name; none of them is every step."""
        self._places = {task: at for at, task in enumerate(tasks)}
        self._gates = gates or {}
        self.ways = [
            Saved(stop, cached, gate, np.zeros((len(tasks), len(_FIELDS))))
            for gate in ("", *self._gates)
            for cached in (False, True)
            for stop in WAYS
        ]

    def add(self, steps: Sequence[AskedStep]) -> None:
        """The steps of one more draw."""
        asked: dict[str, Sequence[bool]] = {"": [True] * len(steps)}
        asked |= {name: gate(steps) for name, gate in self._gates.items()}
        for way in self.ways:
            for step, taken in zip(steps, asked[way.gate], strict=True):
                if taken:
                    score = step.kept[way.stop]
                    way.sums[self._places[step.task]] += (
                        step.heard[way.stop],
                        step.usd(way.stop, way.cached),
                        score is not None,
                        score == "good",
                        score is not None and step.pair is not None,
                        score == "good" and step.pair == "good",
                    )

    def rows(self, weights: NDArray[np.float64]) -> list[dict[str, Any]]:
        """A row a way: its sums, how many times fewer calls and USD than asking every teacher everywhere
        without a cache, and the shares of pairs and correct pairs kept, each with its interval."""
        base = self.ways[0].sums
        return [_row(way, base, weights) for way in self.ways]


def _row(way: Saved, base: NDArray[np.float64], weights: NDArray[np.float64]) -> dict[str, Any]:
    calls, usd, pairs, good, *_ = way.sums.sum(axis=0)
    row: dict[str, Any] = {"stop": way.stop, "cache": way.cached, "gate": way.gate or "none"}
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
        spread = sorted(value for value in drawn if value is not None)
        ends = [int(share * (len(spread) - 1)) for share in INTERVAL]
        row[f"{name}_interval"] = [spread[end] for end in ends] if spread else None
    return row


def _share(over: float, under: float) -> float | None:
    return round(float(over / under), 4) if under else None
