"""The counts of a report that follow from the traces themselves."""

from collections.abc import Iterable, Iterator

from records.skip import IngestReport
from records.state import Trace


def counted(traces: Iterable[Trace | None], report: IngestReport) -> Iterator[Trace]:
    """The traces, each entered into the report; one that is there already is counted and left out."""
    seen: set[str] = set()
    for trace in traces:
        if trace is None:
            continue
        if trace.trace_id in seen:
            report.skipped["the same session twice"] += 1
            continue
        seen.add(trace.trace_id)
        _enter(trace, report)
        yield trace


def _enter(trace: Trace, report: IngestReport) -> None:
    report.traces += 1
    report.contexts += len(trace.contexts)
    report.states += trace.step_count
    report.steps_main += trace.step_count
    report.tool_calls += sum(len(state.student_action.tool_calls) for state in trace.states())
