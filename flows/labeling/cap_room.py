"""Say which steps need no asking, because the caps of the release leave no room for their pairs.

`pairs.per_trace` and `pairs.per_operation` drop every further pair of a session that has its number, whoever
paid for it. How many it has is known as answers come in. Which class teachers will agree on is not: it is
expected as the pairs made so far have it, at steps where the student did something of the same class.
"""

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tracemill.agreement.voting.policy import VotePolicy
from tracemill.agreement.world.replay_context import replay_context
from tracemill.agreement.world.world_state import ContextHistory
from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.labeling.vote_policy import build_vote_policy
from tracemill.harnesses.operations import find_action_operation
from tracemill.pairs.caps import PairCaps, rank_of
from tracemill.pairs.teacher_pairs import teacher_pair
from tracemill.records.identity import StepId, digest
from tracemill.records.label_source import sources_of_traces
from tracemill.records.reply import AskDecision, TeacherReply
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import TraceState

if TYPE_CHECKING:
    from tracemill.flows.labeling.label_shard import ShownTrace

LABEL_VIEWS = frozenset({"agreed", "sft", "soft", "prm"})
"""Views with a row of a step that was asked, whatever becomes of its pair."""
LEAST_CHANCE = 0.85
"""The least chance with which a pair must be expected to be kept for its step to be asked."""
EXPECTED_YIELD = 0.2
"""Pairs a step is expected to give in an estimate, where the workspace has too few votes to tell."""
_FEWEST_VOTES = 30
_ENOUGH = 10
"""Pairs at steps of one class from which on they say what to expect there; all pairs do before."""


def capped_by(settings: RunSettings) -> list[int]:
    """Return the caps that make a run with these settings leave steps out; empty if none does."""
    caps = settings.pairs.caps()
    if not (caps.per_trace or caps.per_operation) or LABEL_VIEWS & set(settings.release.views):
        return []
    return [caps.per_trace, caps.per_operation, caps.floor]


class _Step(NamedTuple):
    """A step that may be asked, with the prompt shown there."""

    shown: "ShownTrace"
    state: TraceState


class _Pair(NamedTuple):
    """The action classes of a teachers' pair."""

    rejected: str
    chosen: str


class RemainingPairs:
    """The number of pairs that the caps of a release still allow in each session of a run."""

    def __init__(self, caps: PairCaps, traces: int, policy: VotePolicy) -> None:
        """Set the caps of a run over `traces` traces of the workspace.

        If the caps would leave fewer rows than the floor, each session may have its part of the floor,
        rounded down.
        """
        least = caps.floor // traces if traces else 0
        self._per_trace = max(caps.per_trace, least) if caps.per_trace else 0
        self._per_operation = max(caps.per_operation, least) if caps.per_operation else 0
        self._policy = policy
        self._pairs: dict[str, _Pair] = {}
        self._taken: dict[str, dict[str, str]] = {}
        self._expected: dict[str, Counter[str]] = {}
        self._steps: dict[str, _Step] = {}
        self._ranks: dict[str, tuple[float, str]] = {}
        self._records: dict[str, ContextHistory] = {}
        self.expected_yield = EXPECTED_YIELD

    @classmethod
    def open(cls, settings: RunSettings, work: Workspace) -> "RemainingPairs | None":
        """Build it from the pairs of the workspace; None if the caps leave out no step."""
        if not capped_by(settings):
            return None
        traces = sum(table.num_rows for table in work.current("traces", columns=("trace_id",)))
        made = cls(settings.pairs.caps(), traces, build_vote_policy(settings))
        columns = ("step_id", "label_source", "rejected_operation", "chosen_operation")
        for table in work.current("pairs", columns=columns):
            for row in table.to_pylist():
                if row["label_source"] == "teachers":
                    made._add(row["step_id"], _Pair(row["rejected_operation"], row["chosen_operation"]))
        voted = sum(table.num_rows for table in work.current("votes", columns=("step_id",)))
        if voted >= _FEWEST_VOTES and made._pairs:
            made.expected_yield = min(len(made._pairs) / voted, 1.0)
        return made

    def show(self, shown: Iterable["ShownTrace"], decisions: Iterable[AskDecision]) -> None:
        """Set the sessions that are asked about next, in place of the ones before.

        Pairs of other sources count unless the caps prefer teachers' pairs to them; teachers' pairs at
        steps that are asked again count once the answers are there.
        """
        self._steps, self._records, self._ranks = {}, {}, {}
        asked = {decision.step_id: decision for decision in decisions if decision.verdict == "ask"}
        for step_id in asked:
            self._remove(step_id)
        for item in shown:
            taken = self._taken.setdefault(item.trace.trace_id, {})
            for source in sources_of_traces():
                for pair in source.pairs_of(item.trace)[0]:
                    if rank_of(pair)[0] <= -self._policy.threshold:
                        taken[f"{source.name} {pair.step_id}"] = pair.chosen_operation
            for state in item.trace.states():
                step_id = str(state.step_id)
                if step_id in asked:
                    self._steps[step_id] = _Step(item, state)
                    self._ranks[step_id] = (-_worth(asked[step_id]), digest("cap", step_id))

    def rank(self, step_id: str) -> tuple[float, str]:
        """Return the sort key of a step within its session.

        That is the gate's expected value, else a hash, so that the first steps have no advantage.
        """
        return self._ranks.get(step_id, (0.0, step_id))

    def is_full(self, step_id: str) -> bool:
        """Return whether a pair at a step would be dropped, or kept with a chance below `LEAST_CHANCE`."""
        taken = self._taken.get(_trace_of(step_id), {})
        if self._per_trace and len(taken) >= self._per_trace:
            return True
        return bool(self._per_operation) and self._chance(step_id, taken.values()) < LEAST_CHANCE

    def _chance(self, step_id: str, taken: Iterable[str]) -> float:
        """Return the probability that the cap of a session allows the pair that a step would give."""
        full = {name for name, count in Counter(taken).items() if count >= self._per_operation}
        step = self._steps.get(step_id)
        if not full or step is None:
            return 1.0
        seen = self._expected.get(_class_of(step.state), Counter())
        if seen.total() < _ENOUGH:
            seen = sum(self._expected.values(), Counter[str]())
        return 1.0 - sum(seen[name] for name in full) / seen.total() if seen.total() else 1.0

    def most_open(self, trace_id: str) -> int:
        """Return the number of steps of a session that may be asked at once without a dropped pair."""
        left = self._left(trace_id)
        room = [] if left is None else [left]
        if self._per_operation:
            taken = self._taken.get(trace_id, {})
            counts = [self._per_operation - count for count in Counter(taken.values()).values()]
            room.append(min((count for count in counts if count > 0), default=self._per_operation))
        return max(1, min(room))

    def _left(self, trace_id: str) -> int | None:
        """Return the number of pairs that a session's cap still allows in any class; None for no limit."""
        return max(self._per_trace - len(self._taken.get(trace_id, {})), 0) if self._per_trace else None

    def expected_full(self, decisions: Iterable[AskDecision], bought: Container[str]) -> frozenset[str]:
        """Return the steps whose pairs the caps are expected to drop.

        The expected pairs per step are those that the workspace gave or, before it has `_FEWEST_VOTES`,
        `EXPECTED_YIELD`. Steps that were `bought` come first. `show` has set the sessions; a cap of a class
        in a session counts the pairs that the session already has.
        """
        found: set[str] = set()
        steps = {decision.step_id for decision in decisions if decision.verdict == "ask"}
        met: Counter[str] = Counter()
        for step_id in sorted(steps, key=lambda each: (each not in bought, self.rank(each))):
            trace_id = _trace_of(step_id)
            room = self._left(trace_id)
            full = room is not None and met[trace_id] * self.expected_yield >= room
            if step_id not in bought and (full or self.is_full(step_id)):
                found.add(step_id)
            met[trace_id] += 1
        return frozenset(found)

    def close(self, step_id: str, replies: Sequence[TeacherReply]) -> None:
        """Count the pair, if any, that the replies at a step give."""
        step = self._steps.get(step_id)
        if step is None:
            return
        shown, state = step
        context = state.step_id.context
        place = f"{state.trace.trace_id}:{context}"
        if place not in self._records:
            self._records[place] = replay_context(state.context, state.trace.harness)
        presentation = shown.presentations[context]
        pair, _ = teacher_pair(state, presentation, replies, self._policy, self._records[place])
        self._remove(step_id)
        if pair is not None:
            self._add(step_id, _Pair(pair.rejected_operation, pair.chosen_operation))

    def _add(self, step_id: str, pair: _Pair) -> None:
        self._pairs[step_id] = pair
        self._taken.setdefault(_trace_of(step_id), {})[step_id] = pair.chosen
        self._expected.setdefault(pair.rejected, Counter())[pair.chosen] += 1

    def _remove(self, step_id: str) -> None:
        pair = self._pairs.pop(step_id, None)
        if pair is not None:
            del self._taken[_trace_of(step_id)][step_id]
            self._expected[pair.rejected][pair.chosen] -= 1


def _trace_of(step_id: str) -> str:
    return StepId.parse(step_id).trace_id


def _class_of(state: TraceState) -> str:
    return str(find_action_operation(state.student_action, state.trace.harness))


def _worth(decision: AskDecision) -> float:
    """Return the gate's expected value of a step per USD; 0 if the gate did not score it."""
    if not decision.expected_usd:
        return 0.0
    return (decision.belief or 0.0) / decision.expected_usd
