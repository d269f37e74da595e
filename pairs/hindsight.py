"""Hindsight pairs: a failed call as rejected, the later call of the session that fixed it as chosen.

Both sides keep the text the agent wrote at the step, so that a pair differs in the call alone. Where agents
write calls in their text, one a step, the written call is replaced, and the user message after it is its
result. A pair needs a failure that the call caused, and a fix that uses only what was shown before the step.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tracemill.agreement.calls.canonical import canonical_key
from tracemill.harnesses.agents.registry import Harness, harness_for
from tracemill.harnesses.core.vocabulary import Operation
from tracemill.harnesses.operations import find_action_operation
from tracemill.harnesses.presentation import Presentation, present_context
from tracemill.harnesses.text_calls import replace_text_call
from tracemill.pairs.failure_causes import (
    NOT_CAUSED_BY_CALL,
    FailureCause,
    find_failure_cause,
    quote_shell_mistake,
)
from tracemill.pairs.fix_rules import CallAttempt, is_fix, was_fix_possible
from tracemill.pairs.session.calls import calls_with_results, is_user_text
from tracemill.pairs.shown_text import ShownText
from tracemill.pairs.step_pair import pair_at
from tracemill.records.message import Action, ErrorKind, Message, ToolCall
from tracemill.records.pair import DPOPair
from tracemill.records.trace import Context, Step, Trace, TraceState

WINDOW = 5
"""How many steps later a fix may come."""

NOT_CALL = "failure not caused by the call"
NO_FIX = f"no fix within {WINDOW} steps"
NOT_POSSIBLE = "the fix used something not known yet"
UNCHANGED = "succeeded unchanged"


@dataclass(frozen=True, slots=True)
class _Fix:
    """The call that fixed a failed call, `distance` steps later.

    `text` is the agent's text with the fix written in it, for agents that write calls in their text; `why`
    describes the mistake in the failed call.
    """

    failed: ToolCall
    why: str
    call: ToolCall
    distance: int
    text: str = ""


@dataclass(slots=True)
class _ContextScan:
    """One context whose failures are searched for fixes."""

    trace: Trace
    context: Context
    harness: Harness
    shown: ShownText
    presentation: Presentation | None = None


def hindsight_pairs(trace: Trace) -> tuple[list[DPOPair], Counter[str]]:
    """Return the self-repair pairs of a trace in step order, and counted reasons for steps without one.

    The label source is called `hindsight`. The same trace gives the same pairs.
    """
    pairs: list[DPOPair] = []
    reasons: Counter[str] = Counter()
    harness = harness_for(trace.harness, trace.harness_version)
    for context in trace.contexts:
        scan = _ContextScan(trace, context, harness, ShownText(context.messages))
        for step in context.steps:
            state = TraceState(trace, context, step)
            fixes = _find_fixes(scan, state)
            if isinstance(fixes, str):
                reasons[fixes] += 1
            elif fixes:
                pairs.append(_pair(scan, state, fixes))
    return pairs, reasons


def _find_fixes(scan: _ContextScan, state: TraceState) -> list[_Fix] | str:
    """Return the fixes of all failed calls of a step (none failed: empty), or why there is no pair."""
    fixes: list[_Fix] = []
    for call, result in calls_with_results(state):
        if result.error_kind == ErrorKind.CANCELLED:
            continue
        if result.error_kind in NOT_CAUSED_BY_CALL:
            return NOT_CAUSED_BY_CALL[result.error_kind]
        failed = CallAttempt.of(call, scan.trace.harness)
        cause = find_failure_cause(call, result, failed.effect.operation, scan.harness)
        fix = NOT_CALL if cause is None else _find_fix(scan, state.step, failed, cause, result)
        if isinstance(fix, _Fix):
            fixes.append(fix)
        elif result.is_error or result.error_kind:
            return fix
    return fixes


def _find_fix(
    scan: _ContextScan, step: Step, failed: CallAttempt, cause: FailureCause, failure: Message
) -> _Fix | str:
    """Return the later call that fixed a failed call, or why there is none."""
    key = _key(scan, step, failed.call)
    reason = NO_FIX
    for distance, state, call, result in _later_calls(scan, step):
        later = CallAttempt.of(call, scan.trace.harness)
        succeeded = _succeeded(call, result, later, scan.harness)
        # the key ignores whitespace, which may be what fixed the syntax
        same_arguments = cause != FailureCause.SYNTAX or failed.arguments == later.arguments
        if succeeded and same_arguments and _key(scan, state.step, call) == key:
            return UNCHANGED
        if succeeded and is_fix(cause, failed, later) and not _moved(failed, step, state.step):
            text = _text_with_call(TraceState(scan.trace, scan.context, step), state)
            if text is not None and was_fix_possible(failed, later, scan.shown, step.cut):
                return _Fix(failed.call, _what_was_wrong(cause, failure), call, distance, text)
            reason = NOT_POSSIBLE
        if cause in (FailureCause.COMMAND, FailureCause.SYNTAX) and succeeded and _changes_files(later):
            return reason
        if succeeded and _edits_same_file(failed, later):  # the next edit may be the rest of the fix
            return reason
        if cause == FailureCause.SYNTAX and call.name == "open":  # the next edit is elsewhere
            return reason
    return reason


def _what_was_wrong(cause: FailureCause, failure: Message) -> str:
    """Return the mistake in the shell's words, in quotes, if it named one; else the cause."""
    said = quote_shell_mistake(failure) if cause == FailureCause.COMMAND else None
    return f'"{said}"' if said else str(cause)


def _later_calls(scan: _ContextScan, step: Step) -> Iterator[tuple[int, TraceState, ToolCall, Message]]:
    """Yield the calls of the next `WINDOW` steps with their results, until the user writes something."""
    messages, steps = scan.context.messages, scan.context.steps
    before = TraceState(scan.trace, scan.context, step)
    for distance, later in enumerate(steps[step.index + 1 : step.index + 1 + WINDOW], start=1):
        has_text_call = not before.student_action.tool_calls and bool(calls_with_results(before))
        after = before.step.cut + 1 + has_text_call
        if any(is_user_text(message) for message in messages[after : later.cut]):
            return
        before = TraceState(scan.trace, scan.context, later)
        for call, result in calls_with_results(before):
            yield distance, before, call, result


def _text_with_call(state: TraceState, later: TraceState) -> str | None:
    """Return the text of a step with the call of a later step written in it.

    It is "" if both use tool calls, None if only one does.
    """
    action, better = state.student_action, later.student_action
    if action.tool_calls or better.tool_calls:
        return "" if action.tool_calls and better.tool_calls else None
    return replace_text_call(action.text, better.text, state.trace.harness)


def _succeeded(call: ToolCall, result: Message, attempt: CallAttempt, harness: Harness) -> bool:
    if result.is_error or result.error_kind:
        return False
    return find_failure_cause(call, result, attempt.effect.operation, harness) is None


def _moved(failed: CallAttempt, step: Step, later: Step) -> bool:
    """Return whether the shell was in another folder later, which may be what fixed a command."""
    return bool(failed.command and step.cwd and later.cwd) and step.cwd != later.cwd


def _changes_files(attempt: CallAttempt) -> bool:
    return attempt.effect.mutating and attempt.effect.operation in (Operation.EDIT, Operation.CREATE)


def _edits_same_file(failed: CallAttempt, later: CallAttempt) -> bool:
    one, other = failed.effect, later.effect
    return one.operation == other.operation == Operation.EDIT and one.target == other.target is not None


def _key(scan: _ContextScan, step: Step, call: ToolCall) -> str:
    return canonical_key(Action("", (call,)), scan.context.tools, step.cwd, scan.trace.harness)


def _pair(scan: _ContextScan, state: TraceState, fixes: list[_Fix]) -> DPOPair:
    scan.presentation = scan.presentation or present_context(scan.trace, scan.context)
    pair = pair_at(
        state,
        "hindsight",
        _fixed_action(state.student_action, fixes),
        evidence=_evidence(state, fixes),
        presentation=scan.presentation,
    )
    return replace(
        pair,
        chosen_operation=str(_operation(fixes[0].call, state.trace)),
        rejected_operation=str(_operation(fixes[0].failed, state.trace)),
        verified="lookahead",
    )


def _fixed_action(action: Action, fixes: list[_Fix]) -> Action:
    """Return the action with each failed call replaced by its fix."""
    if not action.tool_calls:
        return Action(fixes[0].text)
    better = {fix.failed: fix.call for fix in fixes}
    return Action(action.text, tuple(better.get(call, call) for call in action.tool_calls))


def _operation(call: ToolCall, trace: Trace) -> Operation:
    return find_action_operation(Action("", (call,)), trace.harness)


def _evidence(state: TraceState, fixes: list[_Fix]) -> str:
    """Return text such as `edit failed (the file had not been read), fixed 1 step later`."""
    operation = _operation(fixes[0].failed, state.trace)
    steps = max(fix.distance for fix in fixes)
    said = f"{operation} failed ({fixes[0].why}), fixed {steps} step{'s' * (steps > 1)} later"
    kept = len(state.student_action.tool_calls) - len(fixes)
    return f"{said}; {kept} other call{'s' * (kept > 1)} of the turn kept" if kept > 0 else said
