"""Count the votes of teachers at one step."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tracemill.agreement.equivalence.agreement_level import AgreementLevel, find_agreement_level
from tracemill.agreement.equivalence.ladder import ActionKeys, is_ladder_part_either_way, ladder_keys
from tracemill.agreement.equivalence.student_action import student_action_keys
from tracemill.agreement.equivalence.validity import why_reply_invalid
from tracemill.agreement.voting.labels import (
    AGREED_VERDICTS,
    ValidVote,
    Verdict,
    label_of,
)
from tracemill.agreement.voting.policy import VotePolicy
from tracemill.agreement.world.replay_context import environment_at
from tracemill.agreement.world.world_state import ContextHistory, EnvironmentState
from tracemill.records.families import UNKNOWN
from tracemill.records.message import Action, ToolSpec
from tracemill.records.pair import Vote
from tracemill.records.reply import TeacherReply
from tracemill.records.trace import TraceState

VOTE_VERSION = 10
"""Raise it when the same replies at a step give another verdict."""


@dataclass(frozen=True, slots=True)
class VoteResult:
    """The result of a vote.

    `chosen` is set where the verdict is `pair`. `n_agreeing` and `families` describe the votes for the
    leading action whatever the verdict; `level` is where they agree, None if no action leads. `votes` has
    a row for every reply; `parts` are the keys of actions of which one does only some of what the student's
    does, or the other way round.
    """

    verdict: Verdict
    chosen: TeacherReply | None
    votes: tuple[Vote, ...]
    n_agreeing: int
    families: tuple[str, ...]
    level: AgreementLevel | None = None
    parts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Ballot:
    reply: TeacherReply
    keys: ActionKeys
    reason: str
    counted: bool


def tally_votes(
    state: TraceState,
    tools: tuple[ToolSpec, ...],
    replies: Sequence[TeacherReply],
    policy: VotePolicy,
    record: ContextHistory | None = None,
) -> VoteResult:
    """Count the replies at a step under a policy, whatever their order.

    A teacher has one vote: its first valid sample. `record` is the replayed history of the step's context; it
    is built where None.
    """
    world = environment_at(state, tools, record)
    student = student_action_keys(state, world)
    ballots = _ballots(state, world, replies, policy)
    counted = [ballot for ballot in ballots if ballot.counted]
    label = label_of([vote_of_reply(ballot.reply, ballot.keys) for ballot in counted], student, policy)
    backers = [counted[place] for place in label.backers]
    families = tuple(sorted({ballot.reply.family for ballot in backers}))
    chosen = counted[label.chosen].reply if label.chosen is not None else None
    agreeing = {id(ballot) for ballot in backers} if label.verdict in AGREED_VERDICTS else set()
    own = student.at(policy.level)
    votes = tuple(
        _vote(ballot, ballot.keys.at(policy.level), own, id(ballot) in agreeing, state) for ballot in ballots
    )
    level = find_agreement_level([ballot.keys for ballot in backers]) if backers else None
    parts = frozenset(
        ballot.keys.at(policy.level) for ballot in counted if is_ladder_part_either_way(ballot.keys, student)
    )
    return VoteResult(label.verdict, chosen, votes, len(backers), families, level, parts)


def vote_of_reply(reply: TeacherReply, known: ActionKeys) -> ValidVote:
    """Return the vote of a valid reply."""
    action = reply.action or Action()
    length = len(action.text) + sum(len(call.arguments) for call in action.tool_calls)
    return ValidVote(reply.teacher, reply.family, known, length)


def _ballots(
    state: TraceState, world: EnvironmentState, replies: Iterable[TeacherReply], policy: VotePolicy
) -> list[_Ballot]:
    ballots: list[_Ballot] = []
    voted: set[str] = set()
    for reply in sorted(replies, key=lambda r: (r.teacher, r.sample, r.request_key)):
        known = ladder_keys(reply.action or Action(), world)
        reason = why_no_vote(reply, world.tools, state, policy)
        if not reason and reply.teacher in voted:
            reason = "another sample votes"
        counted = not reason
        if counted:
            voted.add(reply.teacher)
        ballots.append(_Ballot(reply, known, reason, counted))
    return ballots


def why_no_vote(
    reply: TeacherReply, tools: tuple[ToolSpec, ...], state: TraceState, policy: VotePolicy
) -> str:
    """Return why a reply is not a valid vote, "" if it is."""
    reason = why_reply_invalid(reply, tools, state.trace.harness)
    if not reason and policy.exclude_student_family and _is_kin(reply, state):
        return "family of the student"
    return reason or ""


def _is_kin(reply: TeacherReply, state: TraceState) -> bool:
    return reply.family != UNKNOWN and reply.family == state.step.family


def _vote(ballot: _Ballot, key: str, own: str, agrees: bool, state: TraceState) -> Vote:
    reply = ballot.reply
    reason = ballot.reason
    if ballot.counted and state.step.family == UNKNOWN:
        reason = "family of the student unknown"
    return Vote(
        teacher=reply.teacher,
        family=reply.family,
        sample=reply.sample,
        counted=ballot.counted,
        reason=reason,
        key="" if reply.action is None else "student" if key == own else key,
        operation="" if reply.action is None else ballot.keys.action_class,
        agrees=agrees,
        cost_usd=reply.cost_usd,
        request_key=reply.request_key,
    )
