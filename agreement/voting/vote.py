"""Votes of teachers at one step, and what they decide."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tracemill.agreement.equivalence.agreement_rung import Agreed, find_agreement_level
from tracemill.agreement.equivalence.ladder import Keys, ladder_keys
from tracemill.agreement.equivalence.student_action import student_action_keys
from tracemill.agreement.equivalence.validity import why_action_impossible, why_reply_invalid
from tracemill.agreement.voting.labels import AGREED_VERDICTS, Verdict, Voice, label_of, name_labelled_actions
from tracemill.agreement.voting.policy import Policy
from tracemill.agreement.world.fold_context import world_of
from tracemill.agreement.world.world_state import Record, World
from tracemill.records.families import UNKNOWN
from tracemill.records.message import Action, ToolSpec
from tracemill.records.pair import Vote
from tracemill.records.reply import TeacherReply
from tracemill.records.trace import TraceState

VOTE_VERSION = 2
"""Raise it when the same replies at a step come to another verdict."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What a vote came to. `chosen` is set where the verdict is `pair`; `n_agreeing` and `families` are
    those behind the leading action whatever the verdict, `rung` is where on the ladder they agree, None
    where no action leads. `votes` holds a row for every reply."""

    verdict: Verdict
    chosen: TeacherReply | None
    votes: tuple[Vote, ...]
    n_agreeing: int
    families: tuple[str, ...]
    rung: Agreed | None = None


@dataclass(frozen=True, slots=True)
class _Ballot:
    reply: TeacherReply
    keys: Keys
    reason: str
    counted: bool


def tally_votes(
    state: TraceState,
    tools: tuple[ToolSpec, ...],
    replies: Sequence[TeacherReply],
    policy: Policy,
    record: Record | None = None,
) -> Tally:
    """Counts the replies at a step under a policy; independent of their order.

    A teacher has one vote: its first valid sample. What the votes decide is `label_of`'s. `record` is that
    of the step's context, made here where none is given.
    """
    world = world_of(state, tools, record)
    student = student_action_keys(state, world)
    ballots = _ballots(state, world, replies, policy)
    counted = [ballot for ballot in ballots if ballot.counted]
    label = label_of([vote_of_reply(ballot.reply, ballot.keys) for ballot in counted], student, policy)
    backers = [counted[place] for place in label.backers]
    families = tuple(sorted({ballot.reply.family for ballot in backers}))
    chosen = counted[label.chosen].reply if label.chosen is not None else None
    behind = {id(ballot) for ballot in backers} if label.verdict in AGREED_VERDICTS else set()
    named = _counted_as(ballots, student, policy)
    votes = tuple(
        _vote(ballot, name, id(ballot) in behind, state) for ballot, name in zip(ballots, named, strict=True)
    )
    rung = find_agreement_level([ballot.keys for ballot in backers]) if backers else None
    return Tally(label.verdict, chosen, votes, len(backers), families, rung)


def vote_of_reply(reply: TeacherReply, known: Keys) -> Voice:
    """A reply as the vote it is."""
    action = reply.action or Action()
    length = len(action.text) + sum(len(call.arguments) for call in action.tool_calls)
    return Voice(reply.teacher, reply.family, known, length)


def _ballots(
    state: TraceState, world: World, replies: Iterable[TeacherReply], policy: Policy
) -> list[_Ballot]:
    ballots: list[_Ballot] = []
    voted: set[str] = set()
    for reply in sorted(replies, key=lambda r: (r.teacher, r.sample, r.request_key)):
        known = ladder_keys(reply.action or Action(), world)
        reason = why_no_vote(reply, known, world, state, policy)
        if not reason and reply.teacher in voted:
            reason = "another sample votes"
        counted = not reason
        if counted:
            voted.add(reply.teacher)
        ballots.append(_Ballot(reply, known, reason, counted))
    return ballots


def why_no_vote(reply: TeacherReply, known: Keys, world: World, state: TraceState, policy: Policy) -> str:
    """Why a reply does not vote, "" where it does. `known` is its action on the ladder."""
    reason = why_reply_invalid(reply, world.tools, state.trace.harness)
    reason = reason or why_action_impossible(reply.action or Action(), known, world)
    if not reason and policy.exclude_student_family and _is_kin(reply, state):
        return "family of the student"
    return reason or ""


def _is_kin(reply: TeacherReply, state: TraceState) -> bool:
    return reply.family != UNKNOWN and reply.family == state.step.family


def _counted_as(ballots: Sequence[_Ballot], student: Keys, policy: Policy) -> list[str]:
    """For each ballot what its action counts as beside the others that vote."""
    counted = [ballot.keys for ballot in ballots if ballot.counted]
    *names, own = name_labelled_actions([*counted, student], policy)
    found = dict(zip((keys.at(policy.level) for keys in counted), names, strict=True))
    found[student.at(policy.level)] = own
    plain = [found.get(key, key) for key in (ballot.keys.at(policy.level) for ballot in ballots)]
    return ["student" if name == own else name for name in plain]


def _vote(ballot: _Ballot, name: str, agrees: bool, state: TraceState) -> Vote:
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
        key="" if reply.action is None else name,
        operation="" if reply.action is None else ballot.keys.cls,
        agrees=agrees,
        cost_usd=reply.cost_usd,
        request_key=reply.request_key,
    )
