"""The gate's weights in the workspace: learned from what was asked, frozen for a batch, kept by version.

`decisions/gate/<version>.json` holds the weights of each version that decided anything, and
`decisions/gate/current.json` names the newest. They are made from the tables alone, so that losing them loses
nothing; the one run that holds the workspace writes them.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import orjson

from tracemill.agreement.voting.early_stop import AGREED
from tracemill.flows.labeling.vote_policy import ASKED as HEARD
from tracemill.records.identity import digest
from tracemill.records.reply import Decision
from tracemill.records.storage.atomic_files import write_json
from tracemill.records.storage.table_rows import decisions_from_table, votes_from_table
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.gate.gate_decisions import TAKEN
from tracemill.teachers.gate.pair_model import Belief, Row, learn_pair_model
from tracemill.teachers.gate.value_stages import Stages, price_that_keeps, value_stage_of
from tracemill.teachers.gate.value_stop import NOT_WORTH_ON
from tracemill.teachers.planning.schedule import FULL, NOT_NEEDED

UNTOLD = frozenset({"too_few_votes", "student_did_nothing"})
"""Verdicts that say nothing of whether a pair was to be had."""
NO_STAGES = Stages()
_MOST_ROWS = 50_000
_EXPECTED_STEPS = 50


class Experience:
    """The steps that were asked and what came of them, by step id: each counts once, whoever asked."""

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}
        self._between: dict[str, list[Decision]] = {}
        self._heard: dict[tuple[str, str], bool] = {}
        self._asked: dict[str, list[int]] = {}

    @classmethod
    def of(cls, work: Workspace) -> "Experience":
        """What the tables of a workspace hold."""
        made, verdicts = cls(), dict[str, str]()
        for table in work.current("votes"):
            verdicts |= {step.step_id: step.verdict for step in votes_from_table(table)}
        for table in work.current("decisions"):
            made.add(decisions_from_table(table), verdicts)
        return made

    def add(self, decisions: Iterable[Decision], verdicts: Mapping[str, str]) -> None:
        """The steps among these that were asked and have a verdict, or ended before they could have one."""
        steps: dict[str, list[Decision]] = {}
        for decision in decisions:
            if decision.outcome == FULL:
                continue
            if decision.reason in TAKEN and (decision.outcome == HEARD or NOT_NEEDED in decision.outcome):
                self._hear(decision.step_id, decision.teacher, decision.outcome == HEARD)
            if decision.verdict == "ask" and decision.features:
                steps.setdefault(decision.step_id, []).append(decision)
        for step_id, rows in steps.items():
            self._take(step_id, rows, verdicts.get(step_id, ""))

    def _take(self, step_id: str, rows: Sequence[Decision], verdict: str) -> None:
        """One step. Where asking ended by value it counts as what was believed then, where the first teacher
        agreed with the student as no pair."""
        ended = has_early_end(rows)
        if ended is None and (not verdict or verdict in UNTOLD):
            return
        label = float(verdict == "pair") if ended is None else ended
        self._rows[step_id] = (rows[0].features, label)
        self._between.pop(step_id, None)
        looks = sorted((row for row in rows if row.heard), key=lambda row: value_stage_of(row.heard))
        if ended is None and looks:
            self._between[step_id] = looks

    def _hear(self, step_id: str, teacher: str, heard: bool) -> None:
        """Counts a step once, as it was heard last."""
        counts = self._asked.setdefault(teacher, [0, 0])
        before = self._heard.get((step_id, teacher))
        counts[0] += heard - bool(before)
        counts[1] += before is None
        self._heard[step_id, teacher] = heard

    def belief(self) -> Belief:
        """What follows from it."""
        some = sorted(self._rows)[-_MOST_ROWS:]
        return learn_pair_model(self._rows[step_id] for step_id in some)

    def stages(self) -> Stages:
        """What follows from it for stopping between teachers."""
        rows: dict[int, list[Row]] = {}
        for step_id in sorted(self._between)[-_MOST_ROWS:]:
            for look in self._between[step_id]:
                words, label = (*look.features, *look.heard), self._rows[step_id][1]
                rows.setdefault(value_stage_of(look.heard), []).append((words, label))
        return Stages.learn({stage: rows.get(stage, []) for stage in range(1, max(rows, default=0) + 1)})

    def price(self, stages: Stages, keep: float) -> float:
        """The price at which stopping by value keeps a share of the pairs of the steps that were asked to
        the end."""
        chains: list[list[tuple[float, float, float]]] = []
        for looks in self._between.values():
            beliefs = [
                stages.probability(look.features, look.heard, value_stage_of(look.heard)) for look in looks
            ]
            chains.append(
                [
                    (belief, look.utility or 0.0, look.to_go_usd or 0.0)
                    for belief, look in zip(beliefs, looks, strict=True)
                    if belief is not None
                ]
            )
        return price_that_keeps(chains, keep)

    def share(self, teacher: str, expected: float) -> float:
        """How often a teacher is asked where a step is; `expected` before anything is known of it."""
        heard, steps = self._asked.get(teacher, (0, 0))
        return (heard + _EXPECTED_STEPS * expected) / (steps + _EXPECTED_STEPS)


def gate_weights_folder(work: Workspace) -> Path:
    """Where the weights are. `tracemill forget` removes it: they were learned from what is to be forgotten
    too, and the next run learns them anew from the tables."""
    return work.root / "decisions" / "gate"


def has_early_end(rows: Iterable[Decision]) -> float | None:
    """The probability of a pair that is left at a step which asking gave up before its label was certain, by
    value or because the first teacher agreed with the student; None for any other step."""
    for row in rows:
        if row.outcome == f"{NOT_NEEDED}: {NOT_WORTH_ON}" and row.heard_verdict == "stop":
            return row.heard_belief or 0.0
        if row.outcome == f"{NOT_NEEDED}: {AGREED}":
            return 0.0
    return None


def gate_weights_version(belief: Belief, stages: Stages) -> str:
    """The version of weights: of the gate's, and of those between teachers where there are any."""
    return digest(belief.version, stages.version, size=4) if stages.beliefs else belief.version


def keep_weights(work: Workspace, belief: Belief, stages: Stages = NO_STAGES) -> str:
    """Write the weights under their version and make them the current ones; gives the version."""
    folder, version = gate_weights_folder(work), gate_weights_version(belief, stages)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{version}.json"
    if not path.exists():
        write_json(path, {"version": version, **belief.to_json(), "stages": stages.to_json()})
    write_json(folder / "current.json", {"version": version})
    return version


def read_gate_stages(work: Workspace, version: str) -> Stages | None:
    """What weights of a version hold for stopping between teachers; None where they are gone."""
    try:
        value = orjson.loads((gate_weights_folder(work) / f"{version}.json").read_bytes())
        return Stages.from_json(value["stages"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
