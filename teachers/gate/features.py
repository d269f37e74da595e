"""Compute features of a step as short words, without asking anybody: `length=7`, `before=edit`.

A context is walked once, so that all T steps of a trace cost O(T). A word is one bucket of a feature; numbers
are bucketed by powers of two. The result of an action is a feature too, because a recorded session shows it.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tracemill.agreement.calls.canonical import exact_key
from tracemill.agreement.equivalence.ladder import ActionKeys, ladder_keys
from tracemill.agreement.equivalence.validity import (
    why_action_impossible,
    why_calls_invalid,
    why_text_invalid,
)
from tracemill.agreement.world.replay_context import environment_at, replay_context
from tracemill.agreement.world.world_state import EnvironmentState
from tracemill.harnesses.core.vocabulary import Operation
from tracemill.harnesses.operations import find_operation_and_target
from tracemill.records.message import Action, Message, ToolSpec
from tracemill.records.trace import Context, Trace, TraceState
from tracemill.teachers.gate.request_features import UserRequest, request_feature_words
from tracemill.teachers.gate.result_features import NOTHING_YET, CallResult, read_result_features

WRITES = (Operation.EDIT, Operation.CREATE)
_HEDGES = re.compile(
    r"\b(?:maybe|perhaps|not sure|i think|might|let me try|another approach)\b", re.IGNORECASE
)
_NEVER = 99
_DIGITS = 8
"""Digits of a project's digest, which is made with the workspace's redaction key."""


@dataclass(frozen=True, slots=True)
class SecondOpinion:
    """The reply of a second student, or of a cheap teacher asked before.

    `entropy` is the mean entropy of its tokens in nats, None without log probabilities.
    """

    action: Action | None = None
    entropy: float | None = None


@dataclass(frozen=True, slots=True)
class GateStepFacts:
    """A step as the gate sees it: the words of its features, and what its utility depends on."""

    step_id: str
    trace_id: str
    words: tuple[str, ...]
    operation: str
    outcome: str
    after_error: bool
    place: int
    entropy: float | None = None


@dataclass(slots=True)
class _Past:
    """The state of a context before a step."""

    acts: list[str] = field(default_factory=list[str])
    seen: set[str] = field(default_factory=set[str])
    read: set[str] = field(default_factory=set[str])
    operation: str = "none"
    result: CallResult = NOTHING_YET
    since_edit: int = _NEVER
    since_test: int = _NEVER
    chars: int = 0
    counted: int = 0
    request: UserRequest | None = None
    """The user's last request, where no action followed it yet."""


def build_step_features(
    trace: Trace,
    tools: Mapping[int, tuple[ToolSpec, ...]],
    seconds: Mapping[str, SecondOpinion] | None = None,
) -> list[GateStepFacts]:
    """Return the facts of every step of a trace, in order.

    `tools` has the tools shown in each context, `seconds` the second opinions by step id.
    """
    found: list[GateStepFacts] = []
    for context in trace.contexts:
        found += _of_context(trace, context, tools.get(context.index, context.tools), seconds or {})
    return found


def _of_context(
    trace: Trace, context: Context, tools: tuple[ToolSpec, ...], seconds: Mapping[str, SecondOpinion]
) -> Iterator[GateStepFacts]:
    record, past = replay_context(context, trace.harness), _Past()
    last = context is trace.contexts[-1]
    for at, step in enumerate(context.steps):
        state = TraceState(trace, context, step)
        world, action = environment_at(state, tools, record), state.student_action
        known, second = ladder_keys(action, world), seconds.get(str(state.step_id))
        result, act = read_result_features(_results(context, step.cut)), exact_key(action)
        operation, target = find_operation_and_target(action, trace.harness)
        _read_messages(past, context, step.cut)
        ended = last and at == len(context.steps) - 1
        words = [
            f"op={operation}",
            f"before={past.operation}",
            f"prev={past.result.kind}",
            f"prev_length={_power(past.result.length)}",
            f"own={result.kind}",
            f"own_length={_power(result.length)}",
            f"op*own={operation}*{result.kind}",
            f"next={_next(trace, context, at, act, operation, target)}",
            f"length={_length(action)}",
            f"context={_half_power(past.chars)}",
            f"guess={_yes(known.guess)}",
            f"invalid={_why(action, known, world, tools)}",
            f"repeated={_repeated(past, act)}",
            f"unread={_yes(operation in WRITES and bool(target) and target not in past.read)}",
            f"since_edit={_since(past.since_edit)}",
            f"since_test={_since(past.since_test)}",
            f"untested={_yes(operation == Operation.FINISH and past.since_edit < past.since_test)}",
            f"place={_power(at)}",
            f"part={4 * at // len(context.steps)}",
            f"ended={trace.outcome if ended else 'no'}",
            f"outcome={trace.outcome}",
            f"hedges={_yes(bool(_HEDGES.search(action.text)))}",
            f"tools={_power(len(tools))}",
            f"harness={trace.harness}",
            f"project={trace.worked_in[0].digest[:_DIGITS] if trace.worked_in else 'unknown'}",
        ]
        if past.request is not None:
            words += request_feature_words(past.request, action, operation, tools)
        if second is not None:
            words += _second_words(second, known, lambda given, w=world: ladder_keys(given, w))
        yield GateStepFacts(
            str(state.step_id),
            trace.trace_id,
            tuple(words),
            str(operation),
            trace.outcome,
            past.result.is_error,
            at,
            None if second is None else second.entropy,
        )
        _record_step(past, act, operation, target, result)


def _results(context: Context, cut: int) -> tuple[Message, ...]:
    """Return what follows an action until the agent acts again.

    That is its tool results, or the answer to an action written as text.
    """
    found: list[Message] = []
    for message in context.messages[cut + 1 : cut + 65]:
        if message.role == "assistant":
            break
        if message.role == "tool" or not context.messages[cut].tool_calls:
            found.append(message)
    return tuple(found)


def _read_messages(past: _Past, context: Context, cut: int) -> None:
    asked: Message | None = None
    for message in context.messages[past.counted : cut]:
        past.chars += len(message.content) + sum(len(call.arguments) for call in message.tool_calls)
        asked = message if message.role == "user" else asked if message.role == "system" else None
    past.counted = cut
    past.request = None if asked is None else UserRequest.of(asked.content)


def _record_step(past: _Past, act: str, operation: Operation, target: str | None, result: CallResult) -> None:
    past.acts.append(act)
    past.seen.add(act)
    past.operation, past.result = str(operation), result
    past.since_edit = 0 if operation in WRITES else min(past.since_edit + 1, _NEVER)
    past.since_test = 0 if operation == Operation.RUN_TEST else min(past.since_test + 1, _NEVER)
    if target and not result.is_error:
        past.read.add(target)


def _next(trace: Trace, context: Context, at: int, act: str, operation: Operation, target: str | None) -> str:
    """Return how the next action relates to this one, or `end`."""
    if at + 1 >= len(context.steps):
        return "end"
    following = Action.of(context.messages[context.steps[at + 1].cut])
    if exact_key(following) == act:
        return "same"
    then, other = find_operation_and_target(following, trace.harness)
    if target is not None and other == target:
        return "again" if then == operation else "same_target"
    return "same_operation" if then == operation else "other"


def _repeated(past: _Past, act: str) -> str:
    """Return `last` for a repeat of the step before, `loop` for A-B-A-B, `before` for an earlier one."""
    acts = past.acts
    if acts and acts[-1] == act:
        return "last"
    if len(acts) >= 3 and acts[-2] == act and acts[-1] == acts[-3]:
        return "loop"
    return "before" if act in past.seen else "no"


def _why(action: Action, known: ActionKeys, world: EnvironmentState, tools: Sequence[ToolSpec]) -> str:
    why = why_calls_invalid(action, tools) if tools else None
    why = why or why_text_invalid(action, tools, world.harness)
    return (why or why_action_impossible(action, known, world) or "no").replace(" ", "_")


def _second_words(
    second: SecondOpinion, known: ActionKeys, keys_of: Callable[[Action], ActionKeys]
) -> list[str]:
    words: list[str] = []
    if second.action is not None:
        words.append(f"second={_level(keys_of(second.action), known)}")
    if second.entropy is not None:
        words.append(f"entropy={min(int(4 * second.entropy), 8)}")
    return words


def _level(one: ActionKeys, other: ActionKeys) -> str:
    """Return the lowest level on which two actions are alike."""
    if one.effect == other.effect:
        return "effect"
    if one.intent == other.intent:
        return "intent"
    return "class" if one.action_class == other.action_class else "different"


def _length(action: Action) -> int:
    """Return the length of an action in half powers of two: of its calls, else of its text."""
    return _half_power(sum(len(call.arguments) for call in action.tool_calls) or len(action.text))


def _half_power(size: int) -> int:
    return round(2 * math.log2(size + 1))


def _power(size: int) -> int:
    return size.bit_length()


def _since(steps: int) -> str:
    return "never" if steps >= _NEVER else str(_power(steps))


def _yes(value: bool) -> str:
    return "yes" if value else "no"
