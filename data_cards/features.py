"""Columns of the configs of a release.

`prompt`, `chosen`, `rejected`, `completion`, `label` and `tools` are TRL's conversational formats for
preferences, prompt and completion, and unpaired preferences; `prompt`, `completions` and `labels` of `prm`
its stepwise supervision (https://huggingface.co/docs/trl/v1.13.0/dataset_formats). Calls and schemas are JSON
columns: as plain structs Arrow would give every call the keys of all others, filled with None.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from datasets import Features

VIEWS = ("dpo_json", "sft", "kto", "prm", "hints", "soft")
"""Configs that say the same as pairs and votes in the form of other readers and trainers."""
CONFIGS = ("dpo", *VIEWS, "votes", "dropped")
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
ORIGIN_COLUMNS = (
    "trace_id",
    "source",
    "harness",
    "presentation",
    "student_model",
    "student_family",
    "repository",
    "instance_id",
    "licence",
    "outcome",
)
_DPO = {
    "n_teachers_agreeing": "int32",
    "simulated": "bool",
    "cost_usd": "float64",
    "chosen_chars": "int64",
    "rejected_chars": "int64",
    "n_tokens": "int64",
    "n_tokens_whole": "int64",
    "cut": "string",
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
    "simulated": "bool",
}
_DROPPED = {
    "operator": "string",
    "reason": "string",
    "value": "string",
    "simulated": "bool",
    "chosen_text": "string",
    "rejected_text": "string",
}
_SOFT = {"verdict": "string", "student": "int32", "simulated": "bool", "cost_usd": "float64"}
_OTHERS = (
    "prompt",
    "chosen",
    "rejected",
    "completion",
    "completions",
    "label",
    "labels",
    "privileged_context",
    "kind",
    "step_ids",
    "label_sources",
    "weights",
    "counts",
    "operations",
    "role",
    "content",
    "tool_calls",
    "tool_call_id",
    "name",
    "tools",
    "families",
    "teachers",
)


def column_names() -> list[str]:
    """Every column of every config."""
    return [*PAIR_COLUMNS, *_DPO, *_VOTES, *_DROPPED, *_SOFT, *_OTHERS]


def features_of(config: str) -> "Features":
    """The `datasets` features of a config; imports `datasets`."""
    from datasets import Features, Json, List, Value

    messages = _messages(List(Json()))
    plain_messages = _messages(Value("string"))
    tools = List(Json())
    strings = List(Value("string"))
    pair = {name: Value("string") for name in PAIR_COLUMNS}
    marked = {**pair, "simulated": Value("bool")}
    step = {"step_id": Value("string"), **{name: Value("string") for name in ORIGIN_COLUMNS}}
    sides = {"chosen": messages, "rejected": messages}
    columns: dict[str, dict[str, Any]] = {
        "dpo": {
            "prompt": messages,
            **sides,
            "tools": tools,
            **pair,
            **_plain(_DPO),
            "families": strings,
            "teachers": strings,
        },
        "dpo_json": {
            **dict.fromkeys(("prompt", "chosen", "rejected"), plain_messages),
            "tools": Value("string"),
            **pair,
            **_plain(_DPO),
            "families": strings,
            "teachers": strings,
        },
        "sft": {"prompt": messages, "completion": messages, "tools": tools, **marked},
        "kto": {"prompt": messages, "completion": messages, "label": Value("bool"), "tools": tools, **marked},
        "prm": {
            "prompt": Value("string"),
            "completions": strings,
            "labels": List(Value("bool")),
            "kind": Value("string"),
            "step_ids": strings,
            "label_sources": strings,
            **{name: Value("string") for name in ORIGIN_COLUMNS},
            "simulated": Value("bool"),
        },
        "hints": {"prompt": messages, "privileged_context": Value("string"), "tools": tools, **marked},
        "soft": {
            "prompt": messages,
            "completions": List(messages),
            "weights": List(Value("float64")),
            "counts": List(Value("int32")),
            "operations": strings,
            "teachers": List(strings),
            "tools": tools,
            **step,
            **_plain(_SOFT),
        },
        "votes": _plain(_VOTES),
        "dropped": {**pair, **_plain(_DROPPED), **sides},
    }
    return Features(columns[config])


def _plain(columns: Mapping[str, str]) -> dict[str, Any]:
    from datasets import Value

    return {name: Value(kind) for name, kind in columns.items()}


def _messages(calls: Any) -> Any:
    from datasets import List, Value

    texts = {name: Value("string") for name in ("role", "content", "tool_call_id", "name")}
    return List({"role": texts["role"], "content": texts["content"], "tool_calls": calls} | texts)


def has_json(config: str) -> bool:
    """Whether a config has columns that only `datasets` 4.7 and later read."""
    return "'Json'" in str(features_of(config).to_dict())


def written_schema(features: "Features") -> pa.Schema:
    """The Arrow schema a table is written with. Features without JSON columns go without the note for
    `datasets`, which readers older than 4.0 do not understand; they are told from the columns."""
    schema = features.arrow_schema
    return schema if "'Json'" in str(features.to_dict()) else schema.remove_metadata()


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
