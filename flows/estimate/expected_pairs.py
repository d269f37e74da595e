"""Expect how many pairs a share of the full cost gives, by what the gate believes of every step."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.labeling.gate_run import Gate
from tracemill.flows.labeling.gate_weights import UNTOLD
from tracemill.flows.labeling.label_shard import ShownTrace
from tracemill.records.storage.table_rows import votes_from_table
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_protocol import Teacher
from tracemill.teachers.gate.budget_pacing import paced_choice_share, paced_explored_share
from tracemill.teachers.gate.pair_model import PairModel, learn_pair_model
from tracemill.teachers.gate.pair_value import ValuedStep, score_pair_values
from tracemill.teachers.gate.step_costs import PricedTeacher

SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True)
class ExpectedPairs:
    """Expected pairs and USD at `share` of the full cost; `of_all` is the share of all pairs."""

    share: float
    usd: float
    pairs: float
    of_all: float

    def to_json(self) -> dict[str, Any]:
        """Return plain values, rounded."""
        return {
            "share": self.share,
            "usd": round(self.usd, 6),
            "pairs": round(self.pairs, 1),
            "of_all": round(self.of_all, 3),
        }


class PairForecast:
    """A forecast of pairs from the gate's scores of the steps of a workspace."""

    def __init__(self, settings: RunSettings, work: Workspace, teachers: Sequence[Teacher]) -> None:
        self._settings = settings
        priced = [PricedTeacher(each.name, each.family, each.price) for each in teachers]
        self._gate = Gate(settings, work, priced)
        self._steps: list[ValuedStep] = []
        self._verdicts: dict[str, str] = {}
        for table in work.current("votes"):
            self._verdicts |= {step.step_id: step.verdict for step in votes_from_table(table)}

    def belief(self) -> PairModel:
        """Return the gate's pair model fitted to every vote of the workspace."""
        rows = [
            (step.facts.words, float(verdict == "pair"))
            for step in self._steps
            if (verdict := self._verdicts.get(step.facts.step_id, "")) and verdict not in UNTOLD
        ]
        return learn_pair_model(rows)

    def add(self, questions: Sequence[Question], shown: Sequence[ShownTrace]) -> None:
        """Add the steps of a batch."""
        self._steps += self._gate.value(questions, shown)

    def usd_of(self, steps: Collection[str]) -> float:
        """Return the expected cost of asking at these steps."""
        return sum(step.expected_usd for step in self._steps if step.facts.step_id in steps)

    def by_share(self) -> tuple[ExpectedPairs, ...]:
        """Return the expected pairs at each share of the cost: explored steps, then the best ones."""
        belief = self.belief()
        facts, costs = [step.facts for step in self._steps], [step.expected_usd for step in self._steps]
        steps = score_pair_values(facts, [belief.probability(each.words) for each in facts], costs)
        total_usd, all_pairs = sum(costs), sum(step.belief for step in steps)
        if not total_usd or not all_pairs:
            return ()
        ordered = sorted(steps, key=lambda step: (-step.score, step.facts.step_id))
        found: list[ExpectedPairs] = []
        for share in sorted({*SHARES, self._settings.gate.share}):
            explore = paced_explored_share(self._settings.gate.explore, share)
            room, usd, best = paced_choice_share(share, explore) * total_usd, 0.0, 0.0
            for step in ordered:
                if usd + step.expected_usd > room * (1 + 1e-9):
                    break
                usd, best = usd + step.expected_usd, best + step.belief
            pairs = explore * all_pairs + (1 - explore) * best
            found.append(ExpectedPairs(share, share * total_usd, pairs, pairs / all_pairs))
        return tuple(found)
