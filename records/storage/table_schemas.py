"""Arrow schemas of the tables, each with a version, and the upgrade of older shards.

A shard carries `tracemill.table`, `tracemill.schema` and `tracemill.covers` (the trace ids it speaks
for) in its Parquet metadata.
"""

from collections.abc import Callable, Mapping
from itertools import accumulate

import pyarrow as pa

from tracemill.records.errors import WorkspaceError

TOOL_CALL = pa.struct([("id", pa.string()), ("name", pa.string()), ("arguments", pa.string())])
MESSAGE = pa.struct(
    [
        ("role", pa.string()),
        ("content", pa.string()),
        ("tool_calls", pa.list_(TOOL_CALL)),
        ("tool_call_id", pa.string()),
        ("name", pa.string()),
        ("is_error", pa.bool_()),
        ("error_kind", pa.string()),
        ("reasoning", pa.string()),
    ]
)
STEP = pa.struct(
    [
        ("index", pa.int32()),
        ("cut", pa.int32()),
        ("model", pa.string()),
        ("family", pa.string()),
        ("native_id", pa.string()),
        ("prompt_tokens", pa.int64()),
        ("completion_tokens", pa.int64()),
        ("cached_tokens", pa.int64()),
        ("cost_usd", pa.float64()),
        ("cwd", pa.string()),
        ("timestamp", pa.string()),
    ]
)
CONTEXT = pa.struct(
    [
        ("index", pa.int32()),
        ("start", pa.string()),
        ("system", pa.string()),
        ("tools_known", pa.string()),
        ("completeness", pa.string()),
        ("lost_from", pa.int32()),
        ("approximate_from", pa.int32()),
        ("tools", pa.string()),
        ("messages", pa.list_(MESSAGE)),
        ("steps", pa.list_(STEP)),
    ]
)
PROJECT = pa.struct([("digest", pa.string()), ("name", pa.string()), ("place", pa.string())])
TRACE_TEXT_FIELDS = (
    "trace_id",
    "source",
    "dialect",
    "harness",
    "harness_version",
    "kind",
    "parent_trace_id",
    "parent_call_id",
    "project",
    "repository",
    "instance_id",
    "licence",
    "outcome",
    "started_at",
    "origin",
    "redaction",
)
TRACES = pa.schema(
    [
        *((name, pa.string()) for name in TRACE_TEXT_FIELDS),
        ("seen_tools", pa.list_(pa.string())),
        ("notes", pa.string()),
        ("worked_in", pa.list_(PROJECT)),
        ("contexts", pa.list_(CONTEXT)),
    ]
)
DECISIONS = pa.schema(
    [
        ("step_id", pa.string()),
        ("teacher", pa.string()),
        ("verdict", pa.string()),
        ("reason", pa.string()),
        ("gate", pa.string()),
        ("probability", pa.float64()),
        ("coin", pa.float64()),
        ("outcome", pa.string()),
        ("features", pa.list_(pa.string())),
        ("belief", pa.float64()),
        ("utility", pa.float64()),
        ("expected_usd", pa.float64()),
        ("explore", pa.float64()),
        ("place", pa.int32()),
        ("price", pa.float64()),
        ("to_go_usd", pa.float64()),
        ("heard", pa.list_(pa.string())),
        ("heard_belief", pa.float64()),
        ("heard_verdict", pa.string()),
    ]
)
REPLIES = pa.schema(
    [
        ("step_id", pa.string()),
        ("request_key", pa.string()),
        ("teacher", pa.string()),
        ("family", pa.string()),
        ("sample", pa.int32()),
        ("order", pa.int32()),
        ("model", pa.string()),
        ("provider", pa.string()),
        ("generation_id", pa.string()),
        ("text", pa.string()),
        ("tool_calls", pa.list_(TOOL_CALL)),
        ("failure", pa.string()),
        ("finish_reason", pa.string()),
        ("prompt_tokens", pa.int64()),
        ("completion_tokens", pa.int64()),
        ("cached_tokens", pa.int64()),
        ("cache_write_tokens", pa.int64()),
        ("reasoning_tokens", pa.int64()),
        ("cost_usd", pa.float64()),
        ("latency_s", pa.float64()),
        ("presentation", pa.string()),
        ("prompt_id", pa.string()),
        ("simulated", pa.bool_()),
        ("raw", pa.string()),
    ]
)
VOTE = pa.struct(
    [
        ("teacher", pa.string()),
        ("family", pa.string()),
        ("sample", pa.int32()),
        ("counted", pa.bool_()),
        ("reason", pa.string()),
        ("key", pa.string()),
        ("operation", pa.string()),
        ("agrees", pa.bool_()),
        ("cost_usd", pa.float64()),
        ("request_key", pa.string()),
    ]
)
VOTES = pa.schema(
    [
        ("step_id", pa.string()),
        ("verdict", pa.string()),
        ("votes", pa.list_(VOTE)),
        ("simulated", pa.bool_()),
    ]
)
PAIR_TEXT_FIELDS = (
    "step_id",
    "label_source",
    "chosen_operation",
    "rejected_operation",
    "source",
    "harness",
    "presentation",
    "student_model",
    "student_family",
    "policy",
    "verified",
    "evidence",
    "project",
    "repository",
    "instance_id",
    "licence",
    "outcome",
)
PAIRS = pa.schema(
    [
        *((name, pa.string()) for name in PAIR_TEXT_FIELDS),
        ("chosen", pa.list_(MESSAGE)),
        ("rejected", pa.list_(MESSAGE)),
        ("n_teachers_agreeing", pa.int32()),
        ("votes", pa.list_(VOTE)),
        ("families", pa.list_(pa.string())),
        ("cost_usd", pa.float64()),
        ("simulated", pa.bool_()),
    ]
)

SCHEMAS: Mapping[str, tuple[int, pa.Schema]] = {
    "traces": (4, TRACES),
    "decisions": (5, DECISIONS),
    "replies": (1, REPLIES),
    "votes": (2, VOTES),
    "pairs": (1, PAIRS),
}
_ANEW = {
    "traces": "the next ingest reads the sessions again",
    "decisions": "the next replay decides anew and pays for nothing twice",
    "replies": "the next replay takes the answers from the ledger",
    "votes": "`tracemill pairs` makes them anew at no cost",
    "pairs": "`tracemill pairs` makes them anew at no cost",
}
"""By table what brings it back."""
Upgrade = Callable[[pa.Table], pa.Table]


def _add_approximate_from(table: pa.Table) -> pa.Table:
    """Traces 3 to 4: no context names the step from which on a wording of ours stands in."""
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


UPGRADES: Mapping[str, Mapping[int, Upgrade]] = {
    **{name: {} for name in SCHEMAS},
    "traces": {3: _add_approximate_from},
}


def upgrade(name: str, table: pa.Table, version: int, where: str) -> pa.Table:
    """The table in today's schema. Raises WorkspaceError for a schema from the future, for a version
    that has no upgrade, and for columns that are not those of its version."""
    current, schema = SCHEMAS[name]
    while version < current:
        if version not in UPGRADES[name]:
            raise WorkspaceError(
                f"{where} has schema {version} of {name}",
                f"{current}",
                f"remove the folder `{name}` of the workspace: {_ANEW[name]}",
            )
        table = UPGRADES[name][version](table)
        version += 1
    if version > current:
        raise WorkspaceError(
            f"{where} has schema {version} of {name}", f"at most {current}", "update tracemill"
        )
    if not table.schema.equals(schema):
        raise WorkspaceError(f"{where} has other columns than schema {current} of {name}")
    return table
