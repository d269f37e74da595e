"""Count which teachers agree, from the votes of a release."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from tracemill.data_cards.model.report_model import Agreement, OperationAgreement, PairAgreement, TraceCost
from tracemill.records.identity import StepId

STUDENT = "student"
"""Key of a vote for the agent's own action, and the agent's name beside teachers."""
Vote = Mapping[str, Any]
_MOST_TRACES = 12


@dataclass(slots=True)
class VoteTally:
    """Counts over the votes of a release, step by step.

    Two votes are for one action if their keys are equal or both support the chosen action. Only the first
    vote of a teacher at a step counts.
    """

    verdicts: Counter[str] = field(default_factory=Counter)
    cast: Counter[str] = field(default_factory=Counter)
    paid_usd: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    counted_steps: int = 0
    _both: Counter[tuple[str, str]] = field(default_factory=Counter)
    _same: Counter[tuple[str, str]] = field(default_factory=Counter)
    _families: Counter[tuple[str, str]] = field(default_factory=Counter)
    _families_same: Counter[tuple[str, str]] = field(default_factory=Counter)
    _beside: Counter[str] = field(default_factory=Counter)
    _beside_same: Counter[str] = field(default_factory=Counter)
    _beside_class: Counter[str] = field(default_factory=Counter)
    _costs: dict[str, list[float]] = field(default_factory=dict)

    def step(self, step_id: str, rows: Sequence[Vote]) -> None:
        """Count the votes of one step, one row each."""
        self.steps += 1
        self.verdicts[rows[0]["verdict"]] += 1
        self._add_costs(step_id, rows)
        first: dict[str, Vote] = {}
        for row in rows:
            if row["counted"]:
                first.setdefault(row["teacher"], row)
        self.counted_steps += bool(first)
        for one, other in combinations(sorted(first.values(), key=lambda row: row["teacher"]), 2):
            self._compare(one, other)
        for row in first.values():
            pair = (row["teacher"], STUDENT)
            self._both[pair] += 1
            self._same[pair] += row["key"] == STUDENT

    def _add_costs(self, step_id: str, rows: Sequence[Vote]) -> None:
        cost = self._costs.setdefault(StepId.parse(step_id).trace_id, [0, 0, 0.0])
        cost[0] += 1
        for row in rows:
            self.cast[row["teacher"]] += row["counted"]
            self.paid_usd[row["teacher"]] += row["cost_usd"]
            cost[1] += 1
            cost[2] += row["cost_usd"]

    def _compare(self, one: Vote, other: Vote) -> None:
        same = one["key"] == other["key"] or (one["agrees"] and other["agrees"])
        pair = (one["teacher"], other["teacher"])
        self._both[pair] += 1
        self._same[pair] += same
        families = min(one["family"], other["family"]), max(one["family"], other["family"])
        self._families[families] += 1
        self._families_same[families] += same
        for vote, beside in ((one, other), (other, one)):
            self._beside[vote["operation"]] += 1
            self._beside_same[vote["operation"]] += same
            self._beside_class[vote["operation"]] += vote["operation"] == beside["operation"]

    def agreement(self) -> Agreement:
        """Return the agreement by teachers, families and operations, the most frequent operation first."""
        return Agreement(
            teachers=_pair_agreements(self._both, self._same),
            families=_pair_agreements(self._families, self._families_same),
            operations=tuple(
                OperationAgreement(
                    operation=name,
                    votes=votes,
                    same=self._beside_same[name],
                    same_class=self._beside_class[name],
                )
                for name, votes in self._beside.most_common()
            ),
        )

    def most_expensive(self, pairs: Mapping[str, int]) -> tuple[TraceCost, ...]:
        """Return the most expensive traces with their released pairs; free traces are left out."""
        by_cost = sorted(self._costs.items(), key=lambda item: (-item[1][2], item[0]))
        return tuple(
            TraceCost(trace_id=name, steps=int(steps), votes=int(votes), pairs=pairs.get(name, 0), usd=usd)
            for name, (steps, votes, usd) in by_cost[:_MOST_TRACES]
            if usd > 0
        )


def _pair_agreements(
    both: Mapping[tuple[str, str], int], same: Mapping[tuple[str, str], int]
) -> tuple[PairAgreement, ...]:
    return tuple(
        PairAgreement(one=pair[0], other=pair[1], steps=steps, same=same[pair])
        for pair, steps in sorted(both.items())
    )


def tally_votes(rows: Iterable[Vote]) -> VoteTally:
    """Tally a table of votes, in any order."""
    steps: dict[str, list[Vote]] = {}
    for row in rows:
        steps.setdefault(row["step_id"], []).append(row)
    tally = VoteTally()
    for step_id in sorted(steps):
        tally.step(step_id, steps[step_id])
    return tally
