"""Columns of the configs of a release.

`prompt`, `chosen`, `rejected`, `completion`, `label` and `tools` are TRL's conversational formats for
preferences, prompt and completion, and unpaired preferences; `prompt`, `completions` and `labels` of `prm`
are its stepwise supervision (https://huggingface.co/docs/trl/v1.13.0/dataset_formats). Calls and schemas are
JSON columns: as structs, Arrow would give every call the keys of all others, filled with None.
"""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from datasets import Features

Tables = dict[str, dict[str, Any]]

VIEWS = ("dpo_json", "sft", "agreed", "solved", "kto", "prm", "hints", "soft")
"""Configs other than pairs and votes, in the formats of other readers and trainers."""
ACTIONS = ("sft", "agreed", "solved")
"""Configs whose rows are single actions."""
SHORTENED = ("dpo", "sft", "kto")
"""Configs that also exist for trainers with short contexts, such as `sft_4k`."""
_SHORT = re.compile(rf"({'|'.join(SHORTENED)})_\d+k")
_ORIGIN_TEXT = """trace_id source harness presentation student_model student_family repository instance_id
    licence outcome"""
ORIGIN_COLUMNS = tuple(_ORIGIN_TEXT.split())
_PAIR_TEXT = """pair_id step_id trace_id label_source verified chosen_operation rejected_operation
    student_model student_family policy presentation source harness repository instance_id outcome licence
    evidence"""
PAIR_COLUMNS = tuple(_PAIR_TEXT.split())
_DPO = {
    "n_teachers_agreeing": "int32",
    "weight": "float64",
    "simulated": "bool",
    "cost_usd": "float64",
    "chosen_chars": "int64",
    "rejected_chars": "int64",
    "n_tokens": "int64",
    "n_tokens_whole": "int64",
    "cut": "string",
    "recipe": "string",
}
_READ_FIRST_TEXT = """chosen_operation rejected_operation label_source evidence verified n_teachers_agreeing
    teachers repository"""
_READ_FIRST = tuple(_READ_FIRST_TEXT.split())
"""Columns that stand behind the sides of a pair, where a viewer shows them; long ones stand last."""
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
_SOFT = {
    "verdict": "string",
    "evidence": "string",
    "student": "int32",
    "simulated": "bool",
    "cost_usd": "float64",
}
_ACTION_TEXTS = (
    *("step_id", "pair_id", "label_source", "verified", "operation", "verdict", "evidence"),
    *ORIGIN_COLUMNS,
)
_ACTION = {
    "same_as_student": "bool",
    "n_teachers_agreeing": "int32",
    "n_votes": "int32",
    "simulated": "bool",
    "cost_usd": "float64",
    "weight": "float64",
    "outcome_weight": "float64",
    "outcome_support": "int32",
}
_OTHERS = """prompt chosen rejected completion completions label labels privileged_context kind step_ids
    label_sources candidates count agreed role content tool_calls tool_call_id name tools families teachers
    chosen_wire rejected_wire"""


def short_config(config: str, max_tokens: int) -> str:
    """Return the name of a config cut to `max_tokens`, a multiple of 1,024."""
    return f"{config}_{max_tokens // 1024}k"


def base_config(config: str) -> str:
    """Return the config that a cut one is made from, and any other name as it is."""
    match = _SHORT.fullmatch(config)
    return match[1] if match else config


def column_names() -> list[str]:
    """Return the names of all columns of all configs."""
    return [*PAIR_COLUMNS, *_DPO, *_VOTES, *_DROPPED, *_SOFT, *_ACTION, *_OTHERS.split()]


def column_features(config: str) -> "Features":
    """Return the `datasets` features of a config; imports `datasets`."""
    from datasets import Features

    return Features(_tables()[base_config(config)])


def _tables() -> Tables:
    from datasets import Json, List, Value

    messages, tools = _messages(List(Json())), List(Json())
    flag, string, strings = Value("bool"), Value("string"), List(Value("string"))
    facts = {**_strings(PAIR_COLUMNS), **_plain(_DPO), "families": strings, "teachers": strings}
    pair = {**{name: facts[name] for name in _READ_FIRST}, **facts}
    side = {**_strings(PAIR_COLUMNS), "simulated": flag, "tools": tools}
    sides, wires = ("prompt", "chosen", "rejected"), _strings(("chosen_wire", "rejected_wire"))
    action = {
        **{"prompt": messages, "completion": messages},
        **_strings(_ACTION_TEXTS),
        **_plain(_ACTION),
        **{"families": strings, "teachers": strings, "tools": tools},
    }
    # One list of structs instead of lists side by side: `datasets` infers the type of a list of lists of
    # messages from its first one, and leaves calls of the others as text if that one has none.
    candidate = {
        "completion": messages,
        "weight": Value("float64"),
        "count": Value("int32"),
        "operation": string,
        "teachers": strings,
        "agreed": flag,
    }
    return {
        "dpo": {**dict.fromkeys(sides, messages), **pair, "tools": tools, **wires},
        "dpo_json": {**dict.fromkeys(sides, _messages(string)), **pair, "tools": string, **wires},
        **dict.fromkeys(ACTIONS, action),
        "kto": {"prompt": messages, "completion": messages, "label": flag, **side},
        "hints": {"prompt": messages, "privileged_context": string, **side},
        "prm": {
            **{"prompt": string, "completions": strings, "labels": List(flag), "kind": string},
            **{"step_ids": strings, "label_sources": strings, **_strings(ORIGIN_COLUMNS), "simulated": flag},
        },
        "soft": {
            **{"prompt": messages, "candidates": List(candidate)},
            **_strings(("step_id", *ORIGIN_COLUMNS)),
            **_plain(_SOFT),
            "tools": tools,
        },
        "votes": _plain(_VOTES),
        "dropped": {
            **_strings(PAIR_COLUMNS),
            **_plain(_DROPPED),
            **{"chosen": messages, "rejected": messages},
        },
    }


def _strings(names: Iterable[str]) -> dict[str, Any]:
    return _plain(dict.fromkeys(names, "string"))


def _plain(columns: Mapping[str, str]) -> dict[str, Any]:
    from datasets import Value

    return {name: Value(kind) for name, kind in columns.items()}


def _messages(calls: Any) -> Any:
    from datasets import List, Value

    texts = {name: Value("string") for name in ("role", "content", "tool_call_id", "name")}
    return List({"role": texts["role"], "content": texts["content"], "tool_calls": calls} | texts)


def written_column_schema(features: "Features") -> pa.Schema:
    """Return the Arrow schema a table is written with.

    Without JSON columns the metadata for `datasets` is left out: readers older than 4.0 do not understand it,
    and newer ones infer the features from the columns.
    """
    schema = features.arrow_schema
    return schema if "'Json'" in str(features.to_dict()) else schema.remove_metadata()


def storage_column_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with JSON columns as the strings they are stored as.

    Arrow builds it from Python values, and it is then cast to `schema`.
    """
    return pa.schema([pa.field(field.name, _storage(field.type)) for field in schema])


def _storage(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.BaseExtensionType):
        return kind.storage_type
    if pa.types.is_list(kind):
        return pa.list_(pa.field("item", _storage(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _storage(field.type)) for field in kind])
    return kind
