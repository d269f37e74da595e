"""Traces ↔ the nested `traces` table: one row a trace, each message stored once per context.

Columns are built flat and nested by offsets, which is several times faster than rows of dicts.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tracemill.records.identity import canonical_json
from tracemill.records.message import Message, ToolCall, ToolSpec
from tracemill.records.project import Project
from tracemill.records.storage.arrow_arrays import (
    make_boolean_array,
    make_list_array,
    make_number_array,
    make_string_array,
    make_struct_array,
)
from tracemill.records.storage.table_schemas import (
    CONTEXT,
    MESSAGE,
    PROJECT,
    STEP,
    TOOL_CALL,
    TRACE_TEXT_FIELDS,
    TRACES,
)
from tracemill.records.trace import Context, Fidelity, Step, Trace, Usage


def tools_to_json(tools: Sequence[ToolSpec]) -> str:
    """Tool specs as canonical JSON."""
    return canonical_json(
        [
            {
                "name": t.name,
                "description": t.description,
                "parameters": dict(t.parameters),
                "origin": t.origin,
            }
            for t in tools
        ]
    )


def tools_from_json(text: str) -> tuple[ToolSpec, ...]:
    """The inverse of `tools_to_json`."""
    return tuple(ToolSpec(**item) for item in json.loads(text))


def calls_to_rows(calls: Iterable[ToolCall]) -> list[dict[str, str]]:
    """Tool calls as rows of `TOOL_CALL`."""
    return [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in calls]


def calls_from_rows(rows: Iterable[dict[str, str]] | None) -> tuple[ToolCall, ...]:
    """The inverse of `calls_to_rows`."""
    return tuple(ToolCall(r["id"], r["name"], r["arguments"]) for r in rows or ())


def message_to_row(m: Message) -> dict[str, Any]:
    """A message as a row of `MESSAGE`."""
    return {
        "role": m.role,
        "content": m.content,
        "tool_calls": calls_to_rows(m.tool_calls),
        "tool_call_id": m.tool_call_id,
        "name": m.name,
        "is_error": m.is_error,
        "error_kind": m.error_kind,
        "reasoning": m.reasoning,
    }


def message_from_row(row: dict[str, Any]) -> Message:
    """The inverse of `message_to_row`."""
    return Message(
        row["role"],
        row["content"],
        calls_from_rows(row["tool_calls"]),
        row["tool_call_id"],
        row["name"],
        row["is_error"],
        row["error_kind"],
        row["reasoning"],
    )


def _message_array(messages: Sequence[Message]) -> pa.StructArray:
    calls = [call for m in messages for call in m.tool_calls]
    call_array = make_struct_array(
        TOOL_CALL,
        [
            make_string_array([c.id for c in calls]),
            make_string_array([c.name for c in calls]),
            make_string_array([c.arguments for c in calls]),
        ],
    )
    return make_struct_array(
        MESSAGE,
        [
            make_string_array([m.role for m in messages]),
            make_string_array([m.content for m in messages]),
            make_list_array((len(m.tool_calls) for m in messages), call_array),
            make_string_array([m.tool_call_id for m in messages]),
            make_string_array([m.name for m in messages]),
            make_boolean_array([m.is_error for m in messages]),
            make_string_array([m.error_kind for m in messages]),
            make_string_array([m.reasoning for m in messages]),
        ],
    )


def _step_array(steps: Sequence[Step]) -> pa.StructArray:
    return make_struct_array(
        STEP,
        [
            make_number_array([s.index for s in steps], pa.int32()),
            make_number_array([s.cut for s in steps], pa.int32()),
            make_string_array([s.model for s in steps]),
            make_string_array([s.family for s in steps]),
            make_string_array([s.native_id for s in steps]),
            make_number_array([s.usage.prompt_tokens for s in steps], pa.int64()),
            make_number_array([s.usage.completion_tokens for s in steps], pa.int64()),
            make_number_array([s.usage.cached_tokens for s in steps], pa.int64()),
            make_number_array([s.usage.cost_usd for s in steps], pa.float64()),
            make_string_array([s.cwd for s in steps]),
            make_string_array([s.timestamp for s in steps]),
        ],
    )


def _tools_of(contexts: Sequence[Context]) -> list[str]:
    """The tools of each as JSON; those that several share are written once."""
    known = {id(c.tools): c.tools for c in contexts}
    written = {key: tools_to_json(tools) for key, tools in known.items()}
    return [written[id(c.tools)] for c in contexts]


def _context_array(contexts: Sequence[Context]) -> pa.StructArray:
    messages = [m for c in contexts for m in c.messages]
    steps = [s for c in contexts for s in c.steps]
    return make_struct_array(
        CONTEXT,
        [
            make_number_array([c.index for c in contexts], pa.int32()),
            make_string_array([c.start for c in contexts]),
            make_string_array([c.fidelity.system for c in contexts]),
            make_string_array([c.fidelity.tools for c in contexts]),
            make_string_array([c.fidelity.context for c in contexts]),
            make_number_array([c.lost_from for c in contexts], pa.int32()),
            make_number_array([c.approximate_from for c in contexts], pa.int32()),
            make_string_array(_tools_of(contexts)),
            make_list_array((len(c.messages) for c in contexts), _message_array(messages)),
            make_list_array((len(c.steps) for c in contexts), _step_array(steps)),
        ],
    )


def _project_array(traces: Sequence[Trace]) -> pa.StructArray:
    projects = [project for trace in traces for project in trace.worked_in]
    return make_struct_array(
        PROJECT, [make_string_array([p[at] for p in projects]) for at in range(PROJECT.num_fields)]
    )


def traces_to_table(traces: Sequence[Trace]) -> pa.Table:
    """Traces as a table of schema `TRACES`, in the order given."""
    contexts = [c for t in traces for c in t.contexts]
    columns: list[pa.Array] = [
        make_string_array([getattr(t, name) for t in traces]) for name in TRACE_TEXT_FIELDS
    ]
    seen = [name for t in traces for name in t.seen_tools]
    columns.append(make_list_array((len(t.seen_tools) for t in traces), make_string_array(seen)))
    columns.append(make_string_array([canonical_json(dict(t.notes)) for t in traces]))
    columns.append(make_list_array((len(t.worked_in) for t in traces), _project_array(traces)))
    columns.append(make_list_array((len(t.contexts) for t in traces), _context_array(contexts)))
    return pa.Table.from_arrays(columns, schema=TRACES)


@dataclass(slots=True)
class _Interner:
    """Equal text read from several contexts becomes one object, as it was before writing."""

    seen: dict[Message, Message] = field(default_factory=dict)

    def message(self, row: dict[str, Any]) -> Message:
        message = message_from_row(row)
        return self.seen.setdefault(message, message)


def _step(row: dict[str, Any]) -> Step:
    usage = Usage(row["prompt_tokens"], row["completion_tokens"], row["cached_tokens"], row["cost_usd"])
    return Step(
        row["index"],
        row["cut"],
        row["model"],
        row["family"],
        row["native_id"],
        usage,
        row["cwd"],
        row["timestamp"],
    )


def _context(row: dict[str, Any], interner: _Interner) -> Context:
    return Context(
        row["index"],
        tuple(interner.message(m) for m in row["messages"]),
        tuple(_step(s) for s in row["steps"]),
        row["start"],
        tools_from_json(row["tools"]),
        Fidelity(row["system"], row["tools_known"], row["completeness"]),
        row["lost_from"],
        row["approximate_from"],
    )


def traces_from_table(table: pa.Table) -> list[Trace]:
    """The inverse of `traces_to_table`."""
    traces: list[Trace] = []
    for batch in table.to_batches(max_chunksize=8):
        for row in batch.to_pylist():
            interner = _Interner()
            contexts = tuple(_context(c, interner) for c in row.pop("contexts"))
            notes = json.loads(row.pop("notes"))
            seen = tuple(row.pop("seen_tools"))
            worked_in = tuple(Project(**found) for found in row.pop("worked_in"))
            traces.append(Trace(**row, contexts=contexts, notes=notes, seen_tools=seen, worked_in=worked_in))
    return traces
