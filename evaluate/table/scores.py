"""Score the pairs of each rule over many draws, with intervals from resampled tasks."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracemill.evaluate.table.rules import VoteRule
from tracemill.evaluate.table.student_draws import StudentDraw, TableVotes, may_be_asked

SCORES = ("good", "tie", "bad", "unscored")
INTERVAL = (0.025, 0.975)
Counts = NDArray[np.float64]


@dataclass(slots=True)
class RuleScores:
    """Scores of one rule over the draws.

    `counts` is [draws, tasks, scores]; `operations` counts (chosen, rejected, score) over all draws.
    """

    rule: VoteRule
    counts: Counts
    operations: Counter[tuple[str, str, str]] = field(default_factory=Counter)


class PairTally:
    """Sums of the pairs of every rule, draw by draw."""

    def __init__(self, poll: TableVotes, rules: Sequence[VoteRule], draws: int) -> None:
        """Start with no draw; `draws` is how many will be added."""
        self._poll = poll
        self._places = {task: at for at, task in enumerate(poll.table.tasks)}
        shape = (draws, len(self._places), len(SCORES))
        self.tallied = [RuleScores(rule, np.zeros(shape, dtype=np.float64)) for rule in rules]
        self._added = 0

    def add(self, draw: StudentDraw) -> None:
        """Add the pairs of a draw."""
        for tallied in self.tallied:
            counts = tallied.counts[self._added]
            for pair in self._poll.pairs(draw, tallied.rule):
                score = pair.score
                counts[self._places[pair.state.task], SCORES.index(score)] += 1
                tallied.operations[(*pair.operations, score)] += 1
        self._added += 1


def resample_rule_tasks(tasks: int, times: int, seed: int) -> NDArray[np.float64]:
    """Return how often each task is in each bootstrap sample: [times, tasks]."""
    drawn = np.random.default_rng(seed).multinomial(tasks, np.full(tasks, 1 / tasks), size=times)
    return drawn.astype(np.float64)


def quantile(values: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Return the quantile along the first axis without NaN; NaN where there is no number.

    Linear interpolation, definition 7 of Hyndman and Fan, Sample Quantiles, 1996.
    """
    ordered = np.sort(values, axis=0)
    last = np.maximum(np.sum(~np.isnan(values), axis=0) - 1, 0)
    place = share * last
    low = np.floor(place).astype(int)
    below, above = (
        np.take_along_axis(ordered, at[None, ...], axis=0)[0] for at in (low, np.minimum(low + 1, last))
    )
    return below + (above - below) * (place - low)


def quantiles(values: Sequence[float], shares: Sequence[float] = INTERVAL) -> list[float]:
    """Return quantiles of a list that is not empty."""
    return [float(quantile(np.array(values, dtype=np.float64), share)) for share in shares]


def ratio(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return part over whole, NaN where whole is 0."""
    return np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)


def figures(counts: Counts, weights: NDArray[np.float64]) -> dict[str, Any]:
    """Return the figures of these draws.

    Medians and 10th percentiles of precision without ties, of the useful share (good of all scored pairs) and
    of the number of pairs; each median has an interval. None if unknown.
    """
    if not len(counts):
        return {"draws": 0}
    whole = np.ones((1, counts.shape[1]))
    point, spread = _measures(counts, whole), _measures(counts, weights)
    found: dict[str, Any] = {"draws": len(counts)}
    for name, values in point.items():
        found[name] = _number(quantile(values, 0.5)[0])
        found[f"{name}_p10"] = _number(quantile(values, 0.1)[0])
        found[f"{name}_interval"] = _interval(quantile(spread[name], 0.5))
    sums = counts.sum(axis=(0, 1))
    return found | {f"all_{score}": int(sums[at]) for at, score in enumerate(SCORES)}


def _interval(medians: NDArray[np.float64]) -> list[float | None]:
    """Return the interval of the samples' medians; unknown if too many samples have no median."""
    unknown = np.isnan(medians).mean() > INTERVAL[0]
    return [None if unknown else _number(quantile(medians, share)) for share in INTERVAL]


def _measures(counts: Counts, weights: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Return each measure, [draws, samples of tasks]."""
    good, tie, bad, unscored = (counts[:, :, at] @ weights.T for at in range(len(SCORES)))
    return {
        "precision": ratio(good, good + bad),
        "useful": ratio(good, good + tie + bad),
        "pairs": good + tie + bad + unscored,
    }


def _number(value: float | NDArray[np.float64]) -> float | None:
    return None if np.isnan(value) else round(float(value), 4)


def build_rule_scores(
    poll: TableVotes,
    draws: Sequence[StudentDraw],
    tallied: Sequence[RuleScores],
    weights: NDArray[np.float64],
) -> list[dict[str, Any]]:
    """Return the figures of every rule, over its draws and over those with stronger teachers."""
    rows: list[dict[str, Any]] = []
    for each in tallied:
        able = [bool(may_be_asked(poll.table, draw, each.rule.policy)) for draw in draws]
        strong = [ok and draw.stronger for ok, draw in zip(able, draws, strict=True)]
        row: dict[str, Any] = {"rule": each.rule.name, "voters": each.rule.voters}
        for name, chosen in (("all draws", able), ("stronger teachers", strong)):
            row[name] = figures(each.counts[np.array(chosen, dtype=bool)], weights)
        rows.append(row)
    return rows


def by_operation(tallied: RuleScores) -> list[dict[str, Any]]:
    """Return a rule's pairs by chosen and rejected operation, the most frequent first."""
    cells: dict[tuple[str, str], Counter[str]] = {}
    for (chosen, rejected, score), count in tallied.operations.items():
        cells.setdefault((chosen, rejected), Counter())[score] += count
    ordered = sorted(cells.items(), key=lambda cell: (-cell[1].total(), cell[0]))
    return [
        {"chosen": chosen, "rejected": rejected, "pairs": count.total()}
        | {score: count[score] for score in SCORES}
        for (chosen, rejected), count in ordered
    ]
