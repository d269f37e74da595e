"""Check a vote against the recorded steps that follow it.

`order_only`: the student reads what the teachers would read within the next steps, so the two differ in order
alone. `confirmed`: the student's own call failed, and within the next steps it did successfully what the
teachers agreed on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tracemill.agreement.equivalence.ladder import ActionKeys, ladder_keys
from tracemill.agreement.world.replay_context import environment_at, replay_context
from tracemill.agreement.world.world_state import ContextHistory
from tracemill.records.message import Action, ToolSpec
from tracemill.records.trace import TraceState

WITHIN = 3
"""Number of following steps of the same context that are examined."""
Ahead = Literal["", "order_only", "confirmed"]


@dataclass(frozen=True, slots=True)
class LaterAction:
    """A later step: the keys of its action, and whether one of its calls failed."""

    keys: ActionKeys
    failed: bool


def judge_lookahead(
    chosen: ActionKeys, student: ActionKeys, failed: bool, later: Sequence[LaterAction]
) -> Ahead:
    """Return the verdict of the later steps on a pair, "" if they decide nothing.

    `failed` is whether a call of the student's own action failed. `order_only` needs that both actions only
    read and that every effect of the teachers' action is, by intent, among the following steps. The search
    ends at the first step that changes something.
    """
    reading = chosen.reading and student.reading
    missing = {effect.intent for effect in chosen.effects}
    for step in later[:WITHIN]:
        if failed and not step.failed and chosen.effect == step.keys.effect:
            return "confirmed"
        if reading and not failed:
            if not step.keys.reading:
                return ""
            missing -= {effect.intent for effect in step.keys.effects}
            if not missing:
                return "order_only"
    return ""


def look_ahead(
    state: TraceState, tools: tuple[ToolSpec, ...], chosen: Action, record: ContextHistory | None = None
) -> Ahead:
    """Return the verdict of the steps after a state on the action chosen there (`judge_lookahead`).

    A call failed if its result is marked as an error.
    """
    known = record or replay_context(state.context, state.trace.harness)
    following = [step for step in state.context.steps if step.index > state.step.index][:WITHIN]
    states = [TraceState(state.trace, state.context, step) for step in following]
    later = [
        LaterAction(ladder_keys(each.student_action, environment_at(each, tools, known)), _failed(each))
        for each in states
    ]
    world = environment_at(state, tools, known)
    return judge_lookahead(
        ladder_keys(chosen, world), ladder_keys(state.student_action, world), _failed(state), later
    )


def _failed(state: TraceState) -> bool:
    calls = {call.id for call in state.student_action.tool_calls}
    messages = state.context.messages
    after = (messages[at] for at in range(state.step.cut + 1, len(messages)))
    return any(each.role == "tool" and each.tool_call_id in calls and bool(each.is_error) for each in after)
