"""Build the keys of the student's action, which teachers' actions are compared with."""

from dataclasses import replace

from tracemill.agreement.equivalence.ladder import ActionKeys, ladder_keys
from tracemill.agreement.equivalence.validity import why_calls_invalid
from tracemill.agreement.world.world_state import EnvironmentState
from tracemill.records.message import Action
from tracemill.records.trace import TraceState

_RESULT_WINDOW = 64
"""Messages after an action that are searched for its results."""


def student_action_keys(state: TraceState, world: EnvironmentState) -> ActionKeys:
    """Return the keys of the student's action.

    It is `broken` if it could not be carried out and the session has no successful result of it.
    """
    known = ladder_keys(state.student_action, world)
    return known if _succeeded(state) else mark_action_broken(known, state.student_action, world)


def mark_action_broken(known: ActionKeys, action: Action, world: EnvironmentState) -> ActionKeys:
    """Return the keys, `broken` if a call breaks its tool's schema."""
    return replace(known, broken=True) if world.tools and why_calls_invalid(action, world.tools) else known


def _succeeded(state: TraceState) -> bool:
    calls = {call.id for call in state.student_action.tool_calls}
    after = state.context.messages[state.step.cut + 1 : state.step.cut + 1 + _RESULT_WINDOW]
    results = [each for each in after if each.role == "tool" and each.tool_call_id in calls]
    return bool(results) and not any(result.is_error for result in results)
