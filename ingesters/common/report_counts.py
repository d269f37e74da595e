"""The counts of a report that follow from the traces themselves."""

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from tracemill.ingesters.reading.json_reading import new_report
from tracemill.records.errors import TracemillError
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace

_Row = TypeVar("_Row")


def read_rows_counting_faults(
    rows: Iterable[_Row], read: Callable[[_Row], Iterable[Trace | None]], report: IngestReport
) -> Iterator[Trace | None]:
    """What `read` makes of each row; one that defeats it is counted by the fault's type and stops no
    other. Raises what `rows` raises, and errors of ours."""
    for row in rows:
        try:
            traces = list(read(row))
        except TracemillError:
            raise
        except Exception as error:
            report.skipped[f"row that cannot be read: {type(error).__name__}"] += 1
        else:
            yield from traces


def read_all_with_counts(
    path: Path, dialect: str, read: Callable[[Path, IngestReport], Iterable[Trace]]
) -> tuple[list[Trace], IngestReport]:
    """The traces that `read` gives of a source, and the report it filled meanwhile. Raises SourceError where
    it cannot be read."""
    began = time.monotonic()
    report = new_report(path, dialect)
    traces = list(read(path, report))
    report.seconds = time.monotonic() - began
    return traces, report


def count_traces_in_report(traces: Iterable[Trace | None], report: IngestReport) -> Iterator[Trace]:
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
    if trace.kind == "side":
        report.steps_side += trace.step_count
    else:
        report.steps_main += trace.step_count
    for context in trace.contexts:
        messages = context.messages
        report.tool_calls += sum(len(messages[step.cut].tool_calls) for step in context.steps)
