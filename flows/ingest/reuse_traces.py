"""Reuse traces of sources that are unchanged, or that cannot be read now."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from tracemill.flows.admission.trace_filter import FORGOTTEN
from tracemill.flows.admission.trace_inventory import TraceEntry
from tracemill.flows.ingest.ingest_shard import TWICE, FileReport, ShardIngester, summarize_report
from tracemill.flows.run_state.run_summary import Summary, add_up
from tracemill.flows.sources.shard_plan import UnchangedSource
from tracemill.flows.sources.watermark_records import (
    SourceRecord,
    companion_digest,
    digest_file_ends,
    source_part_key,
    wanted_rows_digest,
)
from tracemill.flows.sources.watermarks import Watermarks
from tracemill.records.errors import WorkspaceError
from tracemill.records.storage.shard_file import Shard
from tracemill.records.storage.trace_rows import traces_from_table
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import Trace

DAMAGED = "damaged shard of traces, its sources are read again"


def drop_damaged(work: Workspace) -> Summary:
    """Remove unreadable shards of traces from the list of live shards, and count them.

    Their sources have no valid watermark and are read again. The files stay.
    """
    live = work.live("traces")
    whole = [shard for shard in live if _reads(work, shard)]
    if len(whole) == len(live):
        return Summary()
    work.set_live("traces", whole)
    return Summary(flags=Counter({DAMAGED: len(live) - len(whole)}))


def _reads(work: Workspace, shard: Shard) -> bool:
    try:
        work.covers("traces", shard)
    except WorkspaceError:
        return False
    return True


def reuse_traces(
    ingester: ShardIngester, kept: Sequence[UnchangedSource]
) -> tuple[dict[str, TraceEntry], Summary]:
    """Return an entry for each trace of the sources that are not read, and their counts.

    They are counted as if they were read. If the selection has changed, the traces are selected again by
    their redacted text; today's lists apply to them too, since all text is redacted again before it leaves.
    """
    work, trace_filter, lists = ingester.work, ingester.trace_filter, ingester.lists
    entries: dict[str, TraceEntry] = {}
    stale: set[str] = set()
    seen: set[str] = set()
    twice, left_out, matched = 0, Counter[str](), Counter[int]()
    for mark, _, is_stale in kept:
        if not is_stale:
            matched.update(mark.matched)
        for item in mark.seen:
            twice += item.trace_id in seen
            seen.add(item.trace_id)
            before = entries.get(item.trace_id)
            if item.entry is not None and (before is None or before.fullness < item.entry.fullness):
                entries[item.trace_id] = item.entry.then(lists)
            if item.entry is not None and is_stale:
                stale.add(item.trace_id)
    for trace in _load(work, stale):
        if reason := trace_filter.reason(trace, matched) if trace_filter else None:
            left_out[reason] += 1
            entries.pop(trace.trace_id, None)
    present = set[str]().union(*(work.covers("traces", shard) for shard in work.live("traces")))
    entries = {trace_id: entry for trace_id, entry in entries.items() if trace_id in present}
    again = Summary(left_out=left_out, matched=matched, flags=Counter({TWICE: twice} if twice else {}))
    unchanged = (summarize_report(each.mark.report, each.mark.left_out) for each in kept)
    return entries, add_up([*unchanged, again])


def _load(work: Workspace, trace_ids: Collection[str]) -> Iterable[Trace]:
    for table in work.current("traces", frozenset(trace_ids)) if trace_ids else ():
        yield from traces_from_table(table)


def batch_reused_traces(work: Workspace, traces: Collection[str]) -> list[list[str]]:
    """Group traces by their shard, oldest shard first.

    The groups are equal from run to run unless the traces are read again.
    """
    found: list[list[str]] = []
    left = set(traces)
    for shard in reversed(work.live("traces")):
        here = work.covers("traces", shard) & left
        left -= here
        if here:
            found.append(sorted(here))
    return found[::-1]


def trace_reuse_marks(accounts: Iterable[FileReport], marks: Watermarks) -> list[SourceRecord]:
    """Return the records to store of sources that were read.

    There is none for a source that could not be read, that is gone again, or that contains anything
    forgotten, which may be allowed again later.
    """
    return [
        mark
        for account in accounts
        if account.report.error is None and FORGOTTEN not in account.left_out
        for mark in _mark(account, marks)
    ]


def _mark(account: FileReport, marks: Watermarks) -> Iterable[SourceRecord]:
    file = account.file
    try:
        ends = "" if file.url else digest_file_ends(file.path, file.stamp.bytes)
    except OSError:
        return
    yield SourceRecord(
        marks.key_of(file),
        file.stamp,
        ends,
        account.report.dialect,
        marks.mixed.id if account.mixed else marks.today.id,
        marks.roots_of(file),
        source_part_key(file),
        companion_digest(file),
        wanted_rows_digest(file.part),
        account.whole,
        tuple(account.seen),
        dict(account.left_out),
        tuple(sorted(account.matched)),
        account.report,
    )
