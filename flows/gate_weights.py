"""The gate's weights in the workspace: learned from what was asked, frozen for a batch, kept by version.

`decisions/gate/<version>.json` holds the weights of each version that decided anything, and
`decisions/gate/current.json` names the newest. They are made from the tables alone, so that losing them loses
nothing; the one run that holds the workspace writes them.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from flows.voting import ASKED as HEARD
from records.files import write_json
from records.reply import Decision
from records.rows import decisions_from_table, votes_from_table
from records.workspace import Workspace
from teachers.gate import WORTH
from teachers.gate_belief import Belief, Row, learned
from teachers.schedule import NOT_NEEDED

UNTOLD = frozenset({"too_few_votes", "student_did_nothing"})
"""Verdicts that say nothing of whether a pair was to be had."""
_MOST_ROWS = 50_000
_EXPECTED_STEPS = 50


class Experience:
    """The steps that were asked and what came of them, by step id: each counts once, whoever asked."""

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}
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
        """The steps among these that were asked and have a verdict."""
        for decision in decisions:
            if decision.reason == WORTH and (decision.outcome == HEARD or NOT_NEEDED in decision.outcome):
                self._hear(decision.step_id, decision.teacher, decision.outcome == HEARD)
            verdict = verdicts.get(decision.step_id, "")
            if decision.verdict == "ask" and decision.features and verdict and verdict not in UNTOLD:
                self._rows[decision.step_id] = (decision.features, verdict == "pair")

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
        return learned(self._rows[step_id] for step_id in some)

    def share(self, teacher: str, expected: float) -> float:
        """How often a teacher is asked where a step is; `expected` before anything is known of it."""
        heard, steps = self._asked.get(teacher, (0, 0))
        return (heard + _EXPECTED_STEPS * expected) / (steps + _EXPECTED_STEPS)


def weights_folder(work: Workspace) -> Path:
    """Where the weights are. `tracemill forget` removes it: they were learned from what is to be forgotten
    too, and the next run learns them anew from the tables."""
    return work.root / "decisions" / "gate"


def keep_weights(work: Workspace, belief: Belief) -> str:
    """Write the weights under their version and make them the current ones; gives the version."""
    folder, version = weights_folder(work), belief.version
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{version}.json"
    if not path.exists():
        write_json(path, {"version": version, **belief.to_json()})
    write_json(folder / "current.json", {"version": version})
    return version
