"""Decide when a step's label can no longer change, so that no further teacher is asked.

This is curtailed voting: votes are counted as they come, cheapest teacher first, until no outstanding vote
can matter. `lossless` never changes the label. `tiered` also stops where all votes so far are for the
student's action, which a later majority might have outvoted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tracemill.agreement.equivalence.ladder import ActionKeys, ladder_keys
from tracemill.agreement.equivalence.student_action import student_action_keys
from tracemill.agreement.voting.labels import ValidVote
from tracemill.agreement.voting.outcome_bounds import bounds_ensure_pair, bounds_exclude_pair
from tracemill.agreement.voting.policy import VotePolicy
from tracemill.agreement.voting.vote import vote_of_reply, why_no_vote
from tracemill.agreement.world.replay_context import environment_at, replay_context
from tracemill.agreement.world.world_state import ContextHistory, EnvironmentState
from tracemill.records.families import UNKNOWN
from tracemill.records.message import Action, ToolSpec
from tracemill.records.reply import TeacherReply
from tracemill.records.trace import TraceState

Stop = Literal["off", "lossless", "tiered"]
CERTAIN = "the pair is certain"
HOPELESS = "no pair can come of it"
AGREED = "the first teacher agrees with the student"
_MAX_BATCH = 4
_NEW = "new"


@dataclass(frozen=True, slots=True)
class StopDecision:
    """A decision on whether to stop asking at a step.

    `reason` says why, "" if asking goes on. `batch_size` is the number of next teachers that may be asked
    together because no answer among them could make another one superfluous.
    """

    reason: str
    batch_size: int


def why_stop_early(
    votes: Sequence[ValidVote], student: ActionKeys, waiting: Sequence[str], policy: VotePolicy, stop: Stop
) -> str:
    """Return why no outstanding vote can change the label, "" if one can.

    `waiting` has the families of the teachers that did not answer yet. Each may vote for anything, or not at
    all.
    """
    if stop == "off":
        return ""
    if (
        stop == "tiered"
        and votes
        and all(vote.keys.at(policy.level) == student.at(policy.level) for vote in votes)
    ):
        return AGREED
    if bounds_exclude_pair(votes, student, waiting, policy):
        return HOPELESS
    return CERTAIN if bounds_ensure_pair(votes, student, waiting, policy) else ""


def early_stop_batch_size(
    votes: Sequence[ValidVote], student: ActionKeys, waiting: Sequence[str], policy: VotePolicy, stop: Stop
) -> int:
    """Return how many of the next teachers can be asked at once without a superfluous call.

    At least 1 if any teacher is waiting.
    """
    if stop == "off" or len(waiting) < 2:
        return len(waiting)
    size = 1
    while size < min(len(waiting), _MAX_BATCH):
        if _may_decide(votes, student, waiting, size, policy, stop):
            break
        size += 1
    return size


def _may_decide(
    votes: Sequence[ValidVote],
    student: ActionKeys,
    waiting: Sequence[str],
    first: int,
    policy: VotePolicy,
    stop: Stop,
) -> bool:
    """Return whether answers of the `first` waiting teachers can decide the step.

    It is enough to try all of them alike: no vote, the student's action, a known action, a new one.
    """
    voted = {vote.keys.at(policy.level): _most_favourable(vote.keys) for vote in votes}
    options = (student, *voted.values(), ActionKeys(_NEW, _NEW, _NEW, _NEW, _NEW))
    ends = [[], *([ValidVote("", family, one) for family in waiting[:first]] for one in options)]
    return any(why_stop_early([*votes, *end], student, waiting[first:], policy, stop) for end in ends)


def _most_favourable(known: ActionKeys) -> ActionKeys:
    """Return a copy without guesses and with all effects proven, so that neither can prevent a pair."""
    return replace(
        known, guess=False, effects=tuple(replace(effect, proven=True) for effect in known.effects)
    )


class EarlyStopper:
    """An early stopper that decides at which steps no further teacher is asked; evaluates a reply once."""

    def __init__(
        self, states: Mapping[str, tuple[TraceState, tuple[ToolSpec, ...]]], policy: VotePolicy, stop: Stop
    ) -> None:
        """Keep the steps to decide on.

        `states` has each step's state and the tools shown there, by step id.
        """
        self._states = states
        self._policy = policy
        self._stop: Stop = stop
        self._histories: dict[tuple[str, int], ContextHistory] = {}
        self._students: dict[str, tuple[EnvironmentState, ActionKeys]] = {}
        self._seen: dict[tuple[str, str, int], ValidVote | None] = {}

    def decide(self, step_id: str, replies: Sequence[TeacherReply], waiting: Sequence[str]) -> StopDecision:
        """Return whether no further teacher is asked at a step after these replies.

        `replies` holds all replies of each teacher that answered; `waiting` the families of teachers that may
        still be asked. An unknown step is never decided.
        """
        found = self._states.get(step_id)
        if found is None or self._stop == "off":
            return StopDecision("", len(waiting))
        eligible = [family for family in waiting if self._may_vote(family, found[0])]
        student = self._student(step_id)[1]
        votes = self._votes(step_id, replies)
        case = (votes, student, eligible, self._policy, self._stop)
        why = why_stop_early(*case)
        ineligible = len(waiting) - len(eligible)
        return StopDecision(why, 0 if why else ineligible + early_stop_batch_size(*case))

    def _may_vote(self, family: str, state: TraceState) -> bool:
        is_student_family = family == state.step.family != UNKNOWN
        return not (is_student_family and self._policy.exclude_student_family)

    def _student(self, step_id: str) -> tuple[EnvironmentState, ActionKeys]:
        """Return the environment at a step and the student's action there."""
        if step_id not in self._students:
            state, tools = self._states[step_id]
            place = (state.trace.trace_id, state.context.index)
            if place not in self._histories:
                self._histories[place] = replay_context(state.context, state.trace.harness)
            world = environment_at(state, tools, self._histories[place])
            self._students[step_id] = (world, student_action_keys(state, world))
        return self._students[step_id]

    def _votes(self, step_id: str, replies: Sequence[TeacherReply]) -> list[ValidVote]:
        """Return one vote per teacher: its first valid sample."""
        voted: dict[str, ValidVote] = {}
        for reply in sorted(replies, key=lambda r: (r.teacher, r.sample)):
            if reply.teacher not in voted and (vote := self._vote_of(step_id, reply)) is not None:
                voted[reply.teacher] = vote
        return list(voted.values())

    def _vote_of(self, step_id: str, reply: TeacherReply) -> ValidVote | None:
        """Return the vote of a reply, None if it is not valid."""
        place = (step_id, reply.teacher, reply.sample)
        if place not in self._seen:
            world, _ = self._student(step_id)
            invalid = why_no_vote(reply, world.tools, self._states[step_id][0], self._policy)
            known = ladder_keys(reply.action or Action(), world)
            self._seen[place] = None if invalid else vote_of_reply(reply, known)
        return self._seen[place]
