"""Compute features of a step as short words, without asking anybody: `length=7`, `own=absent`.

A context is walked once, so that all T steps of a trace cost O(T). A word is one bucket of a feature; numbers
are bucketed by powers of two. The result of an action is a feature too, because a recorded session shows it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tracemill.agreement.equivalence.validity import why_calls_invalid, why_text_invalid
from tracemill.harnesses.operations import find_operation_and_target
from tracemill.records.message import Action, Message, ToolSpec
from tracemill.records.trace import Context, Trace, TraceState
from tracemill.teachers.gate.request_features import UserRequest, request_feature_words
from tracemill.teachers.gate.result_features import read_result_features


@dataclass(frozen=True, slots=True)
class GateStepFeatures:
    """A step with the gate's features, as words."""

    step_id: str
    words: tuple[str, ...]


@dataclass(slots=True)
class _ContextProgress:
    """The running state of a context before a step."""

    counted: int = 0
    request: UserRequest | None = None
    """The user's last request, where no action followed it yet."""


def build_step_features(trace: Trace, tools: Mapping[int, tuple[ToolSpec, ...]]) -> list[GateStepFeatures]:
    """Return the features of every step of a trace; `tools` has the tools shown in each context."""
    found: list[GateStepFeatures] = []
    for context in trace.contexts:
        found += _of_context(trace, context, tools.get(context.index, context.tools))
    return found


def _of_context(trace: Trace, context: Context, tools: tuple[ToolSpec, ...]) -> Iterator[GateStepFeatures]:
    past, last = _ContextProgress(), context is trace.contexts[-1]
    for at, step in enumerate(context.steps):
        state = TraceState(trace, context, step)
        action, result = state.student_action, read_result_features(_results(context, step.cut))
        operation, _ = find_operation_and_target(action, trace.harness)
        _read_messages(past, context, step.cut)
        ended = last and at == len(context.steps) - 1
        words = [
            f"op={operation}",
            f"own={result}",
            f"op*own={operation}*{result}",
            f"length={_length(action)}",
            f"invalid={_why(action, trace.harness, tools)}",
            f"ended={trace.outcome if ended else 'no'}",
        ]
        if past.request is not None:
            words += request_feature_words(past.request, action, operation, tools)
        yield GateStepFeatures(str(state.step_id), tuple(words))


def _results(context: Context, cut: int) -> tuple[Message, ...]:
    """Return the messages between an action and the agent's next one.

    They are its tool results, or the answer to an action written as text.
    """
    found: list[Message] = []
    for message in context.messages[cut + 1 : cut + 65]:
        if message.role == "assistant":
            break
        if message.role == "tool" or not context.messages[cut].tool_calls:
            found.append(message)
    return tuple(found)


def _read_messages(past: _ContextProgress, context: Context, cut: int) -> None:
    asked: Message | None = None
    for message in context.messages[past.counted : cut]:
        asked = message if message.role == "user" else asked if message.role == "system" else None
    past.counted = cut
    past.request = None if asked is None else UserRequest.of(asked.content)


def _why(action: Action, harness: str, tools: Sequence[ToolSpec]) -> str:
    why = why_calls_invalid(action, tools) if tools else None
    return (why or why_text_invalid(action, tools, harness) or "no").replace(" ", "_")


def _length(action: Action) -> int:
    """Return the length class of an action (log2, half steps): of its calls, else of its text."""
    size = sum(len(call.arguments) for call in action.tool_calls) or len(action.text)
    return round(2 * math.log2(size + 1))
