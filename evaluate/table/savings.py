"""What early stopping, prompt caches and a gate save, each alone and together, and what they lose."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracemill.agreement.voting.early_stop import Stop
from tracemill.evaluate.table.draw_steps import WAYS, AskedStep
from tracemill.evaluate.table.scores import quantiles

_FIELDS = ("calls", "usd", "pairs", "good", "pairs_kept", "good_kept")
_PLAIN: Mapping[str, Stop] = {stop: stop for stop in WAYS}
Chooser = Callable[[Sequence[AskedStep]], Sequence[int]]
"""How many answers are asked for at each step of a draw; 0 where it is not asked at."""


@dataclass(slots=True)
class Saved:
    """One way to ask, by task and summed over draws, [tasks, fields]: calls, USD, pairs and correct pairs;
    and how many of the pairs and correct pairs of asking every teacher everywhere are among them."""

    stop: str
    cached: bool
    gate: str
    sums: NDArray[np.float64]


class Savings:
    """Adds up draws, each asked in every way."""

    def __init__(self, tasks: Sequence[str], further: Sequence[tuple[str, str]] = ()) -> None:
        """`further` are ways to ask beside the plain ones everywhere: a way to stop, "" for each of the plain
        ones, and a gate."""
        self._places = {task: at for at, task in enumerate(tasks)}
        names: list[tuple[str, str]] = [(stop, "none") for stop in WAYS]
        for stop, gate in further:
            names += [(stop, gate)] if stop else [(plain, gate) for plain in WAYS]
        self.ways = [
            Saved(stop, cached, gate, np.zeros((len(tasks), len(_FIELDS))))
            for cached in (False, True)
            for stop, gate in names
        ]

    def add(self, steps: Sequence[AskedStep], choosers: Mapping[tuple[str, str], Chooser]) -> None:
        """The steps of one more draw, and what chooses there in the further ways."""
        asked = {name: choose(steps) for name, choose in choosers.items()}
        for way in self.ways:
            plain: Stop | None = _PLAIN.get(way.stop)
            answers = asked.get(("" if plain else way.stop, way.gate), [1] * len(steps))
            for step, count in zip(steps, answers, strict=True):
                if count:
                    self._count(way, step, step.heard[plain] if plain else count, plain)

    def _count(self, way: Saved, step: AskedStep, answers: int, stop: Stop | None) -> None:
        heard = step.replies[:answers]
        score = step.kept[stop] if stop else step.found(answers)
        way.sums[self._places[step.task]] += (
            len(heard),
            sum(told.cached_usd if way.cached else told.usd for told in heard),
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
