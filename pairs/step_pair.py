"""The pair of a step, with all that the step says of it."""

from tracemill.harnesses.operations import find_action_operation
from tracemill.harnesses.presentation import Presentation, present_context
from tracemill.records.message import Action
from tracemill.records.pair import DPOPair
from tracemill.records.trace import MessageView, TraceState


def pair_at(
    state: TraceState,
    label_source: str,
    chosen: Action,
    evidence: str = "",
    policy: str = "",
    presentation: Presentation | None = None,
) -> DPOPair:
    """Return the pair that prefers `chosen` to what the agent did at a step. `evidence` says why, in words;
    `policy` names the rule, the source where it has none. `presentation` is that of the step's context, made
    anew where none is given."""
    trace, done = state.trace, state.student_action
    shown = presentation or present_context(trace, state.context)
    return DPOPair(
        step_id=str(state.step_id),
        label_source=label_source,
        state_messages=MessageView(shown.messages, shown.cuts[state.step.index]),
        tools=shown.tools,
        chosen=(chosen.to_message(),),
        rejected=(done.to_message(),),
        chosen_operation=str(find_action_operation(chosen, trace.harness)),
        rejected_operation=str(find_action_operation(done, trace.harness)),
        source=trace.source,
        harness=trace.harness,
        presentation=shown.label,
        student_model=state.step.model,
        student_family=state.step.family,
        policy=policy or label_source,
        evidence=evidence,
        project=trace.project,
        repository=trace.repository,
        instance_id=trace.instance_id,
        licence=trace.licence,
        outcome=trace.outcome,
    )
