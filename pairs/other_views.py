"""Views of votes other than pairs: runs of judged steps, and distributions over actions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tracemill.harnesses.presentation import Presentation
from tracemill.pairs.side_text import Wording, strip_side_text, use_student_side_text
from tracemill.records.message import Message
from tracemill.records.pair import StepVotes, Vote
from tracemill.records.reply import TeacherReply
from tracemill.records.trace import Context, MessageView, Trace, TraceState
from tracemill.records.views import CandidateAction, SoftStep, StepOrigin, StepRun

STUDENT_KEY = "student"
"""The key of votes for what the student did itself (`records.pair.Vote`)."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of a step of the agent, its source, and whether it is simulated."""

    good: bool
    source: str
    simulated: bool = False


def origin_of(state: TraceState, presentation: str, simulated: bool) -> StepOrigin:
    """Build the origin of a step; `presentation` is the label of its presentation."""
    trace = state.trace
    return StepOrigin(
        trace_id=trace.trace_id,
        source=trace.source,
        harness=trace.harness,
        presentation=presentation,
        student_model=state.step.model,
        student_family=state.step.family,
        repository=trace.repository,
        instance_id=trace.instance_id,
        licence=trace.licence,
        outcome=trace.outcome,
        simulated=simulated,
    )


def build_step_run_views(
    trace: Trace,
    context: Context,
    presentation: Presentation,
    judged: Mapping[str, Judgement],
    wording: Wording = "full",
) -> Iterable[StepRun]:
    """Yield runs of neighbouring judged steps of a context in order; `judged` maps step ids to judgements."""
    run: list[TraceState] = []
    for step in context.steps:
        state = TraceState(trace, context, step)
        if str(state.step_id) in judged and _worded_student(state, wording) is not None:
            run.append(state)
        elif run:
            yield _run(run, presentation, judged, wording)
            run = []
    if run:
        yield _run(run, presentation, judged, wording)


def _worded_student(state: TraceState, wording: Wording) -> Message | None:
    student = state.student_action.to_message()
    return word_action(student, student, state.trace.harness, wording)


def _run(
    states: list[TraceState],
    presentation: Presentation,
    judged: Mapping[str, Judgement],
    wording: Wording,
) -> StepRun:
    turns: list[tuple[Message, ...]] = []
    for number, state in enumerate(states):
        cut = presentation.cuts[state.step.index]
        start = presentation.cuts[states[number - 1].step.index] + 1 if number else cut
        action = _worded_student(state, wording)
        assert action is not None
        turns.append((*presentation.messages[start:cut], action))
    step_ids = tuple(str(state.step_id) for state in states)
    judgements = [judged[step_id] for step_id in step_ids]
    first = states[0]
    return StepRun(
        origin=origin_of(first, presentation.label, any(each.simulated for each in judgements)),
        state_messages=MessageView(presentation.messages, presentation.cuts[first.step.index]),
        step_ids=step_ids,
        turns=tuple(turns),
        labels=tuple(each.good for each in judgements),
        label_sources=tuple(each.source for each in judgements),
    )


def build_soft_step_view(
    state: TraceState,
    presentation: Presentation,
    step: StepVotes,
    replies: Iterable[TeacherReply],
    wording: Wording = "full",
    evidence: str = "",
) -> SoftStep | None:
    """Build the distribution of a step's votes over actions; None if it cannot be complete.

    It needs a counted vote, and for every action a reply that can be exported in this wording. `replies` are
    those of the step, `evidence` is that of their pair. The shortest reply represents an action; the
    student's own action is as the student wrote it.
    """
    by_key: dict[str, list[Vote]] = {}
    for vote in step.votes:
        if vote.counted:
            by_key.setdefault(vote.key, []).append(vote)
    reply_of = replies_by_vote(replies)
    student = state.student_action.to_message()
    candidates: list[tuple[str, CandidateAction]] = []
    for key, votes in by_key.items():
        action = student if key == STUDENT_KEY else shortest_reply(votes, reply_of)
        message = None if action is None else word_action(action, student, state.trace.harness, wording)
        if message is None:
            return None
        teachers = tuple(sorted(vote.teacher for vote in votes))
        agreed = any(vote.agrees for vote in votes)
        candidates.append((key, CandidateAction(message, votes[0].operation, teachers, agreed)))
    if not candidates:
        return None
    candidates.sort(key=lambda each: (-len(each[1].teachers), each[1].teachers))
    return SoftStep(
        origin=origin_of(state, presentation.label, step.simulated),
        step_id=step.step_id,
        state_messages=MessageView(presentation.messages, presentation.cuts[state.step.index]),
        tools=presentation.tools,
        verdict=step.verdict,
        candidates=tuple(candidate for _, candidate in candidates),
        student=next((place for place, (key, _) in enumerate(candidates) if key == STUDENT_KEY), -1),
        cost_usd=sum(vote.cost_usd for vote in step.votes),
        evidence=evidence,
    )


def replies_by_vote(replies: Iterable[TeacherReply]) -> dict[tuple[str, int, str], TeacherReply]:
    """Index the replies of a step by (teacher, sample, request key), as votes name them."""
    return {(r.teacher, r.sample, r.request_key): r for r in replies}


def shortest_reply(
    votes: Iterable[Vote], reply_of: Mapping[tuple[str, int, str], TeacherReply]
) -> Message | None:
    """Return the shortest action of the replies that votes refer to; None if there is no such reply."""
    replies = [reply_of.get((vote.teacher, vote.sample, vote.request_key)) for vote in votes]
    answered = [r for r in replies if r is not None and r.action is not None]
    actions = [
        (_length(r.action.to_message()), r.teacher, r.action.to_message()) for r in answered if r.action
    ]
    return min(actions, key=lambda each: each[:2])[2] if actions else None


def _length(message: Message) -> int:
    return len(message.content) + sum(len(call.arguments) for call in message.tool_calls)


def word_action(action: Message, student: Message, harness: str, wording: Wording) -> Message | None:
    """Return an action in the exported wording; None if that is `calls_only` and the action has no call."""
    if wording == "calls_only":
        return strip_side_text(action, harness)
    if wording == "student_thought" and action is not student:
        return use_student_side_text(student, action, harness)
    return action
