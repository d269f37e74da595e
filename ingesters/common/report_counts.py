"""Fill the counts of a report from the traces themselves."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from tracemill.records.errors import TracemillError
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace

_Row = TypeVar("_Row")


def read_rows_counting_faults(
    rows: Iterable[_Row], read: Callable[[_Row], Iterable[Trace | None]], report: IngestReport
) -> Iterator[Trace | None]:
    """Yield the traces that `read` returns for each row; count a row that raises by the type of its error.

    Raises TracemillError from `read`, and whatever `rows` raises.
    """
    for row in rows:
        try:
            traces = list(read(row))
        except TracemillError:
            raise
        except Exception as error:
            report.skipped[f"row that cannot be read: {type(error).__name__}"] += 1
        else:
            yield from traces


def traces_of_rows(
    rows: Iterable[_Row], read: Callable[[_Row], Iterable[Trace | None]], report: IngestReport
) -> Iterator[Trace]:
    """Yield the traces of all rows, counted in the report; raises as `read_rows_counting_faults`."""
    return count_traces_in_report(read_rows_counting_faults(rows, read, report), report)


def count_traces_in_report(traces: Iterable[Trace | None], report: IngestReport) -> Iterator[Trace]:
    """Yield the traces and add each to the report; a second trace of one id is counted and left out."""
    seen: set[str] = set()
    for trace in traces:
        if trace is None:
            continue
        if trace.trace_id in seen:
            report.skipped["the same session twice"] += 1
            continue
        seen.add(trace.trace_id)
        report.traces += 1
        report.contexts += len(trace.contexts)
        report.states += trace.step_count
        if trace.kind == "side":
            report.steps_side += trace.step_count
        else:
            report.steps_main += trace.step_count
        report.tool_calls += sum(
            len(context.messages[step.cut].tool_calls) for context in trace.contexts for step in context.steps
        )
        yield trace
