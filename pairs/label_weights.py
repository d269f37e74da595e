"""Weights of labels, from the share of teachers that agree and from outcomes of sessions.

Teachers share errors with the student and with each other. Where sessions have a known outcome, a logistic
regression of the outcome on features of state and action (`pairs/step_features.py`) tells which actions go
with success. An action is compared with what the student usually does in such a state, and with what it did
at this step, so that a hard task does not count against it. No session is judged by its own outcome: four
models are fitted, each without a quarter of the sessions.

The regression is fitted with AdaGrad (Duchi, Hazan, Singer: JMLR 12, 2011) and an L2 penalty.
"""

import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracemill.pairs.step_features import ContextFeatures, Kind
from tracemill.records.message import Message
from tracemill.records.trace import Trace, TraceState
from tracemill.records.views import ActionLabel

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

FOLDS = 4
LEAST_SESSIONS = 20
"""Sessions of either outcome that a fit needs."""
_MOST_STEPS = 20_000
_EPOCHS = 10
_RATE, _PENALTY = 0.1, 0.01
_SHRINK = 80
"""Number of steps of a kind at which its own mean weighs as much as the mean of all steps."""
_SHARPNESS = 8.0
_DOUBTED = 0.5
_LEAST_KNOWN = 20
_LEAST_SUPPORT = 4
"""Solved sessions that must have such an action if teachers share errors."""
_COMMON = 0.5
"""Share of the solved sessions from which on an action is one that nobody needs a teacher for: if teachers
share errors, solved sessions alone teach it."""
_COVERED = 0.6
"""Share of steps with an agreed action from which on a session counts for `warnings`."""
_MOST_UNCONTESTED, _MOST_CONTESTED = 0.08, 0.23
"""Shares of sessions above which the card warns. In `benchmarks/teaching`, teachers with independent errors
stay below both (.02 and .19 at most); teachers with shared errors are above one (.26 at least)."""


@dataclass(frozen=True, slots=True)
class LabelWeight:
    """The weight of a label in training (0 to 1) and its parts.

    `outcome` is 1 if session outcomes do not contradict the action, 0 if they do, None if no outcomes are
    known. `support` is the number of other solved sessions that have the rarest feature of the action.
    """

    weight: float
    outcome: float | None = None
    support: int = 0


@dataclass(slots=True)
class _Model:
    """One fitted regression.

    It holds a weight for each feature, the sum and number of scores of the student's actions for each kind of
    state, the mean of all scores, and the number of solved sessions with each action feature.
    """

    weights: dict[str, float]
    kinds: dict[Kind, tuple[float, int]]
    mean: float
    solved: Counter[str]

    def score(self, features: Iterable[str]) -> float:
        return sum(self.weights.get(each, 0.0) for each in features)

    def advantage(self, features: Iterable[str], kind: Kind) -> float:
        """Return how much an action scores above the mean of this kind of state, in logits."""
        total, count = self.kinds.get(kind, (0.0, 0))
        return self.score(features) - (total + _SHRINK * self.mean) / (count + _SHRINK)


@dataclass(frozen=True, slots=True)
class _FeatureRow:
    session: str
    fold: int
    solved: bool
    state: list[str]
    action: list[str]
    kind: Kind


@dataclass(slots=True)
class _LabelledSession:
    """A session with a known outcome, and its labels.

    `contested`: a label is another action than the agent's. `doubted`: outcomes contradict such a label.
    `labelled` holds (context, step) of its labels.
    """

    solved: bool
    steps: int
    contested: bool = False
    doubted: bool = False
    labelled: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])

    @property
    def is_covered(self) -> bool:
        return len(self.labelled) >= _COVERED * self.steps


@dataclass(slots=True)
class LabelWeights:
    """Weights of labels by agreement and outcomes."""

    models: list[_Model] = field(default_factory=list)
    n_solved: int = 0
    _facts: tuple[str, dict[int, ContextFeatures]] = ("", {})
    _sessions: dict[str, _LabelledSession] = field(default_factory=dict[str, _LabelledSession])

    @classmethod
    def fit(cls, traces: Iterable[Trace]) -> "LabelWeights":
        """Fit on the student's own sessions with a known outcome, which are streamed once.

        At most about 20,000 steps are used, the first ones: a workspace orders sessions by a hash.
        """
        rows: list[_FeatureRow] = []
        sessions: Counter[bool] = Counter()
        for trace in traces:
            if trace.outcome == "unknown" or len(rows) >= _MOST_STEPS:
                continue
            solved = trace.outcome == "resolved"
            sessions[solved] += 1
            rows += _rows_of(trace, solved)
        if min(sessions[True], sessions[False]) < LEAST_SESSIONS:
            return cls()
        models = [_fit([row for row in rows if row.fold != fold]) for fold in range(FOLDS)]
        return cls(models, sessions[True])

    def weigh(self, state: TraceState, action: Message, agreement: float) -> LabelWeight:
        """Return the weight of an action at a step; `agreement` (0 to 1) is the share of votes for it."""
        session = self._record_label(state, action)
        if not self.models:
            return LabelWeight(agreement)
        facts = self._facts_of(state)
        at = state.step.index
        features = facts.action_features(at, action)
        model = self.models[_fold(state.trace)]
        advantage = model.advantage(features, facts.steps[at].kind)
        student = state.context.messages[state.step.cut]
        differs = _differ(action, student)
        if differs:
            student_score = model.score(facts.action_features(at, student))
            advantage = min(advantage, model.score(features) - student_score)
        outcome = min(1.0, 2 / (1 + math.exp(-_SHARPNESS * max(-20.0, advantage))))
        session.doubted |= differs and outcome < _DOUBTED
        seen = facts.seen_word_features(at, action)
        support = min(model.solved[each] for each in features if each not in seen)
        return LabelWeight(round(agreement * outcome, 4), round(outcome, 4), support)

    def contradicted_by_outcome(self) -> Callable[[ActionLabel], bool]:
        """Return a predicate on labels: True if the outcome of the session contradicts the votes.

        Call it after all labels have weights. If a session failed and all its labels are the agent's
        actions, one of them is wrong, so all are contradicted. If `warnings` reports shared errors, votes
        must fit the outcome: for the agent's action in a solved session; for another action in a failed
        one, and that action must occur in some solved sessions, but not in most.
        """
        shared_errors = bool(self.warnings())
        most = _COMMON * self.n_solved

        def is_contradicted(label: ActionLabel) -> bool:
            session = self._sessions.get(label.origin.trace_id)
            if session is None:
                return False
            if session.solved:
                return shared_errors and not label.same_as_student
            if session.is_covered and not session.contested:
                return True
            is_supported = _LEAST_SUPPORT <= label.outcome_support < most
            return shared_errors and (label.same_as_student or not is_supported)

        return is_contradicted

    def warnings(self) -> list[str]:
        """Return sentences on signs of errors that teachers share, with the agent or with each other."""
        covered = [each for each in self._sessions.values() if each.is_covered]
        sentences: list[str] = []
        share = _share([not each.contested for each in covered if not each.solved])
        if share > _MOST_UNCONTESTED:
            sentences.append(
                f"In {share:.0%} of the sessions that failed the teachers agree with all that the agent did: "
                "they may share its errors."
            )
        share = _share([each.doubted for each in covered if each.solved])
        if share > _MOST_CONTESTED:
            sentences.append(
                f"In {share:.0%} of the sessions that succeeded the teachers agree on another action that "
                "outcomes speak against: they may share errors."
            )
        return sentences

    def _record_label(self, state: TraceState, action: Message) -> _LabelledSession:
        trace = state.trace
        session = _LabelledSession(trace.outcome == "resolved", trace.step_count)
        if trace.outcome == "unknown":
            return session
        session = self._sessions.setdefault(trace.trace_id, session)
        session.contested |= _differ(action, state.context.messages[state.step.cut])
        session.labelled.add((state.context.index, state.step.index))
        return session

    def _facts_of(self, state: TraceState) -> ContextFeatures:
        trace_id, facts = self._facts
        if trace_id != state.trace.trace_id:
            facts = dict[int, ContextFeatures]()
            self._facts = (state.trace.trace_id, facts)
        at = state.context.index
        if at not in facts:
            facts[at] = ContextFeatures.of(state.context, state.trace.harness)
        return facts[at]


def _share(flags: Sequence[bool]) -> float:
    """Return the share of True; 0 for fewer than `_LEAST_KNOWN` flags."""
    return sum(flags) / len(flags) if len(flags) >= _LEAST_KNOWN else 0.0


def _differ(one: Message, other: Message) -> bool:
    return (one.content, one.tool_calls) != (other.content, other.tool_calls)


def _fold(trace: Trace) -> int:
    """Return the fold of a trace, the same for all runs of a task."""
    return zlib.crc32((trace.instance_id or trace.trace_id).encode()) % FOLDS


def _rows_of(trace: Trace, solved: bool) -> list[_FeatureRow]:
    rows: list[_FeatureRow] = []
    for context in trace.contexts:
        facts = ContextFeatures.of(context, trace.harness)
        for step in context.steps:
            action = facts.action_features(step.index, context.messages[step.cut])
            kind = facts.steps[step.index].kind
            rows.append(
                _FeatureRow(
                    trace.trace_id, _fold(trace), solved, facts.state_features(step.index), action, kind
                )
            )
    return rows


def _fit(rows: Sequence[_FeatureRow]) -> _Model:
    """Fit the outcome on the features of states and actions."""
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
    solved = {(row.session, each) for row in rows if row.solved for each in row.action}
    return _Model(named, kinds, sum(scores) / len(scores), Counter(each for _, each in solved))


def _adagrad(
    places: Sequence["npt.NDArray[np.int64]"], solved: "npt.NDArray[np.float64]", size: int
) -> "npt.NDArray[np.float64]":
    import numpy as np

    weights, squares = np.zeros(size), np.full(size, 1e-8)
    rng = np.random.default_rng(0)
    for _ in range(_EPOCHS):
        for row in rng.permutation(len(places)):
            at = places[row]
            error = 1 / (1 + np.exp(-weights[at].sum())) - solved[row]
            gradient = error + _PENALTY * weights[at]
            squares[at] += gradient * gradient
            weights[at] -= _RATE * gradient / np.sqrt(squares[at])
    return weights
