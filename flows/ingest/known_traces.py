"""Decide which sources to read: skip unchanged ones, draw the sample."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from tracemill.flows.admission.trace_inventory import TraceEntry
from tracemill.flows.ingest.ingest_shard import ShardIngester, ingest_shard_facts
from tracemill.flows.ingest.reuse_traces import drop_damaged, reuse_traces
from tracemill.flows.run_state.run_summary import Summary, add_up
from tracemill.flows.sources.shard_plan import GONE, SourcePlan, UnchangedSource
from tracemill.flows.sources.source_spec import SourceOptions
from tracemill.flows.sources.watermark_records import SourceRecord
from tracemill.flows.sources.watermarks import Watermarks
from tracemill.ingesters.claude_code.format import FORMAT
from tracemill.ingesters.claude_code.retention import count_expiring_sessions
from tracemill.ingesters.reading.source_file import SourceFile
from tracemill.records.errors import SourceError
from tracemill.records.ingest_report import IngestReport
from tracemill.records.printable import printable_count

if TYPE_CHECKING:
    from tracemill.flows.sources.sampling import DrawnSample, SampleOptions

_REASONS = 3
"""Reasons that are told of a file that gave no trace."""


@dataclass(frozen=True, slots=True)
class KnownTraces:
    """Sources left to read, and the known traces of the other sources.

    It has an entry for each trace that need not be read, the counts, and the sample if one was drawn.
    """

    plan: SourcePlan
    entries: dict[str, TraceEntry]
    summary: Summary
    drawn: "DrawnSample | None" = None


def find_known_traces(
    plan: SourcePlan, marks: Watermarks, ingester: ShardIngester, sample: "SampleOptions | None"
) -> KnownTraces:
    """Count the traces of sources that need not be read, and draw the sample.

    The caller holds the lock of the workspace. Raises SourceError if a table to sample from cannot be read.
    """
    told = Summary(unread=plan.unread_reasons(), flags=_expiring(plan))
    counts = [told, drop_damaged(ingester.work)]
    marks.compact()
    marks.settle_moves(kept.file for kept in plan.kept if kept.file is not None)
    marks.add([_stranger(file, marks) for file in plan.strangers])
    drawn = None
    if sample is not None:
        from tracemill.flows.ingest.sample_plan import draw_sample_plan

        quiet = partial(ingest_shard_facts, redactor=ingester.redactor)
        plan, drawn, left_out = draw_sample_plan(plan, sample, marks, ingester.trace_filter, quiet)
        counts.append(left_out)
    entries, reused = reuse_traces(ingester, plan.kept)
    return KnownTraces(plan, entries, add_up([*counts, Summary(changes=plan.changes), reused]), drawn)


def _expiring(plan: SourcePlan) -> Counter[str]:
    """Count the sessions that Claude Code is about to delete, read or not, by days left."""
    files = [*plan.fresh, *(kept.file for kept in plan.kept if kept.file is not None)]
    paths = {file.path for file in files if not file.url and file.dialect in FORMAT.dialects}
    return Counter(
        {
            f"session that Claude Code deletes {_in_days(days)}: raise its cleanupPeriodDays": count
            for days, count in sorted(count_expiring_sessions(paths, time.time()).items())
        }
    )


def _in_days(days: int) -> str:
    return f"in {printable_count(days, 'day')}" if days else "within a day"


def known_traces_report(kept: UnchangedSource) -> IngestReport:
    """Return the report of an earlier reading of a source, under its current name."""
    name = kept.file.name if kept.file else f"{GONE} ({kept.mark.key})"
    return replace(kept.mark.report, path=name, seconds=0.0)


def refuse_unreadable(order: SourceOptions, reports: Sequence[IngestReport]) -> None:
    """Raise an error for sources of which none could be read.

    Raises SourceError if a file that the user named cannot be read, or its content is skipped, and no file
    has a trace.
    """
    named = {str(path.expanduser()) for path, _ in order.given}
    faults = (_fault(report) for report in reports if report.path in named)
    if (fault := next(filter(None, faults), None)) and not any(report.traces for report in reports):
        raise SourceError(fault)


def _fault(report: IngestReport) -> str | None:
    """Return why a file gave no trace; None if it has no fault."""
    if report.error or not report.skipped:
        return report.error
    passed = ", ".join(f"{count:,} {reason}" for reason, count in report.skipped.most_common(_REASONS))
    return f"{report.path} holds no whole session: {passed}"


def _stranger(file: SourceFile, marks: Watermarks) -> SourceRecord:
    """Return the record of a file that is not a session, so that it is not read again."""
    return SourceRecord(marks.key_of(file), file.stamp, "", file.dialect, marks.today.id)
