"""Actions that are right at a step: what teachers agreed on, and what solved a task."""

from collections.abc import Iterable, Sequence

from tracemill.agreement.voting.labels import AGREED_VERDICTS
from tracemill.harnesses.operations import find_action_operation
from tracemill.pairs.label_weights import LabelWeights
from tracemill.pairs.other_views import (
    STUDENT_KEY,
    origin_of,
    replies_by_vote,
    shortest_reply,
    worded_action,
)
from tracemill.pairs.side_text import Wording
from tracemill.records.message import Action, Message
from tracemill.records.pair import DPOPair, StepVotes, Vote
from tracemill.records.reply import TeacherReply
from tracemill.records.trace import TraceState
from tracemill.records.views import ActionLabel

AGREED, SOLVED = "agreed", "solved"
NO_ANSWER_COUNTS = "no answer counts as a vote"
REPLY_GONE = "the agreed answer is not there"
CALLS_NOTHING = "the action calls nothing"
DID_NOTHING = "the agent did nothing"
_FOR = {
    "agrees_with_student": "are for what the agent did",
    "dead_zone": "agree on another action of the agent's intent",
    "order_only": "agree on what the agent does within the next steps",
}
_SOLVED = "the session solved its task"


def why_not_agreed(step: StepVotes) -> str:
    """Return why the votes at a step agree on no action, "" where they do."""
    if step.verdict in AGREED_VERDICTS and any(vote.agrees for vote in step.votes):
        return ""
    if not any(vote.counted for vote in step.votes):
        return NO_ANSWER_COUNTS
    return step.verdict.replace("_", " ")


def label_agreed_action(
    state: TraceState,
    step: StepVotes,
    replies: Iterable[TeacherReply],
    pair: DPOPair | None,
    weights: LabelWeights,
    wording: Wording = "full",
) -> ActionLabel | str:
    """Return the label of a step at which teachers agreed, without what was shown; a short fixed phrase where
    there is none.

    `replies` are those of the step, `pair` the teachers' pair that was made there. The action is the agent's
    own where the vote is for that, else the chosen side of the pair, else the shortest of the agreeing
    replies.
    """
    if reason := why_not_agreed(step):
        return reason
    backers = [vote for vote in step.votes if vote.counted and vote.agrees]
    counted = sum(vote.counted for vote in step.votes)
    student = state.student_action.to_message()
    own = pair is None and any(vote.key == STUDENT_KEY for vote in backers)
    if own:
        said = student
    elif pair is not None:
        said = pair.chosen[0]
    else:
        said = shortest_reply(backers, replies_by_vote(replies))
    if said is None:
        return REPLY_GONE
    message = worded_action(said, student, state.trace.harness, wording)
    if message is None:
        return CALLS_NOTHING
    weight = weights.weigh(state, said, len(backers) / counted)
    return ActionLabel(
        origin=origin_of(state, "", step.simulated),
        step_id=step.step_id,
        label_source=AGREED,
        message=message,
        operation=_operation(said, state),
        same_as_student=own,
        verdict=step.verdict,
        evidence=pair.evidence if pair is not None else agreed_in_words(step),
        weight=weight.weight,
        outcome_weight=weight.outcome,
        outcome_support=weight.support,
        teachers=tuple(sorted(vote.teacher for vote in backers)),
        families=_families(backers),
        n_votes=counted,
        cost_usd=sum(vote.cost_usd for vote in step.votes),
        pair_id=pair.pair_id if pair is not None else None,
    )


def agreed_in_words(step: StepVotes) -> str:
    """Return how many of the votes at a step agree, of which families, and on what; "" where none do, and
    where they made a pair, whose `evidence` says more."""
    said = _FOR.get(step.verdict)
    backers = [vote for vote in step.votes if vote.counted and vote.agrees]
    if said is None or not backers:
        return ""
    counted = sum(vote.counted for vote in step.votes)
    return f"{len(backers)} of {counted} votes ({', '.join(_families(backers))}) {said}"


def label_solved_action(
    state: TraceState, verdict: str, weights: LabelWeights, wording: Wording = "full"
) -> ActionLabel | str:
    """Return the label of a step of a session that solved its task, without what was shown; a short fixed
    phrase where there is none. `verdict` is that of the step's vote, "" where there was none."""
    student = state.student_action.to_message()
    if not student.tool_calls and not student.content.strip():
        return DID_NOTHING
    message = worded_action(student, student, state.trace.harness, wording)
    if message is None:
        return CALLS_NOTHING
    weight = weights.weigh(state, student, 1.0)
    return ActionLabel(
        origin=origin_of(state, "", False),
        step_id=str(state.step_id),
        label_source=SOLVED,
        message=message,
        operation=_operation(student, state),
        same_as_student=True,
        verdict=verdict,
        evidence=_SOLVED,
        weight=weight.weight,
        outcome_weight=weight.outcome,
        outcome_support=weight.support,
    )


def _operation(message: Message, state: TraceState) -> str:
    return str(find_action_operation(Action.of(message), state.trace.harness))


def _families(votes: Sequence[Vote]) -> tuple[str, ...]:
    return tuple(sorted({vote.family for vote in votes}))
