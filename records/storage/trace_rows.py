"""Convert traces to the nested `traces` table and back: one row a trace, each message once per context.

Arrow arrays are built flat and nested by offsets, which is several times faster than rows of dicts.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from operator import attrgetter
from typing import Any

import pyarrow as pa

from tracemill.records.identity import canonical_json
from tracemill.records.message import Message, ToolCall, ToolSpec
from tracemill.records.project import Project
from tracemill.records.storage.arrow_arrays import (
    make_array,
    make_list_array,
    make_string_array,
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

_USAGE = pa.struct([STEP.field(field.name) for field in fields(Usage)])
_STEP_ITSELF = pa.struct([field for field in STEP if field.name not in _USAGE.names])


def tools_to_json(tools: Sequence[ToolSpec]) -> str:
    """Return tool specs as canonical JSON."""
    return canonical_json([asdict(tool) for tool in tools])


def tools_from_json(text: str) -> tuple[ToolSpec, ...]:
    """Return the tool specs of a JSON text (inverse of `tools_to_json`)."""
    return tuple(ToolSpec(**item) for item in json.loads(text))


def calls_from_rows(rows: Iterable[dict[str, str]] | None) -> tuple[ToolCall, ...]:
    """Return the tool calls of rows of `TOOL_CALL`."""
    return tuple(ToolCall(**row) for row in rows or ())


def message_from_row(row: dict[str, Any]) -> Message:
    """Return the message of a row of `MESSAGE`."""
    values = dict(row)
    calls = calls_from_rows(values.pop("tool_calls"))
    return Message(**values, tool_calls=calls)


def _columns(kind: pa.StructType, values: Sequence[Any]) -> dict[str, pa.Array]:
    """Return an array for each text, flag and number of `kind`, from the attributes of the values."""
    plain = [field for field in kind if not pa.types.is_nested(field.type)]
    read = attrgetter(*(field.name for field in plain))  # all at once: a call for each attribute is slower
    columns = zip(*map(read, values), strict=True) if values else [()] * len(plain)
    return {field.name: make_array(column, field.type) for field, column in zip(plain, columns, strict=True)}


def _struct_array(kind: pa.StructType, columns: dict[str, pa.Array]) -> pa.StructArray:
    return pa.StructArray.from_arrays([columns[field.name] for field in kind], fields=list(kind))


def _message_array(messages: Sequence[Message]) -> pa.StructArray:
    calls = _struct_array(TOOL_CALL, _columns(TOOL_CALL, [call for m in messages for call in m.tool_calls]))
    columns = _columns(MESSAGE, messages)
    columns["tool_calls"] = make_list_array((len(m.tool_calls) for m in messages), calls)
    return _struct_array(MESSAGE, columns)


def _tools_of(contexts: Sequence[Context]) -> list[str]:
    """Return the tools of each context as JSON, encoding shared tools once."""
    tools_by_id = {id(c.tools): c.tools for c in contexts}
    written = {key: tools_to_json(tools) for key, tools in tools_by_id.items()}
    return [written[id(c.tools)] for c in contexts]


def _context_array(contexts: Sequence[Context]) -> pa.StructArray:
    messages = [m for c in contexts for m in c.messages]
    steps = [s for c in contexts for s in c.steps]
    fidelity = {
        "system": make_string_array([c.fidelity.system for c in contexts]),
        "tools_known": make_string_array([c.fidelity.tools for c in contexts]),
        "completeness": make_string_array([c.fidelity.context for c in contexts]),
    }
    usage = _columns(_USAGE, [step.usage for step in steps])
    step_array = _struct_array(STEP, _columns(_STEP_ITSELF, steps) | usage)
    nested = {
        "tools": make_string_array(_tools_of(contexts)),
        "messages": make_list_array((len(c.messages) for c in contexts), _message_array(messages)),
        "steps": make_list_array((len(c.steps) for c in contexts), step_array),
    }
    numbers = ("index", "start", "lost_from", "approximate_from")
    plain = _columns(pa.struct([CONTEXT.field(name) for name in numbers]), contexts)
    return _struct_array(CONTEXT, plain | fidelity | nested)


def traces_to_table(traces: Sequence[Trace]) -> pa.Table:
    """Return traces as a table of schema `TRACES`, in the order given."""
    contexts = [c for t in traces for c in t.contexts]
    columns: list[pa.Array] = [
        make_string_array([getattr(t, name) for t in traces]) for name in TRACE_TEXT_FIELDS
    ]
    seen = [name for t in traces for name in t.seen_tools]
    columns.append(make_list_array((len(t.seen_tools) for t in traces), make_string_array(seen)))
    columns.append(make_string_array([canonical_json(dict(t.notes)) for t in traces]))
    projects = _struct_array(PROJECT, _columns(PROJECT, [p for t in traces for p in t.worked_in]))
    columns.append(make_list_array((len(t.worked_in) for t in traces), projects))
    columns.append(make_list_array((len(t.contexts) for t in traces), _context_array(contexts)))
    return pa.Table.from_arrays(columns, schema=TRACES)


def _step(row: dict[str, Any]) -> Step:
    return Step(usage=Usage(**{field.name: row.pop(field.name) for field in _USAGE}), **row)


def _context(row: dict[str, Any], shared: dict[Message, Message]) -> Context:
    """Return the context of a row; equal messages of several contexts become one object."""
    messages = (message_from_row(m) for m in row["messages"])
    return Context(
        row["index"],
        tuple(shared.setdefault(message, message) for message in messages),
        tuple(_step(s) for s in row["steps"]),
        row["start"],
        tools_from_json(row["tools"]),
        Fidelity(row["system"], row["tools_known"], row["completeness"]),
        row["lost_from"],
        row["approximate_from"],
    )


def traces_from_table(table: pa.Table) -> list[Trace]:
    """Return the traces of a table (inverse of `traces_to_table`)."""
    traces: list[Trace] = []
    for batch in table.to_batches(max_chunksize=8):
        for row in batch.to_pylist():
            shared: dict[Message, Message] = {}
            contexts = tuple(_context(c, shared) for c in row.pop("contexts"))
            notes = json.loads(row.pop("notes"))
            seen = tuple(row.pop("seen_tools"))
            worked_in = tuple(Project(**project) for project in row.pop("worked_in"))
            traces.append(Trace(**row, contexts=contexts, notes=notes, seen_tools=seen, worked_in=worked_in))
    return traces
