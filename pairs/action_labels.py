"""Labels of single actions: those that teachers agreed on, and all steps of solved sessions."""

from collections.abc import Iterable, Sequence

from tracemill.agreement.voting.labels import AGREED_VERDICTS
from tracemill.harnesses.operations import find_action_operation
from tracemill.pairs.label_weights import LabelWeights
from tracemill.pairs.other_views import (
    STUDENT_KEY,
    origin_of,
    replies_by_vote,
    shortest_reply,
    word_action,
)
from tracemill.pairs.side_text import Wording
from tracemill.records.identity import StepId
from tracemill.records.message import Action, Message
from tracemill.records.pair import DPOPair, StepVotes, Vote
from tracemill.records.reply import TeacherReply
from tracemill.records.trace import TraceState
from tracemill.records.views import ActionLabel

AGREED, SOLVED = "agreed", "solved"
NO_ANSWER_COUNTS = "no answer counts as a vote"
REPLY_GONE = "the agreed answer is missing"
CALLS_NOTHING = "the action calls nothing"
DID_NOTHING = "the agent did nothing"
_AGREED_ON = {
    "agrees_with_student": "are for what the agent did",
    "dead_zone": "agree on another action of the agent's intent",
    "order_only": "agree on what the agent does within the next steps",
}


def why_not_agreed(step: StepVotes) -> str:
    """Return why the votes at a step agree on no action, "" if they do agree."""
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
    """Return the action that teachers agreed on at a step, or a fixed phrase that says why there is none.

    `replies` are those of the step, `pair` the teachers' pair made there. The action is the agent's own if
    the votes are for it, else the chosen side of the pair, else the shortest of the agreeing replies.
    """
    if reason := why_not_agreed(step):
        return reason
    agreeing = [vote for vote in step.votes if vote.counted and vote.agrees]
    counted = sum(vote.counted for vote in step.votes)
    student = state.student_action.to_message()
    same_as_student = pair is None and any(vote.key == STUDENT_KEY for vote in agreeing)
    if same_as_student:
        action = student
    elif pair is not None:
        action = pair.chosen[0]
    else:
        action = shortest_reply(agreeing, replies_by_vote(replies))
    if action is None:
        return REPLY_GONE
    message = word_action(action, student, state.trace.harness, wording)
    if message is None:
        return CALLS_NOTHING
    weight = weights.weigh(state, action, len(agreeing) / counted)
    return ActionLabel(
        origin=origin_of(state, "", step.simulated),
        step_id=step.step_id,
        label_source=AGREED,
        message=message,
        operation=_operation(action, state),
        same_as_student=same_as_student,
        verdict=step.verdict,
        evidence=pair.evidence if pair is not None else describe_agreement(step),
        weight=weight.weight,
        outcome_weight=weight.outcome,
        outcome_support=weight.support,
        teachers=tuple(sorted(vote.teacher for vote in agreeing)),
        families=_families(agreeing),
        n_votes=counted,
        cost_usd=sum(vote.cost_usd for vote in step.votes),
        pair_id=pair.pair_id if pair is not None else None,
    )


def steps_past_departure(labels: Iterable[ActionLabel]) -> frozenset[str]:
    """Return the step ids of agreed labels that a failed session reached after a divergence.

    The divergence is the first step with an agreed action other than the agent's. A student that takes this
    action does not reach the later steps, so that labels there cost capacity without a use. Labels without
    weight are no divergence, nor is an action that the agent does within the next steps.
    """
    departed: dict[str, tuple[int, int]] = {}
    placed: list[tuple[str, str, tuple[int, int]]] = []
    for label in labels:
        if label.label_source != AGREED or label.origin.outcome != "not_resolved":
            continue
        step, trace_id = StepId.parse(label.step_id), label.origin.trace_id
        place = step.context, step.step
        placed.append((label.step_id, trace_id, place))
        if label.weight and not label.same_as_student and label.verdict != "order_only":
            departed[trace_id] = min(place, departed.get(trace_id, place))
    return frozenset(
        step_id for step_id, trace_id, place in placed if trace_id in departed and place > departed[trace_id]
    )


def describe_agreement(step: StepVotes) -> str:
    """Return a sentence on how many votes agree, of which families, and on what.

    It is "" if none agree, and if they made a pair: the `evidence` of the pair says more.
    """
    agreed_on = _AGREED_ON.get(step.verdict)
    agreeing = [vote for vote in step.votes if vote.counted and vote.agrees]
    if agreed_on is None or not agreeing:
        return ""
    counted = sum(vote.counted for vote in step.votes)
    return f"{len(agreeing)} of {counted} votes ({', '.join(_families(agreeing))}) {agreed_on}"


def label_solved_action(
    state: TraceState, verdict: str, weights: LabelWeights, wording: Wording = "full"
) -> ActionLabel | str:
    """Return the agent's action at a step of a solved session, or a fixed phrase that says why there is none.

    `verdict` is that of the step's vote, "" if there was none.
    """
    student = state.student_action.to_message()
    if not student.tool_calls and not student.content.strip():
        return DID_NOTHING
    message = word_action(student, student, state.trace.harness, wording)
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
        evidence="the session solved its task",
        weight=weight.weight,
        outcome_weight=weight.outcome,
        outcome_support=weight.support,
    )


def _operation(message: Message, state: TraceState) -> str:
    return str(find_action_operation(Action.of(message), state.trace.harness))


def _families(votes: Sequence[Vote]) -> tuple[str, ...]:
    return tuple(sorted({vote.family for vote in votes}))
