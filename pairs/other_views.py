"""What the same votes say beside pairs: runs of judged steps, and distributions over actions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tracemill.harnesses.presentation import Presentation
from tracemill.pairs.side_text import Wording, strip_side_text, use_student_side_text
from tracemill.records.message import Message
from tracemill.records.pair import StepVotes, Vote
from tracemill.records.reply import TeacherReply
from tracemill.records.trace import Context, MessageView, Trace, TraceState
from tracemill.records.views import Candidate, Origin, SoftStep, StepRun

STUDENT_KEY = "student"
"""The key of votes for what the student did itself (`records.pair.Vote`)."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a step of an agent was confirmed, by what, and whether that was simulated."""

    good: bool
    source: str
    simulated: bool = False


def origin_of(state: TraceState, presentation: str, simulated: bool) -> Origin:
    """Where a step is from; `presentation` is the label of what was shown."""
    trace = state.trace
    return Origin(
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
    """The runs of neighbouring steps of a context that were judged, in their order; `judged` by step id."""
    run: list[TraceState] = []
    for step in context.steps:
        state = TraceState(trace, context, step)
        known = str(state.step_id) in judged and _worded(state, wording) is not None
        if known:
            run.append(state)
        elif run:
            yield _run(run, presentation, judged, wording)
            run = []
    if run:
        yield _run(run, presentation, judged, wording)


def _worded(state: TraceState, wording: Wording) -> Message | None:
    message = state.student_action.to_message()
    return strip_side_text(message, state.trace.harness) if wording == "calls_only" else message


def _run(
    states: list[TraceState], shown: Presentation, judged: Mapping[str, Judgement], wording: Wording
) -> StepRun:
    turns: list[tuple[Message, ...]] = []
    for number, state in enumerate(states):
        cut = shown.cuts[state.step.index]
        since = shown.cuts[states[number - 1].step.index] + 1 if number else cut
        did = _worded(state, wording)
        assert did is not None
        turns.append((*shown.messages[since:cut], did))
    step_ids = tuple(str(state.step_id) for state in states)
    known = [judged[step_id] for step_id in step_ids]
    first = states[0]
    return StepRun(
        origin=origin_of(first, shown.label, any(each.simulated for each in known)),
        state_messages=MessageView(shown.messages, shown.cuts[first.step.index]),
        step_ids=step_ids,
        turns=tuple(turns),
        labels=tuple(each.good for each in known),
        label_sources=tuple(each.source for each in known),
    )


def build_soft_step_view(
    state: TraceState,
    presentation: Presentation,
    step: StepVotes,
    replies: Iterable[TeacherReply],
    wording: Wording = "full",
    evidence: str = "",
) -> SoftStep | None:
    """The votes at a step as a distribution over actions. None where no vote counts, where the reply behind
    an action is not there, or where an action has no call and calls alone are wanted.

    `replies` are those of the step, `evidence` that of the pair they made. Of the replies for one action the
    shortest stands for it; the student's own action is as the student wrote it.
    """
    by_key: dict[str, list[Vote]] = {}
    for vote in step.votes:
        if vote.counted:
            by_key.setdefault(vote.key, []).append(vote)
    given = replies_by_vote(replies)
    student = state.student_action.to_message()
    candidates: list[tuple[str, Candidate]] = []
    for key, votes in by_key.items():
        said = student if key == STUDENT_KEY else shortest_reply(votes, given)
        message = None if said is None else worded_action(said, student, state.trace.harness, wording)
        if message is None:
            return None
        teachers = tuple(sorted(vote.teacher for vote in votes))
        agreed = any(vote.agrees for vote in votes)
        candidates.append((key, Candidate(message, votes[0].operation, teachers, agreed)))
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
    """The replies of a step by what names them in votes."""
    return {(r.teacher, r.sample, r.request_key): r for r in replies}


def shortest_reply(
    votes: Iterable[Vote], given: Mapping[tuple[str, int, str], TeacherReply]
) -> Message | None:
    """The shortest of the actions behind some votes; None where no reply of theirs is there."""
    replies = [given.get((vote.teacher, vote.sample, vote.request_key)) for vote in votes]
    found = [r for r in replies if r is not None and r.action is not None]
    actions = [(_length(r.action.to_message()), r.teacher, r.action.to_message()) for r in found if r.action]
    return min(actions, key=lambda each: each[:2])[2] if actions else None


def _length(message: Message) -> int:
    return len(message.content) + sum(len(call.arguments) for call in message.tool_calls)


def worded_action(said: Message, student: Message, harness: str, wording: Wording) -> Message | None:
    """An action in the words that are exported; None where calls alone are wanted and it has none. `said is
    student` where it is the agent's own."""
    if wording == "calls_only":
        return strip_side_text(said, harness)
    if wording == "student_thought" and said is not student:
        return use_student_side_text(student, said, harness)
    return said
