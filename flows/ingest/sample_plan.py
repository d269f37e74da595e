"""Draw a sample of what a plan would read, before any of it is taken in.

Of a table only its small columns are looked at; of other sources that are new or changed all is read,
but nothing redacted or kept; of unchanged ones what was remembered.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tracemill.flows.ingest.ingest_shard import NOT_SAMPLED, FileReport
from tracemill.flows.ingest.reuse_traces import trace_reuse_marks
from tracemill.flows.run_state.run_summary import Summary
from tracemill.flows.sources.sampling import (
    DrawnSample,
    SampleCandidate,
    SampleOptions,
    draw_stratified_sample,
    stratum_of_facts,
)
from tracemill.flows.sources.shard_plan import UNCHANGED, SourcePlan, UnchangedSource
from tracemill.flows.sources.watermark_records import (
    SeenTrace,
    SourceRecord,
    StratumFields,
    source_part_key,
    wanted_rows_digest,
)
from tracemill.flows.sources.watermarks import Watermarks
from tracemill.ingesters.read_source import SourceReading
from tracemill.ingesters.reading.parquet_rows import TableSlice
from tracemill.ingesters.reading.source_file import SourceFile
from tracemill.ingesters.row_preview import RowPreview, preview_rows
from tracemill.records.trace import Trace

if TYPE_CHECKING:
    from tracemill.flows.admission.trace_filter import TraceFilter

Quiet = Callable[[Trace], StratumFields]
"""The facts of a trace as they may be written down."""


@dataclass(slots=True)
class _Pool:
    """The candidate sessions of a sample, and their sources."""

    marked: list[UnchangedSource] = field(default_factory=list)
    accounts: list[FileReport] = field(default_factory=list)
    rows: dict[str, tuple[int, int]] = field(default_factory=dict)
    candidates: list[SampleCandidate] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    matched: Counter[int] = field(default_factory=Counter)


def draw_sample_plan(
    plan: SourcePlan,
    order: SampleOptions,
    marks: Watermarks,
    trace_filter: "TraceFilter | None",
    quiet: Quiet,
) -> tuple[SourcePlan, DrawnSample, Summary]:
    """Restrict a plan to a sample; return the draw, and the counts of excluded and matching sessions.

    Files that were examined are recorded, so that no later draw reads them. Raises SourceError if a table
    cannot be read.
    """
    pool = _Pool(marked=list(plan.kept))
    _look_into(plan.fresh, pool, trace_filter, quiet)
    marks.add(trace_reuse_marks(pool.accounts, marks))
    parts = [part for table in plan.tables for part in table]
    _look_at_rows(parts, pool, trace_filter, quiet, order)
    _add_sessions(pool, order)
    drawn = draw_stratified_sample(pool.candidates, order)
    if missed := drawn.candidates - len(drawn.taken):
        pool.left_out[NOT_SAMPLED] += missed
    counts = Summary(left_out=pool.left_out, matched=pool.matched)
    return _chosen(plan, pool, parts, drawn, marks), drawn, counts


def _look_into(
    files: Sequence[SourceFile], pool: _Pool, trace_filter: "TraceFilter | None", quiet: Quiet
) -> None:
    """Read sources only for the fields that a sample is stratified by."""
    for file in files:
        reading = SourceReading(file)
        account = FileReport(file, reading.report, whole=False)
        for trace in reading:
            if reason := trace_filter.reason(trace, account.matched) if trace_filter else None:
                account.left_out[reason] += 1
            else:
                account.seen.append(SeenTrace(trace.trace_id, trace.parent_trace_id, quiet(trace)))
        account.report = reading.report
        pool.accounts.append(account)
        pool.matched += account.matched


def _look_at_rows(
    parts: Sequence[SourceFile],
    pool: _Pool,
    trace_filter: "TraceFilter | None",
    quiet: Quiet,
    order: SampleOptions,
) -> None:
    """Add the rows of tables as candidates; equal rows differ by their order in the tables."""
    found: list[tuple[str, str, int, int, StratumFields]] = []
    for place, part in enumerate(parts):
        for row in _glanced(part):
            if reason := trace_filter.reason(row.trace, pool.matched) if trace_filter else None:
                pool.left_out[reason] += 1
            else:
                facts = quiet(row.trace)._replace(steps=row.steps)
                found.append((row.key, part.name, row.number, place, facts))
    found.sort(key=lambda item: item[:3])
    times: Counter[str] = Counter()
    for key, _, number, place, facts in found:
        times[key] += 1
        name = f"row {key} {times[key]}"
        pool.rows[name] = (place, number)
        pool.candidates.append(SampleCandidate(name, stratum_of_facts(facts, order.by)))


def _glanced(part: SourceFile) -> Iterator[RowPreview]:
    assert isinstance(part.part, TableSlice)
    return preview_rows(part.part, part.dialect)


def _add_sessions(pool: _Pool, order: SampleOptions) -> None:
    """Add each session as a candidate; a subagent belongs to its session if that is known."""
    seen = {item.trace_id: item for item in _all_seen(pool)}
    for trace_id, item in sorted(seen.items()):
        if item.parent not in seen:
            pool.candidates.append(SampleCandidate(trace_id, stratum_of_facts(item.facts, order.by)))


def _all_seen(pool: _Pool) -> Iterator[SeenTrace]:
    for kept in pool.marked:
        yield from kept.mark.seen
    for account in pool.accounts:
        yield from account.seen


def _chosen(
    plan: SourcePlan, pool: _Pool, parts: Sequence[SourceFile], drawn: DrawnSample, marks: Watermarks
) -> SourcePlan:
    """Return the plan with only the drawn sessions."""
    wanted = _with_subagents(drawn.taken, list(_all_seen(pool)))
    held = {item.trace_id for kept in pool.marked for item in kept.mark.seen if item.entry is not None}
    fresh = [replace(a.file, only=wanted) for a in pool.accounts if _any(a.seen, wanted)]
    kept: list[UnchangedSource] = []
    for one in pool.marked:
        if one.file is not None and _any(one.mark.seen, wanted - held):
            fresh.append(replace(one.file, only=wanted))
        else:
            kept.append(one._replace(mark=_cut_down(one.mark, wanted)))
    for part in _with_rows(parts, pool, wanted):
        same = [mark for mark in marks.current(part) if _is_same(mark, part)]
        if same:
            kept += [UnchangedSource(mark) for mark in same]
        else:
            fresh.append(part)
    changes = plan.changes + Counter({UNCHANGED: len(kept) - len(plan.kept)})
    return replace(plan, fresh=tuple(fresh), kept=tuple(kept), changes=changes, tables=())


def _with_subagents(taken: frozenset[str], seen: Sequence[SeenTrace]) -> frozenset[str]:
    """Return the drawn sessions with their subagents."""
    wanted = set(taken)
    while more := {item.trace_id for item in seen if item.parent in wanted} - wanted:
        wanted |= more
    return frozenset(wanted)


def _any(seen: Sequence[SeenTrace], wanted: frozenset[str]) -> bool:
    return any(item.trace_id in wanted for item in seen)


def _cut_down(mark: SourceRecord, wanted: frozenset[str]) -> SourceRecord:
    """Return the source record with only the wanted entries."""
    seen = (item if item.trace_id in wanted else replace(item, entry=None) for item in mark.seen)
    return replace(mark, seen=tuple(seen))


def _with_rows(parts: Sequence[SourceFile], pool: _Pool, wanted: frozenset[str]) -> Iterator[SourceFile]:
    """Return the parts of tables in which rows were drawn, with these rows."""
    rows: dict[int, list[int]] = {}
    for name, (place, number) in pool.rows.items():
        if name in wanted:
            rows.setdefault(place, []).append(number)
    for place, numbers in sorted(rows.items()):
        part = parts[place].part
        assert isinstance(part, TableSlice)
        yield replace(parts[place], part=replace(part, rows=tuple(sorted(numbers))))


def _is_same(mark: SourceRecord, part: SourceFile) -> bool:
    return mark.part == source_part_key(part) and mark.rows == wanted_rows_digest(part.part)
