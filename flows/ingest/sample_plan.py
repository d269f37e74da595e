"""A sample of what a plan would read, drawn before any of it is taken in.

Of a table only its small columns are looked at; of other sources that are new or changed all is read,
but nothing redacted or kept; of unchanged ones what was remembered.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tracemill.flows.ingest.ingest_shard import NOT_SAMPLED, Account
from tracemill.flows.ingest.reuse_traces import trace_reuse_marks
from tracemill.flows.run_state.run_summary import Summary
from tracemill.flows.sources.sampling import (
    Candidate,
    Drawn,
    SampleOrder,
    draw_stratified_sample,
    stratum_of_facts,
)
from tracemill.flows.sources.shard_plan import UNCHANGED, Kept, Plan
from tracemill.flows.sources.watermark_records import Facts, Mark, Seen, source_part_key, wanted_rows_digest
from tracemill.flows.sources.watermarks import Watermarks
from tracemill.ingesters.read_source import Reading
from tracemill.ingesters.reading.parquet_rows import TableSlice
from tracemill.ingesters.reading.source_file import SourceFile
from tracemill.ingesters.row_preview import Glanced, preview_rows
from tracemill.records.trace import Trace

if TYPE_CHECKING:
    from tracemill.flows.admission.trace_filter import Sieve

Quiet = Callable[[Trace], Facts]
"""The facts of a trace as they may be written down."""


@dataclass(slots=True)
class _Pool:
    """Everything there is to choose from, and where it lies."""

    marked: list[Kept] = field(default_factory=list)
    accounts: list[Account] = field(default_factory=list)
    rows: dict[str, tuple[int, int]] = field(default_factory=dict)
    candidates: list[Candidate] = field(default_factory=list)
    count: Summary = field(default_factory=Summary)


def draw_sample_plan(
    plan: Plan, order: SampleOrder, marks: Watermarks, sieve: "Sieve | None", quiet: Quiet
) -> tuple[Plan, Drawn, Summary]:
    """The plan cut down to a sample, the draw, and the count of what was left out and matched. What was
    looked into is remembered, so that no later draw has to. Raises SourceError where a table cannot be
    read."""
    pool = _Pool(marked=list(plan.kept))
    _look_into(plan.fresh, pool, sieve, quiet)
    marks.add(trace_reuse_marks(pool.accounts, marks))
    parts = [part for table in plan.tables for part in table]
    _look_at_rows(parts, pool, sieve, quiet, order)
    _add_sessions(pool, order)
    drawn = draw_stratified_sample(pool.candidates, order)
    if missed := drawn.candidates - len(drawn.taken):
        pool.count.left_out[NOT_SAMPLED] += missed
    return _chosen(plan, pool, parts, drawn, marks), drawn, pool.count


def _look_into(files: Sequence[SourceFile], pool: _Pool, sieve: "Sieve | None", quiet: Quiet) -> None:
    """Read sources for their facts alone."""
    for file in files:
        reading = Reading(file)
        account = Account(file, reading.report, whole=False)
        for trace in reading:
            if reason := sieve.reason(trace, account.matched) if sieve else None:
                account.left_out[reason] += 1
            else:
                account.seen.append(Seen(trace.trace_id, trace.parent_trace_id, quiet(trace)))
        account.report = reading.report
        pool.accounts.append(account)
        pool.count.matched += account.matched


def _look_at_rows(
    parts: Sequence[SourceFile], pool: _Pool, sieve: "Sieve | None", quiet: Quiet, order: SampleOrder
) -> None:
    """The rows of tables as candidates; equal ones are told apart by their order in the tables."""
    found: list[tuple[str, str, int, int, Facts]] = []
    for place, part in enumerate(parts):
        for row in _glanced(part):
            if reason := sieve.reason(row.trace, pool.count.matched) if sieve else None:
                pool.count.left_out[reason] += 1
            else:
                facts = quiet(row.trace)._replace(steps=row.steps)
                found.append((row.key, part.name, row.number, place, facts))
    found.sort(key=lambda item: item[:3])
    times: Counter[str] = Counter()
    for key, _, number, place, facts in found:
        times[key] += 1
        name = f"row {key} {times[key]}"
        pool.rows[name] = (place, number)
        pool.candidates.append(Candidate(name, stratum_of_facts(facts, order.by)))


def _glanced(part: SourceFile) -> Iterator[Glanced]:
    assert isinstance(part.part, TableSlice)
    return preview_rows(part.part, part.dialect)


def _add_sessions(pool: _Pool, order: SampleOrder) -> None:
    """Each session as a candidate; a subagent goes with its session where that is known."""
    seen = {item.trace_id: item for item in _all_seen(pool)}
    for trace_id, item in sorted(seen.items()):
        if item.parent not in seen:
            pool.candidates.append(Candidate(trace_id, stratum_of_facts(item.facts, order.by)))


def _all_seen(pool: _Pool) -> Iterator[Seen]:
    for kept in pool.marked:
        yield from kept.mark.seen
    for account in pool.accounts:
        yield from account.seen


def _chosen(plan: Plan, pool: _Pool, parts: Sequence[SourceFile], drawn: Drawn, marks: Watermarks) -> Plan:
    """The plan with what was taken alone."""
    wanted = _with_subagents(drawn.taken, list(_all_seen(pool)))
    held = {item.trace_id for kept in pool.marked for item in kept.mark.seen if item.entry is not None}
    fresh = [replace(a.file, only=wanted) for a in pool.accounts if _any(a.seen, wanted)]
    kept: list[Kept] = []
    for one in pool.marked:
        if one.file is not None and _any(one.mark.seen, wanted - held):
            fresh.append(replace(one.file, only=wanted))
        else:
            kept.append(one._replace(mark=_cut_down(one.mark, wanted)))
    for part in _with_rows(parts, pool, wanted):
        same = [mark for mark in marks.current(part) if _is_same(mark, part)]
        if same:
            kept += [Kept(mark) for mark in same]
        else:
            fresh.append(part)
    changes = plan.changes + Counter({UNCHANGED: len(kept) - len(plan.kept)})
    return replace(plan, fresh=tuple(fresh), kept=tuple(kept), changes=changes, tables=())


def _with_subagents(taken: frozenset[str], seen: Sequence[Seen]) -> frozenset[str]:
    """What was taken and all that hangs on it."""
    wanted = set(taken)
    while more := {item.trace_id for item in seen if item.parent in wanted} - wanted:
        wanted |= more
    return frozenset(wanted)


def _any(seen: Sequence[Seen], wanted: frozenset[str]) -> bool:
    return any(item.trace_id in wanted for item in seen)


def _cut_down(mark: Mark, wanted: frozenset[str]) -> Mark:
    """The mark with the entries of what is wanted alone."""
    seen = (item if item.trace_id in wanted else replace(item, entry=None) for item in mark.seen)
    return replace(mark, seen=tuple(seen))


def _with_rows(parts: Sequence[SourceFile], pool: _Pool, wanted: frozenset[str]) -> Iterator[SourceFile]:
    """The parts of tables in which rows were taken, with these rows."""
    rows: dict[int, list[int]] = {}
    for name, (place, number) in pool.rows.items():
        if name in wanted:
            rows.setdefault(place, []).append(number)
    for place, numbers in sorted(rows.items()):
        part = parts[place].part
        assert isinstance(part, TableSlice)
        yield replace(parts[place], part=replace(part, rows=tuple(sorted(numbers))))


def _is_same(mark: Mark, part: SourceFile) -> bool:
    return mark.part == source_part_key(part) and mark.rows == wanted_rows_digest(part.part)
