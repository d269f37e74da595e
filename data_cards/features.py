"""Columns of the three configs of a release.

`prompt`, `chosen`, `rejected` and `tools` are TRL's conversational preference format. Calls and schemas
are JSON columns: as plain structs Arrow would give every call the keys of all others, filled with None.
"""

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from datasets import Features

CONFIGS = ("dpo", "votes", "dropped")
PAIR_COLUMNS = (
    "pair_id",
    "step_id",
    "trace_id",
    "label_source",
    "verified",
    "chosen_operation",
    "rejected_operation",
    "student_model",
    "student_family",
    "policy",
    "presentation",
    "source",
    "harness",
    "repository",
    "instance_id",
    "outcome",
    "licence",
    "evidence",
)
_DPO = {
    "n_teachers_agreeing": "int32",
    "simulated": "bool",
    "cost_usd": "float64",
    "chosen_chars": "int64",
    "rejected_chars": "int64",
    "recipe": "string",
    "chosen_wire": "string",
    "rejected_wire": "string",
}
_VOTES = {
    "step_id": "string",
    "pair_id": "string",
    "verdict": "string",
    "label_source": "string",
    "teacher": "string",
    "family": "string",
    "sample": "int32",
    "counted": "bool",
    "reason": "string",
    "key": "string",
    "operation": "string",
    "agrees": "bool",
    "cost_usd": "float64",
    "request_key": "string",
}
_DROPPED = {
    "operator": "string",
    "reason": "string",
    "value": "string",
    "simulated": "bool",
    "chosen_text": "string",
    "rejected_text": "string",
}


def column_names() -> list[str]:
    """Every column of every config."""
    messages = (
        "prompt",
        "chosen",
        "rejected",
        "role",
        "content",
        "tool_calls",
        "tool_call_id",
        "name",
        "tools",
    )
    return [*PAIR_COLUMNS, *_DPO, *_VOTES, *_DROPPED, *messages, "families", "teachers"]


def features_of(config: str) -> "Features":
    """The `datasets` features of a config; imports `datasets`."""
    from datasets import Features, Json, List, Value

    messages = List(
        {
            "role": Value("string"),
            "content": Value("string"),
            "tool_calls": List(Json()),
            "tool_call_id": Value("string"),
            "name": Value("string"),
        }
    )
    pair = {name: Value("string") for name in PAIR_COLUMNS}
    if config == "votes":
        return Features({name: Value(kind) for name, kind in _VOTES.items()})
    sides = {"chosen": messages, "rejected": messages}
    if config == "dropped":
        return Features({**pair, **{n: Value(k) for n, k in _DROPPED.items()}, **sides})
    lists = {"families": List(Value("string")), "teachers": List(Value("string"))}
    plain = {name: Value(kind) for name, kind in _DPO.items()}
    return Features({"prompt": messages, **sides, "tools": List(Json()), **pair, **plain, **lists})


def storage_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with JSON columns as the strings they are stored as: what Arrow can build from Python
    values, to be cast to `schema`."""
    return pa.schema([pa.field(field.name, _storage(field.type)) for field in schema])


def _storage(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.BaseExtensionType):
        return kind.storage_type
    if pa.types.is_list(kind):
        return pa.list_(pa.field("item", _storage(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _storage(field.type)) for field in kind])
    return kind
