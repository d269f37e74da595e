"""When two actions are the same: keys that are equal exactly then.

Two levels of the ladder, exact and canonical; equal exact keys imply equal canonical ones. A key is a
short text, operation and digest, so that a vote is a count of keys and can be counted again later. With
calls an action is its calls alone; its text does not count.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from tracemill.agreement.calls.arguments import canonical_arguments, fold_text, whole_number_arguments
from tracemill.harnesses.core.schema_builders import clean_schema_name
from tracemill.harnesses.core.vocabulary import Operation
from tracemill.harnesses.operations import (
    choose_action_operation,
    find_tool_operation,
    resolve_operation_tool,
)
from tracemill.harnesses.shell.operations import Effect
from tracemill.harnesses.shell.program_tables import TEXT_ALONE
from tracemill.harnesses.text_calls import tool_or_text_calls
from tracemill.records.fast_dataclass import quick_init
from tracemill.records.identity import canonical_json, digest
from tracemill.records.message import Action, ToolCall, ToolSpec, read_arguments

EMPTY_KEY = "empty"
_ANSWERS = ("answer", "final_answer", "flag", "solution", "value")
"""Arguments of an end that hold what was asked for, and not what is said of the work."""
_WITH = "="
_ENDS = frozenset({Operation.FINISH, Operation.ASK})


@quick_init
@dataclass(frozen=True, slots=True)
class Canonical:
    """An action in normal form: its key, and what it does. `counting`: the calls it is compared by in order,
    each with its arguments in normal form (None where they are no object) and its effect."""

    key: str
    operation: Operation
    counting: tuple[tuple[ToolCall, dict[str, Any] | None, Effect], ...] = ()


def exact_key(action: Action) -> str:
    """The key of the action as it stands: same tools, same JSON values, same text where no tool is called."""
    if action.tool_calls:
        parts = [_exact_text(call) for call in action.tool_calls]
        return f"exact:{digest('calls', *parts)}"
    text = action.text if action.text.isascii() else unicodedata.normalize("NFC", action.text)
    text = text.strip()
    return f"exact:{digest('text', text)}" if text else EMPTY_KEY


def canonical_key(
    action: Action, tools: Sequence[ToolSpec] = (), cwd: str | None = None, harness: str = ""
) -> str:
    """The key of what the action does, spelling apart (see `canonicalize_action`)."""
    return canonicalize_action(action, tools, cwd, harness).key


def canonicalize_action(
    action: Action, tools: Sequence[ToolSpec] = (), cwd: str | None = None, harness: str = ""
) -> Canonical:
    """The action in normal form.

    Finishing is one class, giving up is another, asking the user a third, refusing in a text a fourth, and a
    text that only announces an act is none of them: how it is worded does not count, but an answer that is
    handed in does.
    Calls are compared by tool and normal arguments; notes on a plan beside other calls are left out;
    neighbouring read-only calls are a set, mutating ones a sequence. What cannot be read is
    compared as folded text, and equals nothing that can. Never raises.
    """
    calls = [resolve_operation_tool(call, harness) for call in tool_or_text_calls(action, harness)]
    effects = [find_tool_operation(call, harness) for call in calls]
    operation, target = choose_action_operation(effects, action, harness)
    counting: list[tuple[ToolCall, dict[str, Any] | None, Effect]] = []
    for call, effect in _counting(calls, effects):
        counting.append((call, canonical_arguments(call, _tool(call, tools), cwd, harness), effect))
    if operation in _ENDS and len(counting) <= 1:
        key = end_key(operation, counting[0][2].target if counting else target)
        answer = _answer_of(counting[0][1]) if counting else None
        key += f"{_WITH}{digest(answer)}" if answer is not None else ""
    elif not counting:
        key = EMPTY_KEY
    else:
        keys = [_call_text(call, arguments) for call, arguments, _ in counting]
        ordered = order_canonical_keys(keys, [effect.mutating for _, _, effect in counting])
        key = f"{operation}:{digest(*ordered)}"
    return Canonical(key, operation, tuple(counting))


def end_key(operation: Operation, target: str | None) -> str:
    """The key of an end: finishing the task is one whatever is said, giving it up is another. Refusing it, or
    announcing an act and not doing it, is neither, though of the intent of finishing."""
    if operation != Operation.FINISH or target is None:
        return str(operation)
    return f"{operation}{_WITH if target in TEXT_ALONE else ':'}{target}"


def end_of(key: str) -> str:
    """The key of an end without the answer that is handed in with it, or what its text alone says."""
    return key.partition(_WITH)[0]


def _answer_of(arguments: dict[str, Any] | None) -> str | None:
    told = (arguments.get(name) for name in _ANSWERS) if arguments else ()
    answer = next((each for each in told if each not in (None, "", [], {})), None)
    return (
        None if answer is None else fold_text(answer if isinstance(answer, str) else canonical_json(answer))
    )


def _counting(calls: Sequence[ToolCall], effects: Sequence[Effect]) -> list[tuple[ToolCall, Effect]]:
    every = list(zip(calls, effects, strict=True))
    if len(every) == 1:
        return every
    return [each for each in every if each[1].operation != Operation.PLAN] or every


def order_canonical_keys(keys: Sequence[str], mutating: Sequence[bool]) -> Sequence[str]:
    """The keys in order, each run of read-only ones sorted and without repeats."""
    if len(keys) == 1:
        return keys
    ordered: list[str] = []
    run: set[str] = set()
    for key, changes in zip(keys, mutating, strict=True):
        if changes:
            ordered.extend((*sorted(run), key))
            run.clear()
        else:
            run.add(key)
    return [*ordered, *sorted(run)]


def _tool(call: ToolCall, tools: Sequence[ToolSpec]) -> ToolSpec | None:
    name = clean_schema_name(call.name)
    for tool in tools:
        if tool.name == name:
            return tool
    return None


def _call_text(call: ToolCall, arguments: dict[str, Any] | None) -> str:
    if arguments is None:
        return canonical_json(["raw", clean_schema_name(call.name), fold_text(call.arguments)])
    return f'["parsed","{clean_schema_name(call.name)}",{_json(arguments)}]'


def _exact_text(call: ToolCall) -> str:
    parsed = read_arguments(call.arguments)
    if parsed is None:
        return canonical_json(["raw", call.name, call.arguments.strip()])
    return _json(["parsed", call.name, whole_number_arguments(parsed)])


def _json(value: Any) -> str:
    """JSON with sorted keys; `canonical_json` where the quick way does not take a value."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except (TypeError, RecursionError):
        return canonical_json(value)
