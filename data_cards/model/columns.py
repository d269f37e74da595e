"""Columns of the configs of a release.

`prompt`, `chosen`, `rejected`, `completion`, `label` and `tools` are TRL's conversational formats for
preferences, prompt and completion, and unpaired preferences; `prompt`, `completions` and `labels` of `prm`
its stepwise supervision (https://huggingface.co/docs/trl/v1.13.0/dataset_formats). Calls and schemas are JSON
columns: as plain structs Arrow would give every call the keys of all others, filled with None.
"""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from datasets import Features

Tables = dict[str, dict[str, Any]]

VIEWS = ("dpo_json", "sft", "agreed", "solved", "kto", "prm", "hints", "soft")
"""Configs beside pairs and votes, in the form of other readers and trainers."""
ACTIONS = ("sft", "agreed", "solved")
"""Configs of which a row is one action at a step."""
CONFIGS = ("dpo", *VIEWS, "votes", "dropped")
SHORTENED = ("dpo", "sft", "kto")
"""Configs that there are for trainers with short contexts too, as in `sft_4k`."""
_SHORT = re.compile(rf"({'|'.join(SHORTENED)})_\d+k")
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
_SOFT = {
    "verdict": "string",
    "evidence": "string",
    "student": "int32",
    "simulated": "bool",
    "cost_usd": "float64",
}
_ACTION_TEXTS = (
    "step_id",
    "pair_id",
    "label_source",
    "verified",
    "operation",
    "verdict",
    "evidence",
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
    "candidates",
    "count",
    "agreed",
    "role",
    "content",
    "tool_calls",
    "tool_call_id",
    "name",
    "tools",
    "families",
    "teachers",
)


def short_config(config: str, max_tokens: int) -> str:
    """The name of a config cut to so many tokens, a multiple of 1,024."""
    return f"{config}_{max_tokens // 1024}k"


def base_config(config: str) -> str:
    """The config whose rows one with cut contexts holds; the name itself of any other."""
    found = _SHORT.fullmatch(config)
    return found[1] if found else config


def column_names() -> list[str]:
    """Every column of every config."""
    return [*PAIR_COLUMNS, *_DPO, *_VOTES, *_DROPPED, *_SOFT, *_ACTION, *_OTHERS]


def column_features(config: str) -> "Features":
    """The `datasets` features of a config; imports `datasets`."""
    from datasets import Features

    config = base_config(config)
    for kind in (_pair_tables, _actions, _turn_views, _step_views, _records):
        if config in (columns := kind()):
            return Features(columns[config])
    raise KeyError(config)


def _pair_tables() -> Tables:
    """A pair a row: with JSON columns, and with texts in their place."""
    from datasets import Json, List, Value

    messages, plain = _messages(List(Json())), _messages(Value("string"))
    named = {name: List(Value("string")) for name in ("families", "teachers")}
    said = {**_strings(PAIR_COLUMNS), **_plain(_DPO), **named}
    sides = ("prompt", "chosen", "rejected")
    return {
        "dpo": {**dict.fromkeys(sides, messages), "tools": List(Json()), **said},
        "dpo_json": {**dict.fromkeys(sides, plain), "tools": Value("string"), **said},
    }


def _actions() -> Tables:
    """One action at a step a row."""
    from datasets import Json, List, Value

    messages, strings = _messages(List(Json())), List(Value("string"))
    columns = {
        **{"prompt": messages, "completion": messages, "tools": List(Json())},
        **_strings(_ACTION_TEXTS),
        **_plain(_ACTION),
        **{"families": strings, "teachers": strings},
    }
    return dict.fromkeys(ACTIONS, columns)


def _turn_views() -> Tables:
    """One side of a pair a row, or what is told of it."""
    from datasets import Json, List, Value

    prompt = {"prompt": _messages(List(Json()))}
    completion = {"completion": _messages(List(Json()))}
    about = {"tools": List(Json()), **_strings(PAIR_COLUMNS), "simulated": Value("bool")}
    return {
        "kto": {**prompt, **completion, "label": Value("bool"), **about},
        "hints": {**prompt, "privileged_context": Value("string"), **about},
    }


def _step_views() -> Tables:
    """A run of judged steps a row, or the votes at one step."""
    from datasets import Json, List, Value

    messages, strings = _messages(List(Json())), List(Value("string"))
    return {
        "prm": {
            "prompt": Value("string"),
            "completions": strings,
            "labels": List(Value("bool")),
            "kind": Value("string"),
            "step_ids": strings,
            "label_sources": strings,
            **_strings(ORIGIN_COLUMNS),
            "simulated": Value("bool"),
        },
        "soft": {
            "prompt": messages,
            # A struct each, no lists side by side: `datasets` reads a list of lists of messages by its first
            # alone, and leaves the calls of the others as text where that one has none.
            "candidates": List(
                {
                    "completion": messages,
                    "weight": Value("float64"),
                    "count": Value("int32"),
                    "operation": Value("string"),
                    "teachers": strings,
                    "agreed": Value("bool"),
                }
            ),
            "tools": List(Json()),
            **_strings(("step_id", *ORIGIN_COLUMNS)),
            **_plain(_SOFT),
        },
    }


def _records() -> Tables:
    """What happened: votes, and pairs that were dropped, without their state."""
    from datasets import Json, List

    messages = _messages(List(Json()))
    sides = {"chosen": messages, "rejected": messages}
    return {
        "votes": _plain(_VOTES),
        "dropped": {**_strings(PAIR_COLUMNS), **_plain(_DROPPED), **sides},
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


def has_json(config: str) -> bool:
    """Whether a config has columns that only `datasets` 4.7 and later read."""
    return "'Json'" in str(column_features(config).to_dict())


def written_column_schema(features: "Features") -> pa.Schema:
    """The Arrow schema a table is written with. Features without JSON columns go without the note for
    `datasets`, which readers older than 4.0 do not understand; they are told from the columns."""
    schema = features.arrow_schema
    return schema if "'Json'" in str(features.to_dict()) else schema.remove_metadata()


def storage_column_schema(schema: pa.Schema) -> pa.Schema:
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
