"""Before anything is read: what the workspace knows already, and what of the rest is wanted."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from tracemill.flows.admission.trace_inventory import TraceEntry
from tracemill.flows.ingest.ingest_shard import Intake, ingest_shard_facts
from tracemill.flows.ingest.reuse_traces import drop_damaged, reuse_traces
from tracemill.flows.run_state.run_summary import Summary
from tracemill.flows.sources.shard_plan import GONE, Kept, Plan
from tracemill.flows.sources.source_spec import SourceOrder
from tracemill.flows.sources.watermark_records import Mark
from tracemill.flows.sources.watermarks import Watermarks
from tracemill.ingesters.reading.source_file import SourceFile
from tracemill.records.errors import SourceError
from tracemill.records.ingest_report import IngestReport

if TYPE_CHECKING:
    from tracemill.flows.sources.sampling import Drawn, SampleOrder


@dataclass(frozen=True, slots=True)
class Stock:
    """What is left to read, a line for each trace that need not be read, and the sample if one was
    drawn."""

    plan: Plan
    entries: dict[str, TraceEntry]
    drawn: "Drawn | None" = None


def find_known_traces(
    plan: Plan,
    marks: Watermarks,
    intake: Intake,
    sample: "SampleOrder | None",
    read: dict[str, int],
    total: Summary,
) -> Stock:
    """Count what need not be read, draw the sample. `read` learns the steps of what is there already.
    Hold the workspace. Raises SourceError where a table to sample from cannot be read."""
    drop_damaged(intake.work, total)
    marks.compact()
    marks.settle_moves(kept.file for kept in plan.kept if kept.file is not None)
    marks.add([_stranger(file, marks) for file in plan.strangers])
    drawn = None
    if sample is not None:
        from tracemill.flows.ingest.sample_plan import draw_sample_plan

        quiet = partial(ingest_shard_facts, redactor=intake.redactor)
        plan, drawn, count = draw_sample_plan(plan, sample, marks, intake.sieve, quiet)
        total.add(count)
    total.changes += plan.changes
    return Stock(plan, reuse_traces(intake, plan.kept, read, total), drawn)


def known_traces_report(kept: Kept) -> IngestReport:
    """What reading a source gave when it was read, under the name it has now."""
    name = kept.file.name if kept.file else f"{GONE} ({kept.mark.key})"
    return replace(kept.mark.report, path=name, seconds=0.0)


def refuse_unreadable(order: SourceOrder, reports: Sequence[IngestReport]) -> None:
    """Raises SourceError where a file named outright cannot be read and nothing else gave a trace."""
    named = {str(path.expanduser()) for path, _ in order.given}
    faults = (report.error for report in reports if report.error and report.path in named)
    if (fault := next(faults, None)) and not any(report.traces for report in reports):
        raise SourceError(fault)


def _stranger(file: SourceFile, marks: Watermarks) -> Mark:
    """A file that is no session, remembered so that it is not looked into again."""
    return Mark(marks.key_of(file), file.stamp, "", file.dialect, marks.today.id)
