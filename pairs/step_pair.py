"""Build the pair of a step, with the columns that come from the step."""

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
    """Build the pair that prefers `chosen` to the agent's action at a step.

    `evidence` says why, in words. `policy` names the rule, by default the label source. `presentation` is
    that of the step's context; it is built if None.
    """
    trace, rejected = state.trace, state.student_action
    prompt = presentation or present_context(trace, state.context)
    return DPOPair(
        step_id=str(state.step_id),
        label_source=label_source,
        state_messages=MessageView(prompt.messages, prompt.cuts[state.step.index]),
        tools=prompt.tools,
        chosen=(chosen.to_message(),),
        rejected=(rejected.to_message(),),
        chosen_operation=str(find_action_operation(chosen, trace.harness)),
        rejected_operation=str(find_action_operation(rejected, trace.harness)),
        source=trace.source,
        harness=trace.harness,
        presentation=prompt.label,
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
