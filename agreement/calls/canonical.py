"""Build exact and canonical keys of actions: two actions are the same where keys are equal.

Equal exact keys imply equal canonical keys. A key is a short text (operation and digest), so that votes can
be counted again from stored rows. An action with calls is its calls alone; its text does not count.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from tracemill.agreement.calls.arguments import canonical_arguments, fold_text
from tracemill.harnesses.core.schema_builders import clean_schema_name
from tracemill.harnesses.core.vocabulary import Operation
from tracemill.harnesses.operations import (
    choose_action_operation,
    find_tool_operation,
    resolve_operation_tool,
)
from tracemill.harnesses.shell.operations import CommandEffect
from tracemill.harnesses.shell.program_tables import TEXT_TARGETS
from tracemill.harnesses.text_calls import tool_or_text_calls
from tracemill.records.identity import canonical_json, digest
from tracemill.records.message import Action, ToolCall, ToolSpec, read_arguments

EMPTY_KEY = "empty"
_ANSWERS = ("answer", "final_answer", "flag", "solution", "value")
"""Arguments of a finishing call that hold the requested answer, not a summary of the work."""
_WITH = "="
_ENDS = frozenset({Operation.FINISH, Operation.ASK})


@dataclass(frozen=True, slots=True)
class CanonicalAction:
    """An action in normal form: its key and operation.

    `counting` has the calls it is compared by, in order, each with its normalised arguments (None if they
    are no object) and its effect.
    """

    key: str
    operation: Operation
    counting: tuple[tuple[ToolCall, dict[str, Any] | None, CommandEffect], ...] = ()


def exact_key(action: Action) -> str:
    """Return the key of the action as written.

    Equal keys mean the same tools and JSON values, or the same text where no tool is called.
    """
    if action.tool_calls:
        parts = [_exact_text(call) for call in action.tool_calls]
        return f"exact:{digest('calls', *parts)}"
    text = action.text if action.text.isascii() else unicodedata.normalize("NFC", action.text)
    text = text.strip()
    return f"exact:{digest('text', text)}" if text else EMPTY_KEY


def canonical_key(
    action: Action, tools: Sequence[ToolSpec] = (), cwd: str | None = None, harness: str = ""
) -> str:
    """Return a key that is equal for actions of one effect in any spelling (see `canonicalize_action`)."""
    return canonicalize_action(action, tools, cwd, harness).key


def canonicalize_action(
    action: Action, tools: Sequence[ToolSpec] = (), cwd: str | None = None, harness: str = ""
) -> CanonicalAction:
    """Return the action in normal form. Never raise on what a model may emit.

    Finishing, giving up, asking the user and refusing in a text are one class each whatever their wording; an
    answer that a call hands in counts, and so does what it asks. A text that only announces an action is none
    of them. Calls are compared by tool and normalised arguments; the order of neighbouring calls that only
    read, or of tools that no harness knows, does not count. Unreadable arguments are compared as folded text.
    """
    calls = [resolve_operation_tool(call, harness) for call in tool_or_text_calls(action, harness)]
    effects = [find_tool_operation(call, harness) for call in calls]
    operation, target = choose_action_operation(effects, action, harness)
    counting = [
        (call, canonical_arguments(call, _tool(call, tools), cwd, harness), effect)
        for call, effect in zip(calls, effects, strict=True)
    ]
    if operation in _ENDS and len(counting) <= 1:
        key = end_key(operation, counting[0][2].target if counting else target)
        answer = _answer_of(*counting[0][:2], operation) if counting else None
        key += f"{_WITH}{digest(answer)}" if answer is not None else ""
    elif not counting:
        key = EMPTY_KEY
    else:
        keys = [_call_text(call, arguments) for call, arguments, _ in counting]
        ordered = [effect.mutating and effect.operation != Operation.OTHER for *_, effect in counting]
        key = f"{operation}:{digest(*order_canonical_keys(keys, ordered))}"
    return CanonicalAction(key, operation, tuple(counting))


def end_key(operation: Operation, target: str | None) -> str:
    """Return the key of an action that ends the session or asks the user.

    `target` distinguishes the ways to end: None for finished, else given up, refused or only announced.
    """
    if operation != Operation.FINISH or target is None:
        return str(operation)
    return f"{operation}{_WITH if target in TEXT_TARGETS else ':'}{target}"


def end_of(key: str) -> str:
    """Return the key of an ending action without the digest of its answer."""
    return key.partition(_WITH)[0]


def _answer_of(call: ToolCall, arguments: dict[str, Any] | None, operation: Operation) -> str | None:
    """Return what a call that ends the work hands in, or what it asks the user; None if neither."""
    if operation == Operation.ASK:
        return _call_text(call, arguments)
    values = (arguments.get(name) for name in _ANSWERS) if arguments else ()
    answer = next((each for each in values if each not in (None, "", [], {})), None)
    return (
        None if answer is None else fold_text(answer if isinstance(answer, str) else canonical_json(answer))
    )


def order_canonical_keys(keys: Sequence[str], ordered: Sequence[bool]) -> Sequence[str]:
    """Return the keys in order, each run of those whose order does not matter sorted."""
    found: list[str] = []
    run: list[str] = []
    for key, in_order in zip(keys, ordered, strict=True):
        if in_order:
            found.extend((*sorted(run), key))
            run.clear()
        else:
            run.append(key)
    return [*found, *sorted(run)]


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
    return _json(["parsed", call.name, parsed])


def _json(value: Any) -> str:
    """Return JSON with sorted keys; `canonical_json` for values that orjson refuses."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except (TypeError, RecursionError):
        return canonical_json(value)
