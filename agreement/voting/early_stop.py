"""When a step's label can no longer change, so that no further teacher needs to be asked there.

Curtailed voting: votes are counted as they come, cheapest teacher first, and counting ends once no vote that
is still out can matter. The label of a step is `label_of`'s: the group of actions one is chosen from, or that
none is. `lossless` never changes it; `tiered` also ends a step at which all votes so far are for the
student's own action, which a later majority might have outvoted. `value` is `lossless` here: what asking on
is worth is judged by `teachers.gate.value_stop`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tracemill.agreement.equivalence.ladder import Keys, ladder_keys
from tracemill.agreement.equivalence.same_effect import is_same_effect
from tracemill.agreement.equivalence.student_action import student_action_keys
from tracemill.agreement.voting.labels import Voice
from tracemill.agreement.voting.outcome_bounds import bounds_ensure_pair, bounds_exclude_pair
from tracemill.agreement.voting.policy import Policy
from tracemill.agreement.voting.vote import vote_of_reply, why_no_vote
from tracemill.agreement.world.fold_context import record_of, world_of
from tracemill.agreement.world.world_state import Record, World
from tracemill.records.families import UNKNOWN
from tracemill.records.message import Action, ToolSpec
from tracemill.records.reply import TeacherReply
from tracemill.records.trace import TraceState

Stop = Literal["off", "lossless", "tiered", "value"]
CERTAIN = "the pair is certain"
HOPELESS = "no pair can come of it"
AGREED = "the first teacher agrees with the student"
_MOST_TOGETHER = 4
_NEW = "new"


@dataclass(frozen=True, slots=True)
class Standing:
    """How a step stands: why it is settled, "" where it is not; and how many of the next teachers may be
    asked together because no answer of the others among them could make one superfluous."""

    settled: str
    together: int


def why_stop_early(
    votes: Sequence[Voice], student: Keys, waiting: Sequence[str], policy: Policy, stop: Stop
) -> str:
    """Why nothing that is still out can change the label, "" where something can.

    `waiting` holds the families of the teachers not heard yet; each may vote for anything, or not at all.
    """
    if stop == "off":
        return ""
    if stop == "tiered" and votes and all(_is_own(vote.keys, student, policy) for vote in votes):
        return AGREED
    if bounds_exclude_pair(votes, student, waiting, policy):
        return HOPELESS
    return CERTAIN if bounds_ensure_pair(votes, student, waiting, policy) else ""


def _is_own(known: Keys, student: Keys, policy: Policy) -> bool:
    if policy.level == "effect":
        return is_same_effect(known, student)
    return known.at(policy.level) == student.at(policy.level)


def early_stop_batch_size(
    votes: Sequence[Voice], student: Keys, waiting: Sequence[str], policy: Policy, stop: Stop
) -> int:
    """How many of the next teachers may be asked at once without any of them becoming superfluous by
    what the ones before it answer; at least 1 where any is waiting."""
    if stop == "off" or len(waiting) < 2:
        return len(waiting)
    if stop == "value":
        return 1
    wide = 1
    while wide < min(len(waiting), _MOST_TOGETHER):
        if _may_settle(votes, student, waiting, wide, policy, stop):
            break
        wide += 1
    return wide


def _may_settle(
    votes: Sequence[Voice], student: Keys, waiting: Sequence[str], first: int, policy: Policy, stop: Stop
) -> bool:
    """Whether answers of the first of those waiting can settle the step without the rest. What settles
    most is all of them alike: silent, for the student's action, for one that is known, for a new one."""
    known = {vote.keys.at(policy.level): _at_its_best(vote.keys) for vote in votes}
    options = (student, *known.values(), Keys(_NEW, _NEW, _NEW, _NEW, _NEW))
    ends = [[], *([Voice("", family, one) for family in waiting[:first]] for one in options)]
    return any(why_stop_early([*votes, *end], student, waiting[first:], policy, stop) for end in ends)


def _at_its_best(known: Keys) -> Keys:
    """The action as it makes a pair most easily."""
    return replace(known, guess=False, deeds=tuple(replace(deed, proven=True) for deed in known.deeds))


class Referee:
    """Says of the steps of a replay whether they are settled. Each reply is looked at once."""

    def __init__(
        self, states: Mapping[str, tuple[TraceState, tuple[ToolSpec, ...]]], policy: Policy, stop: Stop
    ) -> None:
        """`states` has the state of each step, and the tools shown there, by step id."""
        self._states = states
        self._policy = policy
        self._stop: Stop = stop
        self._records: dict[tuple[str, int], Record] = {}
        self._students: dict[str, tuple[World, Keys]] = {}
        self._seen: dict[tuple[str, str, int], Voice | None] = {}

    def stand(self, step_id: str, replies: Sequence[TeacherReply], waiting: Sequence[str]) -> Standing:
        """How a step stands after these replies, all those of each teacher heard, while teachers of the
        families in `waiting` may still be asked. A step nobody knows is never settled."""
        found = self._states.get(step_id)
        if found is None or self._stop == "off":
            return Standing("", len(waiting))
        voters = [family for family in waiting if self._may_vote(family, found[0])]
        student = self._student(step_id)[1]
        votes = self._votes(step_id, replies)
        asked = (votes, student, voters, self._policy, self._stop)
        why = why_stop_early(*asked)
        idle = len(waiting) - len(voters)
        return Standing(why, 0 if why else idle + early_stop_batch_size(*asked))

    def told(
        self, step_id: str, replies: Sequence[TeacherReply], teachers: Sequence[str]
    ) -> tuple[Keys, list[Keys | None]]:
        """What the student did at a step that is known, and what each of these teachers voted for; None for
        one that has no vote."""
        votes = {vote.teacher: vote.keys for vote in self._votes(step_id, replies)}
        return self._student(step_id)[1], [votes.get(teacher) for teacher in teachers]

    def knows(self, step_id: str) -> bool:
        """Whether it can say anything of a step."""
        return step_id in self._states

    def _may_vote(self, family: str, state: TraceState) -> bool:
        kin = family == state.step.family != UNKNOWN
        return not (kin and self._policy.exclude_student_family)

    def _student(self, step_id: str) -> tuple[World, Keys]:
        """The world at a step, and what the student did in it."""
        if step_id not in self._students:
            state, tools = self._states[step_id]
            place = (state.trace.trace_id, state.context.index)
            if place not in self._records:
                self._records[place] = record_of(state.context, state.trace.harness)
            world = world_of(state, tools, self._records[place])
            self._students[step_id] = (world, student_action_keys(state, world))
        return self._students[step_id]

    def _votes(self, step_id: str, replies: Sequence[TeacherReply]) -> list[Voice]:
        """The votes: of each teacher its first valid sample."""
        voted: dict[str, Voice] = {}
        for reply in sorted(replies, key=lambda r: (r.teacher, r.sample)):
            if reply.teacher not in voted and (voice := self._voice(step_id, reply)) is not None:
                voted[reply.teacher] = voice
        return list(voted.values())

    def _voice(self, step_id: str, reply: TeacherReply) -> Voice | None:
        """What a reply votes for, None where it has no vote."""
        place = (step_id, reply.teacher, reply.sample)
        if place not in self._seen:
            world, _ = self._student(step_id)
            known = ladder_keys(reply.action or Action(), world)
            silent = why_no_vote(reply, known, world, self._states[step_id][0], self._policy)
            self._seen[place] = None if silent else vote_of_reply(reply, known)
        return self._seen[place]
