"""Arrow schemas of the tables, each with a version, and the upgrade of older shards.

A shard carries `tracemill.table`, `tracemill.schema` and `tracemill.covers` (the ids of the traces it covers)
in its Parquet metadata.
"""

from collections.abc import Callable, Mapping
from itertools import accumulate

import pyarrow as pa

from tracemill.records.errors import WorkspaceError

_TEXT, _TEXTS, _FLAG = pa.string(), pa.list_(pa.string()), pa.bool_()
_INT, _LONG, _FLOAT = pa.int32(), pa.int64(), pa.float64()


def _fields(kind: pa.DataType, names: str) -> list[pa.Field]:
    """Return fields of one type; `names` are separated by blanks."""
    return [pa.field(name, kind) for name in names.split()]


TOOL_CALL = pa.struct(_fields(_TEXT, "id name arguments"))
MESSAGE = pa.struct(
    [
        *_fields(_TEXT, "role content"),
        pa.field("tool_calls", pa.list_(TOOL_CALL)),
        *_fields(_TEXT, "tool_call_id name"),
        pa.field("is_error", _FLAG),
        *_fields(_TEXT, "error_kind reasoning"),
    ]
)
STEP = pa.struct(
    [
        *_fields(_INT, "index cut"),
        *_fields(_TEXT, "model family native_id"),
        *_fields(_LONG, "prompt_tokens completion_tokens cached_tokens"),
        pa.field("cost_usd", _FLOAT),
        *_fields(_TEXT, "cwd timestamp"),
    ]
)
CONTEXT = pa.struct(
    [
        pa.field("index", _INT),
        *_fields(_TEXT, "start system tools_known completeness"),
        *_fields(_INT, "lost_from approximate_from"),
        pa.field("tools", _TEXT),
        pa.field("messages", pa.list_(MESSAGE)),
        pa.field("steps", pa.list_(STEP)),
    ]
)
PROJECT = pa.struct(_fields(_TEXT, "digest name place"))
_TRACE_TEXT_FIELDS = """trace_id source dialect harness harness_version kind parent_trace_id
    parent_call_id project repository instance_id licence outcome started_at origin redaction"""
TRACE_TEXT_FIELDS = tuple(_TRACE_TEXT_FIELDS.split())
TRACES = pa.schema(
    [
        *_fields(_TEXT, _TRACE_TEXT_FIELDS),
        pa.field("seen_tools", _TEXTS),
        pa.field("notes", _TEXT),
        pa.field("worked_in", pa.list_(PROJECT)),
        pa.field("contexts", pa.list_(CONTEXT)),
    ]
)
DECISIONS = pa.schema(
    [
        *_fields(_TEXT, "step_id teacher verdict reason gate"),
        *_fields(_FLOAT, "probability coin"),
        pa.field("outcome", _TEXT),
        pa.field("features", _TEXTS),
        *_fields(_FLOAT, "belief expected_usd explore"),
    ]
)
REPLIES = pa.schema(
    [
        *_fields(_TEXT, "step_id request_key teacher family"),
        *_fields(_INT, "sample order"),
        *_fields(_TEXT, "model provider generation_id text"),
        pa.field("tool_calls", pa.list_(TOOL_CALL)),
        *_fields(_TEXT, "failure finish_reason"),
        *_fields(_LONG, "prompt_tokens completion_tokens cached_tokens cache_write_tokens reasoning_tokens"),
        *_fields(_FLOAT, "cost_usd latency_s"),
        *_fields(_TEXT, "presentation prompt_id"),
        pa.field("simulated", _FLAG),
        pa.field("raw", _TEXT),
    ]
)
VOTE = pa.struct(
    [
        *_fields(_TEXT, "teacher family"),
        pa.field("sample", _INT),
        pa.field("counted", _FLAG),
        *_fields(_TEXT, "reason key operation"),
        pa.field("agrees", _FLAG),
        pa.field("cost_usd", _FLOAT),
        pa.field("request_key", _TEXT),
    ]
)
VOTES = pa.schema(
    [*_fields(_TEXT, "step_id verdict"), pa.field("votes", pa.list_(VOTE)), pa.field("simulated", _FLAG)]
)
_PAIR_TEXT_FIELDS = """step_id label_source chosen_operation rejected_operation source harness
    presentation student_model student_family policy verified evidence project repository
    instance_id licence outcome"""
PAIR_TEXT_FIELDS = tuple(_PAIR_TEXT_FIELDS.split())
PAIRS = pa.schema(
    [
        *_fields(_TEXT, _PAIR_TEXT_FIELDS),
        *[pa.field(side, pa.list_(MESSAGE)) for side in ("chosen", "rejected")],
        pa.field("n_teachers_agreeing", _INT),
        pa.field("votes", pa.list_(VOTE)),
        pa.field("families", _TEXTS),
        pa.field("cost_usd", _FLOAT),
        pa.field("simulated", _FLAG),
        pa.field("weight", _FLOAT),
    ]
)

SCHEMAS: Mapping[str, tuple[int, pa.Schema]] = {
    "traces": (4, TRACES),
    "decisions": (7, DECISIONS),
    "replies": (1, REPLIES),
    "votes": (2, VOTES),
    "pairs": (2, PAIRS),
}
_RESTORED_BY = {
    "traces": "the next ingest reads the sessions again",
    "decisions": "the next replay decides anew and pays for nothing twice",
    "replies": "the next replay takes the answers from the ledger",
    "votes": "`tracemill label` makes them anew at no cost",
    "pairs": "`tracemill label` makes them anew at no cost",
}
"""How each table is restored after it was removed."""
Upgrade = Callable[[pa.Table], pa.Table]


def _add_approximate_from(table: pa.Table) -> pa.Table:
    """Upgrade traces from version 3 to 4: add `approximate_from`, null everywhere."""
    at = table.schema.get_field_index("contexts")
    chunks = [_with_null_field(chunk) for chunk in table.column(at).chunks]
    return table.set_column(at, TRACES.field("contexts"), pa.chunked_array(chunks, pa.list_(CONTEXT)))


def _with_null_field(contexts: pa.ListArray) -> pa.ListArray:
    """Add `approximate_from`, null everywhere, to the contexts of traces."""
    inner = contexts.flatten()
    arrays = {field.name: inner.field(i) for i, field in enumerate(inner.type)}
    arrays["approximate_from"] = pa.nulls(len(inner), pa.int32())
    values = pa.StructArray.from_arrays([arrays[field.name] for field in CONTEXT], fields=list(CONTEXT))
    offsets = [0, *accumulate(n or 0 for n in contexts.value_lengths().to_pylist())]
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)


def _drop_columns(table: pa.Table) -> pa.Table:
    """Upgrade decisions from version 5 or 6 to 7: drop columns of removed features."""
    return table.select(DECISIONS.names)


def _add_weight(table: pa.Table) -> pa.Table:
    """Upgrade pairs from version 1 to 2: add `weight`, 1 everywhere."""
    return table.append_column(PAIRS.field("weight"), pa.array([1.0] * len(table), _FLOAT))


UPGRADES: Mapping[str, Mapping[int, Upgrade]] = {
    **{name: {} for name in SCHEMAS},
    "traces": {3: _add_approximate_from},
    "pairs": {1: _add_weight},
    "decisions": {5: _drop_columns, 6: _drop_columns},
}


def upgrade(name: str, table: pa.Table, version: int, where: str) -> pa.Table:
    """Return the table in the current schema.

    Raises WorkspaceError for a newer schema, for a version without an upgrade, and for columns that do not
    fit the version.
    """
    current, schema = SCHEMAS[name]
    while version < current:
        if version not in UPGRADES[name]:
            raise WorkspaceError(
                f"{where} has schema {version} of {name}",
                f"{current}",
                f"remove the folder `{name}` of the workspace: {_RESTORED_BY[name]}",
            )
        table = UPGRADES[name][version](table)
        version += 1
    if version > current:
        raise WorkspaceError(
            f"{where} has schema {version} of {name}", f"at most {current}", "update tracemill"
        )
    if not table.schema.equals(schema):
        raise WorkspaceError(
            f"{where} does not match schema {current} of table {name!r}",
            f"the columns {', '.join(schema.names)}",
            f"remove the folder `{name}` of the workspace: {_RESTORED_BY[name]}",
        )
    return table
