"""Keep the weights of the gate in the workspace, by version.

`decisions/gate/<version>.json` holds the weights of each version that decided anything, and
`decisions/gate/current.json` names the newest. They are made from the tables alone, so that losing them loses
nothing; the one run that holds the workspace writes them.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tracemill.agreement.voting.early_stop import AGREED
from tracemill.flows.labeling.vote_policy import ASKED as HEARD
from tracemill.records.reply import AskDecision
from tracemill.records.storage.atomic_files import write_json
from tracemill.records.storage.table_rows import decisions_from_table, votes_from_table
from tracemill.records.storage.workspace import Workspace
from tracemill.teachers.gate.gate_decisions import WORTH
from tracemill.teachers.gate.pair_model import PairModel, Row, learn_pair_model
from tracemill.teachers.planning.schedule import FULL, NOT_NEEDED

UNTOLD = frozenset({"too_few_votes", "student_did_nothing"})
"""Verdicts that do not tell whether the step would have given a pair."""
_MOST_ROWS = 50_000
_EXPECTED_STEPS = 50


class GateTrainingSet:
    """The training set of the gate: features of each step that was asked, and whether it gave a pair.

    A step id occurs once, with its last decisions.
    """

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}
        self._heard: dict[tuple[str, str], bool] = {}
        self._asked: dict[str, list[int]] = {}

    @classmethod
    def of(cls, work: Workspace) -> "GateTrainingSet":
        """Read the decisions and votes of a workspace."""
        made, verdicts = cls(), dict[str, str]()
        for table in work.current("votes"):
            verdicts |= {step.step_id: step.verdict for step in votes_from_table(table)}
        for table in work.current("decisions"):
            made.add(decisions_from_table(table), verdicts)
        return made

    def add(self, decisions: Iterable[AskDecision], verdicts: Mapping[str, str]) -> None:
        """Add the steps that were asked and have a verdict, or at which asking ended early without one."""
        steps: dict[str, list[AskDecision]] = {}
        for decision in decisions:
            if decision.outcome == FULL:
                continue
            if decision.reason == WORTH and (decision.outcome == HEARD or NOT_NEEDED in decision.outcome):
                self._note_answer(decision.step_id, decision.teacher, decision.outcome == HEARD)
            if decision.verdict == "ask" and decision.features:
                steps.setdefault(decision.step_id, []).append(decision)
        for step_id, rows in steps.items():
            self._take(step_id, rows, verdicts.get(step_id, ""))

    def _take(self, step_id: str, rows: Sequence[AskDecision], verdict: str) -> None:
        """Add one step; asking that ended since the first teacher agreed with the student is no pair."""
        if ended_in_agreement(rows):
            self._rows[step_id] = (rows[0].features, 0.0)
        elif verdict and verdict not in UNTOLD:
            self._rows[step_id] = (rows[0].features, float(verdict == "pair"))

    def _note_answer(self, step_id: str, teacher: str, heard: bool) -> None:
        """Record whether a teacher answered at a step; a later record replaces an earlier one."""
        counts = self._asked.setdefault(teacher, [0, 0])
        before = self._heard.get((step_id, teacher))
        counts[0] += heard - bool(before)
        counts[1] += before is None
        self._heard[step_id, teacher] = heard

    def belief(self) -> PairModel:
        """Fit the gate's model of pairs to at most `_MOST_ROWS` steps."""
        some = sorted(self._rows)[-_MOST_ROWS:]
        return learn_pair_model(self._rows[step_id] for step_id in some)

    def share(self, teacher: str, expected: float) -> float:
        """Return the share (0 to 1) of the selected steps at which a teacher is asked.

        `expected` is the prior share, weighted as `_EXPECTED_STEPS` steps.
        """
        heard, steps = self._asked.get(teacher, (0, 0))
        return (heard + _EXPECTED_STEPS * expected) / (steps + _EXPECTED_STEPS)


def gate_weights_folder(work: Workspace) -> Path:
    """Return the folder of the weights.

    `tracemill privacy forget` removes it, since the weights were learned from the forgotten data too. The
    next run fits them again from the tables.
    """
    return work.root / "decisions" / "gate"


def ended_in_agreement(rows: Iterable[AskDecision]) -> bool:
    """Return whether asking at a step ended because the first teacher agreed with the student."""
    return any(row.outcome == f"{NOT_NEEDED}: {AGREED}" for row in rows)


def keep_weights(work: Workspace, belief: PairModel) -> str:
    """Store the weights under their version, make them the current ones, and return the version."""
    folder, version = gate_weights_folder(work), belief.version
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{version}.json"
    if not path.exists():
        write_json(path, {"version": version, **belief.to_json()})
    write_json(folder / "current.json", {"version": version})
    return version
