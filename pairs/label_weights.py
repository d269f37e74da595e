"""What a label is worth: how many teachers agree, and what outcomes of sessions say of such an action.

Agreement is not truth: teachers share errors with the student and with each other. Where the workspace holds
sessions whose outcome is known, a logistic regression of the outcome on features of state and action
(`pairs/step_features.py`) tells which kinds of action go with success in which kind of state. An action is
compared with what the student usually does in such a state, and with what it did at this step, so that a hard
task does not count against it. A session is never judged by its own outcome: four models are fitted, each
without a quarter of the sessions.

The regression is fitted with AdaGrad (Duchi, Hazan, Singer: JMLR 12, 2011) and an L2 penalty.
"""

import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracemill.pairs.step_features import ContextFacts, Kind
from tracemill.records.message import Message
from tracemill.records.trace import Trace, TraceState
from tracemill.records.views import ActionLabel

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

FOLDS = 4
LEAST_SESSIONS = 20
"""Of either outcome: with fewer, outcomes say nothing."""
_MOST_STEPS = 20_000
_EPOCHS = 10
_RATE, _PENALTY = 0.1, 0.01
_SHRINK = 80
"""Steps of a kind at which its own mean counts as much as that of all steps."""
_SHARPNESS = 8.0
_DOUBTED = 0.5
_LEAST_KNOWN = 20
_LEAST_SUPPORT = 4
"""Solved sessions that must have done such a thing where the word of teachers alone is not enough."""
_COVERED = 0.6
"""A session counts for the signs below where teachers agreed on an action at so many of its steps."""
_MOST_UNCONTESTED, _MOST_CONTESTED = 0.08, 0.18
"""Shares of sessions above which the card warns. In `benchmarks/teaching` teachers with independent errors
stay below both (.02 and .17 at the most), teachers with shared errors are above one."""


@dataclass(frozen=True, slots=True)
class LabelWeight:
    """What a label is worth. `weight` (0 to 1) is what training uses; `outcome` (0 to 1) is what outcomes say
    of the action, 1 where nothing against it, None where no outcomes are known; `support` is the number of
    other solved sessions that did what is least usual about it."""

    weight: float
    outcome: float | None = None
    support: int = 0


@dataclass(slots=True)
class _Model:
    """One fitted regression: weights by feature, the mean score of the student's actions by kind, and in how
    many solved sessions an action had a feature."""

    weights: dict[str, float]
    kinds: dict[Kind, tuple[float, int]]
    mean: float
    solved: Counter[str]

    def score(self, features: Iterable[str]) -> float:
        return sum(self.weights.get(each, 0.0) for each in features)

    def advantage(self, features: Iterable[str], kind: Kind) -> float:
        """How much better (in logits) than what is usual in this kind of state."""
        total, count = self.kinds.get(kind, (0.0, 0))
        return self.score(features) - (total + _SHRINK * self.mean) / (count + _SHRINK)


@dataclass(frozen=True, slots=True)
class _Row:
    session: str
    fold: int
    solved: bool
    state: list[str]
    action: list[str]
    kind: Kind


@dataclass(slots=True)
class _Labelled:
    """A session with a known outcome: at which of its steps there are labels, whether any is another action
    than the agent's, and whether outcomes speak against such a one."""

    solved: bool
    steps: int
    contested: bool = False
    doubted: bool = False
    at: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])

    @property
    def is_covered(self) -> bool:
        return len(self.at) >= _COVERED * self.steps


@dataclass(slots=True)
class LabelWeights:
    """Weighs labels by agreement and outcomes."""

    models: list[_Model] = field(default_factory=list)
    _facts: tuple[str, dict[int, ContextFacts]] = ("", {})
    _sessions: dict[str, "_Labelled"] = field(default_factory=dict[str, "_Labelled"])

    @classmethod
    def fit(cls, traces: Iterable[Trace]) -> "LabelWeights":
        """Learn from the student's own sessions, streamed once; those without an outcome say nothing. Of very
        many steps the first are used: a workspace keeps sessions by a hash, not by date."""
        rows: list[_Row] = []
        sessions: Counter[bool] = Counter()
        for trace in traces:
            if trace.outcome == "unknown" or len(rows) >= _MOST_STEPS:
                continue
            solved = trace.outcome == "resolved"
            sessions[solved] += 1
            rows += _rows_of(trace, solved)
        if min(sessions[True], sessions[False]) < LEAST_SESSIONS:
            return cls()
        return cls([_fit([row for row in rows if row.fold != fold]) for fold in range(FOLDS)])

    def weigh(self, state: TraceState, action: Message, agreement: float) -> LabelWeight:
        """Return what an action at a step is worth; `agreement` (0 to 1) is the share of the votes for it."""
        counted = self._count(state, action)
        if not self.models:
            return LabelWeight(agreement)
        facts = self._facts_of(state)
        at = state.step.index
        features = facts.action_features(at, action)
        model = self.models[_fold(state.trace)]
        advantage = model.advantage(features, facts.steps[at].kind)
        done = state.context.messages[state.step.cut]
        differs = _differ(action, done)
        if differs:
            own = model.score(facts.action_features(at, done))
            advantage = min(advantage, model.score(features) - own)
        outcome = min(1.0, 2 / (1 + math.exp(-_SHARPNESS * max(-20.0, advantage))))
        counted.doubted |= differs and outcome < _DOUBTED
        met = facts.met_words(at, action)
        support = min(model.solved[each] for each in features if each not in met)
        return LabelWeight(round(agreement * outcome, 4), round(outcome, 4), support)

    def unfounded(self) -> Callable[[ActionLabel], bool]:
        """Return a test of labels, once all are weighed: True where a vote is no evidence.

        The labels of a session that failed though all of them are what the agent did: one is wrong, and
        nobody saw which. Where the card warns that teachers share errors, a vote must fit the outcome: in a
        session that succeeded it is for what the agent did, in one that failed for another action, and for
        one that solved sessions hold.
        """
        warned = bool(self.warnings())

        def test(label: ActionLabel) -> bool:
            known = self._sessions.get(label.origin.trace_id)
            if known is None:
                return False
            if known.solved:
                return warned and not label.same_as_student
            if known.is_covered and not known.contested:
                return True
            return warned and (label.same_as_student or label.outcome_support < _LEAST_SUPPORT)

        return test

    def _unseen_share(self) -> float:
        """The share of failed sessions in which teachers agree with all that the agent did."""
        failed = [each for each in self._sessions.values() if each.is_covered and not each.solved]
        return _share(sum(not each.contested for each in failed), len(failed), _LEAST_KNOWN)

    def warnings(self) -> list[str]:
        """Return sentences on signs of errors that teachers share, with the agent or with each other."""
        solved = [each.doubted for each in self._sessions.values() if each.is_covered and each.solved]
        said: list[str] = []
        share = self._unseen_share()
        if share > _MOST_UNCONTESTED:
            said.append(
                f"In {share:.0%} of the sessions that failed the teachers agree with all that the agent did: "
                "they may share its errors."
            )
        share = _share(solved.count(True), len(solved), _LEAST_KNOWN)
        if share > _MOST_CONTESTED:
            said.append(
                f"In {share:.0%} of the sessions that succeeded the teachers agree on another action that "
                "outcomes speak against: they may share errors."
            )
        return said

    def _count(self, state: TraceState, action: Message) -> "_Labelled":
        trace = state.trace
        if trace.outcome == "unknown":
            return _Labelled(False, trace.step_count)
        known = self._sessions.setdefault(
            trace.trace_id, _Labelled(trace.outcome == "resolved", trace.step_count)
        )
        known.contested |= _differ(action, state.context.messages[state.step.cut])
        known.at.add((state.context.index, state.step.index))
        return known

    def _facts_of(self, state: TraceState) -> ContextFacts:
        trace_id, known = self._facts
        if trace_id != state.trace.trace_id:
            known = dict[int, ContextFacts]()
            self._facts = (state.trace.trace_id, known)
        at = state.context.index
        if at not in known:
            known[at] = ContextFacts.of(state.context, state.trace.harness)
        return known[at]


def _share(some: int, every: int, least: int) -> float:
    """The share of some among all; 0 where there are fewer than `least`."""
    return some / every if every >= least else 0.0


def _differ(one: Message, other: Message) -> bool:
    return (one.content, one.tool_calls) != (other.content, other.tool_calls)


def _fold(trace: Trace) -> int:
    """Runs of one task are of one fold."""
    return zlib.crc32((trace.instance_id or trace.trace_id).encode()) % FOLDS


def _rows_of(trace: Trace, solved: bool) -> list[_Row]:
    rows: list[_Row] = []
    for context in trace.contexts:
        facts = ContextFacts.of(context, trace.harness)
        for step in context.steps:
            done = context.messages[step.cut]
            action = facts.action_features(step.index, done)
            kind = facts.steps[step.index].kind
            rows.append(
                _Row(trace.trace_id, _fold(trace), solved, facts.state_features(step.index), action, kind)
            )
    return rows


def _fit(rows: Sequence[_Row]) -> _Model:
    """Fit the outcome on the features of states and actions; an epoch takes the rows in a drawn order."""
    import numpy as np

    index: dict[str, int] = {}
    places = [
        np.array([index.setdefault(each, len(index)) for each in (*row.state, *row.action)]) for row in rows
    ]
    weights = _adagrad(places, np.array([row.solved for row in rows], float), len(index))
    named = {name: float(weights[place]) for name, place in index.items()}
    scores = [sum(named[each] for each in row.action) for row in rows]
    kinds: dict[Kind, tuple[float, int]] = {}
    for row, score in zip(rows, scores, strict=True):
        total, count = kinds.get(row.kind, (0.0, 0))
        kinds[row.kind] = (total + score, count + 1)
    met = {(row.session, each) for row in rows if row.solved for each in row.action}
    return _Model(named, kinds, sum(scores) / len(scores), Counter(each for _, each in met))


def _adagrad(
    places: Sequence["npt.NDArray[np.int64]"], solved: "npt.NDArray[np.float64]", size: int
) -> "npt.NDArray[np.float64]":
    import numpy as np

    weights, squares = np.zeros(size), np.full(size, 1e-8)
    drawn = np.random.default_rng(0)
    for _ in range(_EPOCHS):
        for row in drawn.permutation(len(places)):
            at = places[row]
            error = 1 / (1 + np.exp(-weights[at].sum())) - solved[row]
            slope = error + _PENALTY * weights[at]
            squares[at] += slope * slope
            weights[at] -= _RATE * slope / np.sqrt(squares[at])
    return weights
