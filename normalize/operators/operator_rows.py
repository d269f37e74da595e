"""A pair as the flat row operators see.

The state stays out of it: contexts are references until the release writer, and no operator of a
recipe needs them.
"""

import json
from typing import Any

import orjson

from tracemill.records.message import Message, render_turn
from tracemill.records.pair import DPOPair

RAISED = "operator raised"  # the reason of a row that made an operator raise; its value is the error's type
ROW_FIELDS = (
    "row",
    "pair_id",
    "label_source",
    "source",
    "harness",
    "chosen",
    "rejected",
    "chosen_calls",
    "rejected_calls",
    "chosen_said",
    "rejected_said",
    "chosen_messages",
    "rejected_messages",
    "chosen_operation",
    "rejected_operation",
)


def to_row(index: int, pair: DPOPair) -> dict[str, Any]:
    """The row of a pair: both sides as flat text, what they say without calls, their numbers of calls
    and messages, and where it is from.

    `index` is its place in the input and comes back with the verdict.
    """
    return {
        "row": index,
        "pair_id": pair.pair_id,
        "label_source": pair.label_source,
        "source": pair.source,
        "harness": pair.harness,
        "chosen": render_turn(pair.chosen),
        "rejected": render_turn(pair.rejected),
        "chosen_calls": _calls(pair.chosen),
        "rejected_calls": _calls(pair.rejected),
        "chosen_said": _said(pair.chosen),
        "rejected_said": _said(pair.rejected),
        "chosen_messages": len(pair.chosen),
        "rejected_messages": len(pair.rejected),
        "chosen_operation": pair.chosen_operation,
        "rejected_operation": pair.rejected_operation,
    }


def dump_operator_row(row: dict[str, Any]) -> bytes:
    """A row as a line of JSON; lone surrogates, which no UTF-8 can hold, as they are written in ASCII."""
    try:
        return orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:
        return f"{json.dumps(row)}\n".encode("ascii")


def load_row(line: bytes) -> dict[str, Any]:
    """The inverse of `dump_operator_row`."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return json.loads(line)


def _said(messages: tuple[Message, ...]) -> str:
    return "\n\n".join(message.content for message in messages)


def _calls(messages: tuple[Message, ...]) -> int:
    return sum(len(message.tool_calls) for message in messages)
