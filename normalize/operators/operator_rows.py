"""Flat rows of pairs and single actions, as operators read them.

They do not hold the messages of the state: operators only need to know whether two states are equal.
"""

import json
from typing import Any

import orjson

from tracemill.harnesses.operations import find_action_operation
from tracemill.harnesses.text_calls import tool_or_text_calls
from tracemill.records.action_row import ActionRow
from tracemill.records.identity import canonical_json, digest
from tracemill.records.message import Action, Message, ToolCall, render_turn
from tracemill.records.pair import DPOPair

RAISED = "operator raised"  # reason of a row that made an operator raise; its value is the type of the error
_SIDE_FIELDS = ("", "_said", "_calls", "_messages", "_operation")
ACTION_FIELDS = (
    "row",
    "row_id",
    "label_source",
    "source",
    "harness",
    *(f"chosen{name}" for name in _SIDE_FIELDS),
)
ROW_FIELDS = (
    *ACTION_FIELDS,
    *(f"rejected{name}" for name in _SIDE_FIELDS),
    "verified",
    "calls_differ",
    "preference",
)


def to_row(index: int, pair: DPOPair) -> dict[str, Any]:
    """Build the operator row of a pair: the columns `ROW_FIELDS`.

    `index` is the index of the pair and comes back with the verdict. `calls_differ` is True if the sides call
    different tools or with different arguments. `preference` is a digest of the state and both sides.
    """
    chosen, rejected = render_turn(pair.chosen), render_turn(pair.rejected)
    return {
        "row": index,
        "row_id": pair.pair_id,
        "label_source": pair.label_source,
        "source": pair.source,
        "harness": pair.harness,
        **_side("chosen", chosen, pair.chosen, pair.harness, pair.chosen_operation),
        **_side("rejected", rejected, pair.rejected, pair.harness, pair.rejected_operation),
        "verified": pair.verified,
        "calls_differ": _call_keys(pair.chosen, pair.harness) != _call_keys(pair.rejected, pair.harness),
        "preference": digest(pair.state_key or pair.step_id, chosen, rejected),
    }


def to_action_row(index: int, action: ActionRow) -> dict[str, Any]:
    """Build the operator row of a single action: the columns `ACTION_FIELDS`.

    The action fills the `chosen*` columns; the `rejected*` columns are absent. `index` is the index of the
    action and comes back with the verdict.
    """
    turn = (action.message,)
    operation = str(find_action_operation(Action.of(action.message), action.harness))
    return {
        "row": index,
        "row_id": action.row_id,
        "label_source": action.label_source,
        "source": action.source,
        "harness": action.harness,
        **_side("chosen", render_turn(turn), turn, action.harness, operation),
    }


def dump_operator_row(row: dict[str, Any]) -> bytes:
    """Encode a row as a line of JSON, in ASCII if it has lone surrogates, which UTF-8 cannot hold."""
    try:
        return orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:
        return f"{json.dumps(row)}\n".encode("ascii")


def load_row(line: bytes) -> dict[str, Any]:
    """Decode a line of `dump_operator_row`."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return json.loads(line)


def _side(
    name: str, text: str, messages: tuple[Message, ...], harness: str, operation: str
) -> dict[str, Any]:
    """Return the fields of a side.

    They are its flat text, its text without tool calls, its numbers of calls and messages, and its operation.
    """
    return {
        name: text,
        f"{name}_said": "\n\n".join(message.content for message in messages),
        f"{name}_calls": len(_calls(messages, harness)),
        f"{name}_messages": len(messages),
        f"{name}_operation": operation,
    }


def _calls(messages: tuple[Message, ...], harness: str) -> list[ToolCall]:
    """Return the calls of a side, including calls written in text."""
    return [call for each in messages for call in tool_or_text_calls(Action.of(each), harness)]


def _call_keys(messages: tuple[Message, ...], harness: str) -> list[tuple[str, str]]:
    return [(call.name, _arguments(call)) for call in _calls(messages, harness)]


def _arguments(call: ToolCall) -> str:
    parsed = call.parsed()
    return call.arguments if parsed is None else canonical_json(parsed)
