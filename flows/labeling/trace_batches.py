"""Group the traces of a workspace into batches; replays, estimates and dry runs go by the same."""

from collections import Counter
from dataclasses import dataclass

from tracemill.flows.admission.list_scope import NO_LISTS, ListScope
from tracemill.flows.admission.trace_filter import TraceFilter
from tracemill.flows.admission.trace_inventory import TraceEntry
from tracemill.flows.labeling.label_shard import load_traces
from tracemill.flows.run_state.run_summary import Summary
from tracemill.records.errors import WorkspaceError
from tracemill.records.storage.workspace import Workspace

_BATCH = 64


def list_trace_batches(work: Workspace) -> list[list[str]]:
    """Return the trace ids of each batch; the traces of a batch are of one source.

    Raises WorkspaceError if the workspace has no traces.
    """
    found: dict[str, list[str]] = {}
    for table in work.current("traces"):
        pairs = zip(table["source"].to_pylist(), table["trace_id"].to_pylist(), strict=True)
        for source, trace_id in pairs:
            found.setdefault(source, []).append(trace_id)
    if not found:
        raise WorkspaceError(f"{work.root} holds no traces", "some", "run `tracemill ingest` first")
    return [
        sorted(ids)[start : start + _BATCH] for ids in found.values() for start in range(0, len(ids), _BATCH)
    ]


@dataclass(frozen=True, slots=True)
class SelectedTraces:
    """The selected traces of a workspace in batches, with an entry for each.

    `summary` counts them and the traces left out.
    """

    batches: list[list[str]]
    entries: dict[str, TraceEntry]
    summary: Summary


def select_traces(work: Workspace, trace_filter: TraceFilter, lists: ListScope = NO_LISTS) -> SelectedTraces:
    """Return the stored traces that the filter selects; `lists` are the user lists they are redacted under.

    Raises WorkspaceError if the workspace has no traces.
    """
    batches: list[list[str]] = []
    entries: dict[str, TraceEntry] = {}
    left_out, matched = Counter[str](), Counter[int]()
    for ids in list_trace_batches(work):
        taken: list[str] = []
        for trace in load_traces(work, ids):
            if reason := trace_filter.reason(trace, matched):
                left_out[reason] += 1
            else:
                entries[trace.trace_id] = TraceEntry.of(trace).then(lists)
                taken.append(trace.trace_id)
        if taken:
            batches.append(taken)
    states = sum(entry.states for entry in entries.values())
    return SelectedTraces(batches, entries, Summary(states=states, left_out=left_out, matched=matched))
