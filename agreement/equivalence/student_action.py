"""The student's action at a step, as what the teachers say is compared with."""

from dataclasses import replace

from tracemill.agreement.equivalence.ladder import Keys, ladder_keys
from tracemill.agreement.equivalence.validity import why_action_impossible, why_calls_invalid
from tracemill.agreement.world.world_state import World
from tracemill.records.message import Action
from tracemill.records.trace import TraceState

_NEAR = 64
"""Messages behind an action among which its results are."""


def student_action_keys(state: TraceState, world: World) -> Keys:
    """What the student did on the ladder, `broken` where that could not be carried out and the session holds
    no result of it that is no failure."""
    known = ladder_keys(state.student_action, world)
    return known if _worked(state) else mark_action_broken(known, state.student_action, world)


def mark_action_broken(known: Keys, action: Action, world: World) -> Keys:
    """The keys of an action, `broken` where a call breaks its tool's schema or cannot do what it says."""
    why = why_calls_invalid(action, world.tools) if world.tools else None
    return replace(known, broken=True) if why or why_action_impossible(action, known, world) else known


def _worked(state: TraceState) -> bool:
    calls = {call.id for call in state.student_action.tool_calls}
    after = state.context.messages[state.step.cut + 1 : state.step.cut + 1 + _NEAR]
    results = [each for each in after if each.role == "tool" and each.tool_call_id in calls]
    return bool(results) and not any(result.is_error for result in results)
