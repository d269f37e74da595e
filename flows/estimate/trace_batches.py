"""The traces of a workspace in the batches of a replay; estimates and dry runs go by the same."""

from collections.abc import Iterator

from tracemill.flows.admission.trace_filter import Sieve
from tracemill.flows.labeling.label_shard import load_traces
from tracemill.flows.run_state.run_summary import Summary
from tracemill.records.errors import WorkspaceError
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import Trace

_BATCH = 64


def list_trace_batches(work: Workspace) -> list[tuple[str, list[str]]]:
    """Source and trace ids of each batch. Raises WorkspaceError where the workspace has no traces."""
    found: dict[str, list[str]] = {}
    for table in work.current("traces"):
        pairs = zip(table["source"].to_pylist(), table["trace_id"].to_pylist(), strict=True)
        for source, trace_id in pairs:
            found.setdefault(source, []).append(trace_id)
    if not found:
        raise WorkspaceError(f"{work.root} holds no traces", "some", "run `tracemill ingest` first")
    return [
        (source, sorted(ids)[start : start + _BATCH])
        for source, ids in found.items()
        for start in range(0, len(ids), _BATCH)
    ]


def filter_trace_batches(work: Workspace, sieve: Sieve, total: Summary) -> Iterator[tuple[str, list[Trace]]]:
    """The batches with what the sieve lets through alone; `total` counts the rest, and the states."""
    for source, ids in list_trace_batches(work):
        taken = [trace for trace in load_traces(work, ids) if not _left_out(sieve, trace, total)]
        total.states += sum(trace.step_count for trace in taken)
        if taken:
            yield source, taken


def _left_out(sieve: Sieve, trace: Trace, total: Summary) -> bool:
    reason = sieve.reason(trace, total.matched)
    if reason is not None:
        total.left_out[reason] += 1
    return reason is not None
