"""What is known of a step without asking anybody, as short readable words: `length=7`, `before=edit`.

A context is gone over once, so that all T steps of a trace cost O(T). A word is one bucket of a feature;
numbers are put into buckets by powers of two. What followed the action is among the features, because a
recorded session shows it.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tracemill.agreement.calls.canonical import exact_key
from tracemill.agreement.equivalence.ladder import Keys, ladder_keys
from tracemill.agreement.equivalence.validity import (
    why_action_impossible,
    why_calls_invalid,
    why_text_invalid,
)
from tracemill.agreement.world.fold_context import record_of, world_of
from tracemill.agreement.world.world_state import World
from tracemill.harnesses.core.vocabulary import Operation
from tracemill.harnesses.operations import find_operation_and_target
from tracemill.records.message import Action, Message, ToolSpec
from tracemill.records.trace import Context, Trace, TraceState
from tracemill.teachers.gate.request_features import Request, request_feature_words
from tracemill.teachers.gate.result_features import NOTHING_YET, Came, read_result_features

WRITES = (Operation.EDIT, Operation.CREATE)
_HEDGES = re.compile(
    r"\b(?:maybe|perhaps|not sure|i think|might|let me try|another approach)\b", re.IGNORECASE
)
_NEVER = 99
_DIGITS = 8
"""Of the digest of a project, which is made under the workspace's redaction key."""


@dataclass(frozen=True, slots=True)
class Second:
    """What is known of a step from a second student, or from a cheap teacher that was heard before:
    its action, and the mean entropy of its tokens in nats where it gave log probabilities."""

    action: Action | None = None
    entropy: float | None = None


@dataclass(frozen=True, slots=True)
class StepFacts:
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
    """What happened in a context before a step."""

    acts: list[str] = field(default_factory=list[str])
    seen: set[str] = field(default_factory=set[str])
    read: set[str] = field(default_factory=set[str])
    operation: str = "none"
    came: Came = NOTHING_YET
    since_edit: int = _NEVER
    since_test: int = _NEVER
    chars: int = 0
    counted: int = 0
    request: Request | None = None
    """What the user asked last, where nothing was done about it yet."""


def build_step_features(
    trace: Trace,
    tools: Mapping[int, tuple[ToolSpec, ...]],
    seconds: Mapping[str, Second] | None = None,
) -> list[StepFacts]:
    """The facts of every step of a trace, in order. `tools` has those shown in each context, `seconds` what
    was heard from a second student, by step id."""
    found: list[StepFacts] = []
    for context in trace.contexts:
        found += _of_context(trace, context, tools.get(context.index, context.tools), seconds or {})
    return found


def _of_context(
    trace: Trace, context: Context, tools: tuple[ToolSpec, ...], seconds: Mapping[str, Second]
) -> Iterator[StepFacts]:
    record, past = record_of(context, trace.harness), _Past()
    last = context is trace.contexts[-1]
    for at, step in enumerate(context.steps):
        state = TraceState(trace, context, step)
        world, action = world_of(state, tools, record), state.student_action
        known, second = ladder_keys(action, world), seconds.get(str(state.step_id))
        came, act = read_result_features(_results(context, step.cut)), exact_key(action)
        operation, target = find_operation_and_target(action, trace.harness)
        _read_on(past, context, step.cut)
        ended = last and at == len(context.steps) - 1
        words = [
            f"op={operation}",
            f"before={past.operation}",
            f"prev={past.came.kind}",
            f"prev_length={_power(past.came.length)}",
            f"own={came.kind}",
            f"own_length={_power(came.length)}",
            f"op*own={operation}*{came.kind}",
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
        yield StepFacts(
            str(state.step_id),
            trace.trace_id,
            tuple(words),
            str(operation),
            trace.outcome,
            past.came.is_error,
            at,
            None if second is None else second.entropy,
        )
        _note(past, act, operation, target, came)


def _results(context: Context, cut: int) -> tuple[Message, ...]:
    """What follows an action until the agent acts again: tool results; to an action in text, the answer."""
    found: list[Message] = []
    for message in context.messages[cut + 1 : cut + 65]:
        if message.role == "assistant":
            break
        if message.role == "tool" or not context.messages[cut].tool_calls:
            found.append(message)
    return tuple(found)


def _read_on(past: _Past, context: Context, cut: int) -> None:
    asked: Message | None = None
    for message in context.messages[past.counted : cut]:
        past.chars += len(message.content) + sum(len(call.arguments) for call in message.tool_calls)
        asked = message if message.role == "user" else asked if message.role == "system" else None
    past.counted = cut
    past.request = None if asked is None else Request.of(asked.content)


def _note(past: _Past, act: str, operation: Operation, target: str | None, came: Came) -> None:
    past.acts.append(act)
    past.seen.add(act)
    past.operation, past.came = str(operation), came
    past.since_edit = 0 if operation in WRITES else min(past.since_edit + 1, _NEVER)
    past.since_test = 0 if operation == Operation.RUN_TEST else min(past.since_test + 1, _NEVER)
    if target and not came.is_error:
        past.read.add(target)


def _next(trace: Trace, context: Context, at: int, act: str, operation: Operation, target: str | None) -> str:
    """What the agent did after this: the same again, the same on another target or the other way round,
    something else, or nothing."""
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
    """`last` where the step before did the same, `loop` in an A-B-A-B, `before` where it was done earlier."""
    acts = past.acts
    if acts and acts[-1] == act:
        return "last"
    if len(acts) >= 3 and acts[-2] == act and acts[-1] == acts[-3]:
        return "loop"
    return "before" if act in past.seen else "no"


def _why(action: Action, known: Keys, world: World, tools: Sequence[ToolSpec]) -> str:
    why = why_calls_invalid(action, tools) if tools else None
    why = why or why_text_invalid(action, tools, world.harness)
    return (why or why_action_impossible(action, known, world) or "no").replace(" ", "_")


def _second_words(second: Second, known: Keys, keys_of: Callable[[Action], Keys]) -> list[str]:
    words: list[str] = []
    if second.action is not None:
        words.append(f"second={_rung(keys_of(second.action), known)}")
    if second.entropy is not None:
        words.append(f"entropy={min(int(4 * second.entropy), 8)}")
    return words


def _rung(one: Keys, other: Keys) -> str:
    """The lowest rung on which two actions are alike."""
    if one.effect == other.effect:
        return "effect"
    if one.intent == other.intent:
        return "intent"
    return "class" if one.cls == other.cls else "different"


def _length(action: Action) -> int:
    """The length of an action in half powers of two of its characters: of its calls, else of its text."""
    return _half_power(sum(len(call.arguments) for call in action.tool_calls) or len(action.text))


def _half_power(size: int) -> int:
    return round(2 * math.log2(size + 1))


def _power(size: int) -> int:
    return size.bit_length()


def _since(steps: int) -> str:
    return "never" if steps >= _NEVER else str(_power(steps))


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"
