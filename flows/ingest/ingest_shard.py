"""Ingest one shard of source files: read, select, redact, write, with a report of each file."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tracemill.flows.admission.list_scope import NO_LISTS, ListScope
from tracemill.flows.admission.trace_inventory import TraceEntry, note_findings, sum_findings, trace_fullness
from tracemill.flows.run_state.run_records import today
from tracemill.flows.run_state.run_summary import Summary, add_up
from tracemill.flows.runtime.interrupts import raise_if_interrupted
from tracemill.flows.sources.watermark_records import SeenTrace, StratumFields
from tracemill.ingesters.read_source import SourceReading
from tracemill.ingesters.reading.source_file import SourceFile
from tracemill.records.ingest_report import IngestReport
from tracemill.records.storage.shard_file import Shard
from tracemill.records.storage.trace_shards import TraceShards, trace_shards
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import Trace

if TYPE_CHECKING:
    from tracemill.flows.admission.reredaction import Reredactor
    from tracemill.flows.admission.trace_filter import TraceFilter
    from tracemill.flows.run_state.stored_traces import StoredTraces
    from tracemill.privacy.redaction.redactor import Redactor

TWICE = "same session in two files, the longer kept"
MISFIT = "trace that no columns can be made of"
NOT_SAMPLED = "not in the sample"
FullnessOf = Callable[[str], int | None]
"""(trace id) to how full the copy of it is that was read before, None if there is none."""


@dataclass(slots=True)
class FileReport:
    """Counts of one source while its traces are read.

    `left_out` counts traces by reason, `matched` the traces that match an entry of the selection by the
    entry's index, `lost` the traces that were not written to the workspace. `whole`: all other traces were
    wanted. `mixed`: text was kept that another version redacted.
    """

    file: SourceFile
    report: IngestReport
    seen: list[SeenTrace] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    matched: Counter[int] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    whole: bool = True
    mixed: bool = False

    def lose(self, trace_ids: Collection[str]) -> None:
        """Record that those of these traces that were taken have not been written to the workspace."""
        for at, item in enumerate(self.seen):
            if item.trace_id in trace_ids and item.entry is not None:
                self.seen[at] = replace(item, entry=None)
                self.lost[MISFIT] += 1


@dataclass(frozen=True, slots=True)
class IngestedShard:
    """The result of reading a shard of sources.

    It has an entry for each trace by its id, the counts, a report of each file, and the files it wrote,
    which are not live yet.
    """

    entries: dict[str, TraceEntry] = field(default_factory=dict)
    summary: Summary = field(default_factory=Summary)
    accounts: list[FileReport] = field(default_factory=list)
    shards: list[Shard] = field(default_factory=list)
    looked_up: Mapping[str, int | None] = field(default_factory=dict)
    """How full the copy read before of each of its traces was, None if there was none."""

    def was_read_with(self, fullness_of: FullnessOf) -> bool:
        """Return whether the shard was read with the values that `fullness_of` returns for its traces."""
        return all(fullness_of(trace_id) == full for trace_id, full in self.looked_up.items())


@dataclass(slots=True)
class _ShardReading:
    """The state of a shard while it is read."""

    shards: TraceShards
    fullness_of: FullnessOf
    entries: dict[str, TraceEntry] = field(default_factory=dict)
    accounts: list[FileReport] = field(default_factory=list)
    looked_up: dict[str, int | None] = field(default_factory=dict)
    twice: int = 0

    def copy_before(self, trace_id: str) -> int | None:
        """Return the fullness of the fullest copy of a trace that was read, None if there is none."""
        known = self.fullness_of(trace_id)
        self.looked_up.setdefault(trace_id, known)
        here = self.entries.get(trace_id)
        return known if here is None else here.fullness


@dataclass(frozen=True, slots=True)
class ShardIngester:
    """A reader of sources into a workspace.

    `reredactor` is None for a workspace of recorded text; `trace_filter` returns the reason to leave a
    trace out, None if all are taken; `shard_bytes` is the approximate size of the text in one shard.
    """

    work: Workspace
    reredactor: "Reredactor | None"
    trace_filter: "TraceFilter | None"
    shard_bytes: float
    stored: "StoredTraces | None" = None
    """What the workspace holds already: the text that answers were bought for."""

    @property
    def redactor(self) -> "Redactor | None":
        """Return the redactor; None where text stays as recorded."""
        return self.reredactor.redactor if self.reredactor else None

    @property
    def lists(self) -> ListScope:
        """Return the user's own lists."""
        return self.reredactor.lists if self.reredactor else NO_LISTS

    def ingest(self, files: Sequence[SourceFile], fullness_of: FullnessOf) -> IngestedShard:
        """Read the files and write their traces into shards.

        If two files contain the same session, the fuller copy is kept, whichever comes first.
        """
        whole = sum(file.part is None or file.part.first == 0 for file in files)
        with trace_shards(self.work, today(), self.shard_bytes) as shards:
            reading = _ShardReading(shards, fullness_of)
            for file in files:
                self._read(file, reading)
        if self.reredactor is not None:
            self.reredactor.known.add(self.reredactor.redactor.pop_found_secrets())
        for trace_id in shards.misfits:
            reading.entries.pop(trace_id, None)
        for account in reading.accounts:
            account.lose(shards.misfits)
            account.report.skipped += account.lost
        summary = Summary(files=whole, flags=Counter({TWICE: reading.twice} if reading.twice else {}))
        counts = (
            replace(summarize_report(account.report, account.left_out), matched=account.matched)
            for account in reading.accounts
        )
        summary = add_up([summary, *counts])
        return IngestedShard(reading.entries, summary, reading.accounts, shards.written, reading.looked_up)

    def _read(self, file: SourceFile, reading: _ShardReading) -> None:
        """Read one file; its report is the last one."""
        raise_if_interrupted()
        started = time.perf_counter()
        source = SourceReading(file)
        account = FileReport(file, source.report)
        reading.accounts.append(account)
        for trace in source:
            self._take(trace, account, reading)
            del trace  # before it is written it is wanted no longer, and the next may be as large
            reading.shards.flush()
        account.report = source.report
        account.report.seconds = round(time.perf_counter() - started, 4)

    def _take(self, trace: Trace, account: FileReport, reading: _ShardReading) -> None:
        if reason := self.trace_filter.reason(trace, account.matched) if self.trace_filter else None:
            account.left_out[reason] += 1
            return
        facts, entry = ingest_shard_facts(trace, self.redactor), None
        if account.file.only is None or trace.trace_id in account.file.only:
            entry = self._taken(trace, account, reading)
        else:
            account.whole = False
        account.seen.append(SeenTrace(trace.trace_id, trace.parent_trace_id, facts, entry))

    def _taken(self, trace: Trace, account: FileReport, reading: _ShardReading) -> TraceEntry | None:
        """Return the entry of the trace, None if a copy that is at least as full was already read."""
        full = trace_fullness(trace)
        before = reading.copy_before(trace.trace_id)
        if before is not None:
            reading.twice += 1
            if before >= full:
                return None
        if self.reredactor is not None:
            try:
                read_now = note_findings(*self.reredactor.redactor.redact_trace(trace), self.reredactor.notes)
                stored = self.stored.get(read_now.trace_id) if self.stored else None
                trace = self.reredactor.merge_stored(read_now, stored)
                account.mixed |= trace is not read_now
            except Exception as error:  # whatever it is, this one stays out and the others go on
                account.lost[f"trace that cannot be redacted: {type(error).__name__}"] += 1
                return None
        entry = replace(TraceEntry.of(trace).then(self.lists), fullness=full)
        reading.entries[trace.trace_id] = entry
        reading.shards.add(trace, entry.text_bytes)
        return entry


def ingest_shard_facts(trace: Trace, redactor: "Redactor | None") -> StratumFields:
    """Return the fields of a recorded trace that a sample is stratified by, redacted for storage."""
    facts = StratumFields.of(trace)
    if redactor is None:
        return facts
    return facts._replace(repository=redactor.redact_text(facts.repository)[0])


def summarize_report(report: IngestReport, left_out: Mapping[str, int]) -> Summary:
    """Return the counts of a report; an error of the whole source counts as unread."""
    return Summary(
        left_out=Counter(left_out),
        records=report.records,
        skipped=report.skipped,
        flags=report.flags,
        unknown=report.unknown,
        unread=Counter() if report.error is None else Counter({report.error: 1}),
    )


def count_entries(entries: Collection[TraceEntry]) -> Summary:
    """Count the traces, their steps and the findings of redaction, once all shards are read.

    A trace that was in two of them is counted once.
    """
    return Summary(
        traces=len(entries),
        contexts=sum(entry.contexts for entry in entries),
        states=sum(entry.states for entry in entries),
        redactions=sum_findings(entries),
    )
