"""What the recorded steps after a vote say of it: the trace is frozen, so one may look ahead.

`order_only`: what the teachers would read, the student reads within the next steps anyway; the two differ in
order alone and neither is wrong. `confirmed`: the student's own call failed, and within
the next steps it did what the teachers agreed on, and that did not fail.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tracemill.agreement.equivalence.ladder import Keys, ladder_keys
from tracemill.agreement.equivalence.same_effect import is_same_effect
from tracemill.agreement.world.fold_context import record_of, world_of
from tracemill.agreement.world.world_state import Record
from tracemill.records.message import Action, ToolSpec
from tracemill.records.trace import TraceState

WITHIN = 3
"""Steps of the same context that are looked at."""
Ahead = Literal["", "order_only", "confirmed"]


@dataclass(frozen=True, slots=True)
class Later:
    """A later step: its action on the ladder, and whether a call of it failed."""

    keys: Keys
    failed: bool


def judge_lookahead(chosen: Keys, student: Keys, failed: bool, later: Sequence[Later]) -> Ahead:
    """What the next steps say of a pair; "" where nothing. `failed`: a call of the student's own action did.

    Order alone: student and teachers only read, and every deed of the teachers' is in intent one of the
    steps that follow. A step that changes something ends the search: after it a read is another one.
    """
    reading = bool(chosen.reads) and bool(student.reads)
    missing = {deed.intent for deed in chosen.deeds}
    for step in later[:WITHIN]:
        if failed and not step.failed and is_same_effect(chosen, step.keys):
            return "confirmed"
        if reading and not failed:
            if not step.keys.reads:
                return ""
            missing -= {deed.intent for deed in step.keys.deeds}
            if not missing:
                return "order_only"
    return ""


def look_ahead(
    state: TraceState, tools: tuple[ToolSpec, ...], chosen: Action, record: Record | None = None
) -> Ahead:
    """What the steps after a state say of the action chosen there (`judge_lookahead`). A call has failed
    where its
    result is marked so."""
    known = record or record_of(state.context, state.trace.harness)
    following = [step for step in state.context.steps if step.index > state.step.index][:WITHIN]
    states = [TraceState(state.trace, state.context, step) for step in following]
    later = [
        Later(ladder_keys(each.student_action, world_of(each, tools, known)), _failed(each))
        for each in states
    ]
    world = world_of(state, tools, known)
    return judge_lookahead(
        ladder_keys(chosen, world), ladder_keys(state.student_action, world), _failed(state), later
    )


def _failed(state: TraceState) -> bool:
    calls = {call.id for call in state.student_action.tool_calls}
    messages = state.context.messages
    after = (messages[at] for at in range(state.step.cut + 1, len(messages)))
    return any(each.role == "tool" and each.tool_call_id in calls and bool(each.is_error) for each in after)
