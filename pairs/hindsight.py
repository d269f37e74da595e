"""Hindsight pairs: a call that failed, and the accepted call that mended it a few steps later.

Both sides keep the text the agent wrote at the step; the chosen side has the failed call replaced by the
one that mended it, so that a pair differs in the decision alone. Where agents write their calls in their
text, one a step, the call written there is replaced, and the user's text behind it is its result. A pair
is made only where the call was to blame for its failure, and where all the better call needs had been
shown before the step.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tracemill.agreement.calls.canonical import canonical_key
from tracemill.agreement.world.seen_text import ShownText
from tracemill.harnesses.agents.registry import Harness, harness_for
from tracemill.harnesses.core.vocabulary import Operation
from tracemill.harnesses.operations import find_action_operation
from tracemill.harnesses.presentation import Presentation, present_context
from tracemill.harnesses.text_calls import calls_in_text, replace_text_call
from tracemill.pairs.failure_causes import NOT_TO_BLAME, Fault, find_failure_cause
from tracemill.pairs.fix_rules import Attempt, is_mend, was_fix_possible
from tracemill.pairs.step_pair import pair_at
from tracemill.records.message import Action, ErrorKind, Message, ToolCall
from tracemill.records.pair import DPOPair
from tracemill.records.trace import Context, Step, Trace, TraceState

WINDOW = 5
"""How many steps later a mend may come."""

NO_FAULT = "the call is not to blame"
NOT_MENDED = f"not mended within {WINDOW} steps"
NOT_POSSIBLE = "the mend was not possible yet"
UNCHANGED = "succeeded unchanged"
_ANSWERS = ("EXECUTION RESULT of [", "OBSERVATION:")


@dataclass(frozen=True, slots=True)
class _Mend:
    """The call that mended one failed call, and how many steps later it came; `text` is what the agent
    would have written with it, where calls are written."""

    failed: ToolCall
    fault: Fault
    call: ToolCall
    distance: int
    text: str = ""


@dataclass(slots=True)
class _Walk:
    """One context while its failures are looked through."""

    trace: Trace
    context: Context
    harness: Harness
    shown: ShownText
    presentation: Presentation | None = None


def hindsight_pairs(trace: Trace) -> tuple[list[DPOPair], Counter[str]]:
    """The hindsight pairs of a trace in the order of its steps, and for each failed step without one the
    reason, counted. The same trace gives the same pairs."""
    pairs: list[DPOPair] = []
    reasons: Counter[str] = Counter()
    harness = harness_for(trace.harness, trace.harness_version)
    for context in trace.contexts:
        walk = _Walk(trace, context, harness, ShownText(context.messages))
        for step in context.steps:
            found = _look_at(walk, TraceState(trace, context, step))
            if isinstance(found, str):
                reasons[found] += 1
            elif found:
                pairs.append(_pair(walk, TraceState(trace, context, step), found))
    return pairs, reasons


def _look_at(walk: _Walk, state: TraceState) -> list[_Mend] | str:
    """What mended the failed calls of a step, all of them; else why there is no pair. Empty: none failed."""
    mends: list[_Mend] = []
    for call, result in _answered(state):
        if result.error_kind == ErrorKind.CANCELLED:
            continue
        found = _mend_of(walk, state.step, call, result)
        if isinstance(found, _Mend):
            mends.append(found)
        elif result.is_error or result.error_kind:
            return found
    return mends


def _mend_of(walk: _Walk, step: Step, call: ToolCall, result: Message) -> _Mend | str:
    failed = Attempt.of(call, walk.trace.harness)
    if result.error_kind in NOT_TO_BLAME:
        return NOT_TO_BLAME[result.error_kind]
    fault = find_failure_cause(call, result, failed.effect.operation, walk.harness)
    return NO_FAULT if fault is None else _find_mend(walk, step, failed, fault)


def _find_mend(walk: _Walk, step: Step, failed: Attempt, fault: Fault) -> _Mend | str:
    key = _key(walk, step, failed.call)
    reason = NOT_MENDED
    for distance, state, call, result in _calls_after(walk, step):
        later = Attempt.of(call, walk.trace.harness)
        accepted = _accepted(call, result, later, walk.harness)
        if accepted and _key(walk, state.step, call) == key and not _differs_in_space(fault, failed, later):
            return UNCHANGED
        if accepted and is_mend(fault, failed, later):
            text = _written(TraceState(walk.trace, walk.context, step), state)
            if text is not None and was_fix_possible(failed, later, walk.shown, step.cut):
                return _Mend(failed.call, fault, call, distance, text)
            reason = NOT_POSSIBLE
        if fault in (Fault.COMMAND, Fault.SYNTAX) and accepted and _changes_files(later):
            return reason
        if fault == Fault.SYNTAX and call.name == "open":  # what is edited next is another file, or place
            return reason
    return reason


def _calls_after(walk: _Walk, step: Step) -> Iterator[tuple[int, TraceState, ToolCall, Message]]:
    """Calls of the next steps with their results, up to the window or to what the user says next."""
    messages, steps = walk.context.messages, walk.context.steps
    before = TraceState(walk.trace, walk.context, step)
    for distance, later in enumerate(steps[step.index + 1 : step.index + 1 + WINDOW], start=1):
        behind = before.step.cut + 1 + (not before.student_action.tool_calls and bool(_answered(before)))
        if any(_is_said_by_user(message) for message in messages[behind : later.cut]):
            return
        before = TraceState(walk.trace, walk.context, later)
        for call, result in _answered(before):
            yield distance, before, call, result


def _written(state: TraceState, later: TraceState) -> str | None:
    """The text of a step with the call of a later one written in it; empty where both act by tool calls,
    None where they act in different ways."""
    action, better = state.student_action, later.student_action
    if action.tool_calls or better.tool_calls:
        return "" if action.tool_calls and better.tool_calls else None
    return replace_text_call(action.text, better.text, state.trace.harness)


def _answered(state: TraceState) -> list[tuple[ToolCall, Message]]:
    """The calls of a step that came back, with their results."""
    action, harness = state.student_action, state.trace.harness
    if action.tool_calls:
        results = {result.tool_call_id: result for result in state.results}
        return [(call, results[call.id]) for call in action.tool_calls if call.id in results]
    calls, behind = calls_in_text(action.text, harness), state.step.cut + 1
    if len(calls) != 1 or behind >= len(state.context.messages):
        return []
    result = state.context.messages[behind]
    answers = harness_for(harness).user_answers or result.content.startswith(_ANSWERS)
    return [(calls[0], result)] if result.role == "user" and answers else []


def _is_said_by_user(message: Message) -> bool:
    return message.role == "user" and not message.content.lstrip().startswith("<")


def _accepted(call: ToolCall, result: Message, attempt: Attempt, harness: Harness) -> bool:
    if result.is_error or result.error_kind:
        return False
    return find_failure_cause(call, result, attempt.effect.operation, harness) is None


def _differs_in_space(fault: Fault, failed: Attempt, later: Attempt) -> bool:
    """Whether an edit that broke the syntax was made again with other arguments, be it other indents, which
    are none to the key."""
    return fault == Fault.SYNTAX and failed.arguments != later.arguments


def _changes_files(attempt: Attempt) -> bool:
    return attempt.effect.mutating and attempt.effect.operation in (Operation.EDIT, Operation.CREATE)


def _key(walk: _Walk, step: Step, call: ToolCall) -> str:
    return canonical_key(Action("", (call,)), walk.context.tools, step.cwd, walk.trace.harness)


def _pair(walk: _Walk, state: TraceState, mends: list[_Mend]) -> DPOPair:
    presentation = walk.presentation or present_context(walk.trace, walk.context)
    walk.presentation = presentation
    made = pair_at(
        state,
        "hindsight",
        _mended(state.student_action, mends),
        evidence=_evidence(state, mends),
        presentation=presentation,
    )
    return replace(
        made,
        chosen_operation=str(_operation(mends[0].call, state.trace)),
        rejected_operation=str(_operation(mends[0].failed, state.trace)),
        verified="lookahead",
    )


def _mended(action: Action, mends: list[_Mend]) -> Action:
    """The action with the failed calls replaced by those that mended them."""
    if not action.tool_calls:
        return Action(mends[0].text)
    better = {mend.failed: mend.call for mend in mends}
    return Action(action.text, tuple(better.get(call, call) for call in action.tool_calls))


def _operation(call: ToolCall, trace: Trace) -> Operation:
    return find_action_operation(Action("", (call,)), trace.harness)


def _evidence(state: TraceState, mends: list[_Mend]) -> str:
    """Such as `edit failed (the file had not been read), mended 1 step later`."""
    operation = _operation(mends[0].failed, state.trace)
    steps = max(mend.distance for mend in mends)
    return f"{operation} failed ({mends[0].fault}), mended {steps} step{'s' * (steps > 1)} later"
