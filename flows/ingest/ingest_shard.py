"""One shard of source files: read → select → redact → write, with an account of each file."""

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tracemill.flows.admission.list_scope import NO_LISTS, ListScope
from tracemill.flows.admission.trace_inventory import TraceEntry, note_findings, sum_findings, trace_fullness
from tracemill.flows.ingest.duplicate_board import ReadBefore
from tracemill.flows.run_state.run_records import today
from tracemill.flows.run_state.run_summary import Summary
from tracemill.flows.runtime.interrupts import raise_if_interrupted
from tracemill.flows.sources.watermark_records import Facts, Seen
from tracemill.ingesters.read_source import Reading
from tracemill.ingesters.reading.source_file import SourceFile
from tracemill.records.ingest_report import IngestReport
from tracemill.records.storage.shard_file import Shard
from tracemill.records.storage.trace_shards import TraceShards, trace_shards
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import Trace

if TYPE_CHECKING:
    from tracemill.flows.admission.reredaction import Renewer
    from tracemill.flows.admission.trace_filter import Sieve
    from tracemill.flows.run_state.stored_traces import StoredTraces
    from tracemill.privacy.redaction.redactor import Redactor

TWICE = "same session in two files, the longer kept"
MISFIT = "trace that no columns can be made of"
NOT_SAMPLED = "not in the sample"


@dataclass(slots=True)
class Account:
    """One source that was read: what reading it gave, its traces, how many were left out by reason,
    fit the entries of the selection by their place, or were lost by what happened to them, whether all others
    were wanted, and whether text was kept that was redacted before."""

    file: SourceFile
    report: IngestReport
    seen: list[Seen] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    matched: Counter[int] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    whole: bool = True
    mixed: bool = False

    def lose(self, trace_ids: Collection[str]) -> None:
        """Traces of these that were taken have not come into the workspace."""
        for at, item in enumerate(self.seen):
            if item.trace_id in trace_ids and item.entry is not None:
                self.seen[at] = replace(item, entry=None)
                self.lost[MISFIT] += 1


@dataclass(slots=True)
class Ingested:
    """What a shard gave: a line a trace by its id, its counts, an account of each file, and the files
    it wrote, which are not live yet."""

    entries: dict[str, TraceEntry] = field(default_factory=dict)
    summary: Summary = field(default_factory=Summary)
    accounts: list[Account] = field(default_factory=list)
    shards: list[Shard] = field(default_factory=list)
    left: list[Shard] = field(default_factory=list)
    """Files that were written for it and are not part of it."""
    known: Mapping[str, int | None] = field(default_factory=dict)
    """The fullness, as far as was known, of the copies read before of each trace of its."""

    def knew(self, read: Mapping[str, int]) -> bool:
        """Whether it was made knowing what `read` says of each of its traces."""
        return all(read.get(trace_id) == steps for trace_id, steps in self.known.items())


@dataclass(frozen=True, slots=True)
class Intake:
    """How sources are taken in: `renewer` is None for a workspace of recorded text; `sieve` gives the
    reason to leave a trace out, None where all are taken; `shard_bytes` is about the text in one shard."""

    work: Workspace
    renewer: "Renewer | None"
    sieve: "Sieve | None"
    shard_bytes: float
    stored: "StoredTraces | None" = None
    """What the workspace holds already: the text that answers were bought for."""

    @property
    def redactor(self) -> "Redactor | None":
        """What redacts; None where text stays as recorded."""
        return self.renewer.redactor if self.renewer else None

    @property
    def lists(self) -> ListScope:
        """The user's own lists."""
        return self.renewer.lists if self.renewer else NO_LISTS

    def files(self, files: Sequence[SourceFile], read: dict[str, int]) -> Ingested:
        """Read the files and write their traces into shards. `read` holds the fullness of each trace
        that this run has read: of a session in two files the fuller stays, whichever comes first. Raises what
        `read` raises."""
        whole = sum(file.part is None or file.part.first == 0 for file in files)
        done = Ingested(summary=Summary(files=whole))
        with trace_shards(self.work, today(), self.shard_bytes) as shards:
            try:
                for file in files:
                    self._read(file, read, done, shards)
            except ReadBefore as late:
                late.written += shards.written
                raise
        if self.renewer is not None:
            self.renewer.known.add(self.renewer.redactor.pop_found_secrets())
        done.shards = shards.written
        for trace_id in shards.misfits:
            done.entries.pop(trace_id, None)
        for account in done.accounts:
            account.lose(shards.misfits)
            _count_account(account, done.summary)
        return done

    def _read(self, file: SourceFile, read: dict[str, int], done: Ingested, shards: TraceShards) -> None:
        """One file, its account the last one of `done`."""
        raise_if_interrupted()
        started = time.perf_counter()
        reading = Reading(file)
        account = Account(file, reading.report)
        done.accounts.append(account)
        for trace in reading:
            self._take(trace, read, done, shards)
            del trace  # before it is written it is wanted no longer, and the next may be as large
            shards.flush()
        account.report = reading.report
        account.report.seconds = round(time.perf_counter() - started, 4)

    def _take(self, trace: Trace, read: dict[str, int], done: Ingested, shards: TraceShards) -> None:
        account = done.accounts[-1]
        if reason := self.sieve.reason(trace, account.matched) if self.sieve else None:
            account.left_out[reason] += 1
            return
        facts, entry = ingest_shard_facts(trace, self.redactor), None
        if account.file.only is None or trace.trace_id in account.file.only:
            entry = self._taken(trace, read, done, shards)
        else:
            account.whole = False
        account.seen.append(Seen(trace.trace_id, trace.parent_trace_id, facts, entry))

    def _taken(
        self, trace: Trace, read: dict[str, int], done: Ingested, shards: TraceShards
    ) -> TraceEntry | None:
        """The entry of the trace, None where a copy that is no less full of it was read."""
        full = trace_fullness(trace)
        before = read.get(trace.trace_id)
        if before is not None:
            done.summary.flags[TWICE] += 1
            if before >= full:
                return None
        if self.renewer is not None:
            try:
                read_now = note_findings(*self.renewer.redactor.redact_trace(trace), self.renewer.notes)
                stored = self.stored.get(read_now.trace_id) if self.stored else None
                trace = self.renewer.join(read_now, stored)
                done.accounts[-1].mixed |= trace is not read_now
            except Exception as error:  # whatever it is, this one stays out and the others go on
                done.accounts[-1].lost[f"trace that cannot be redacted: {type(error).__name__}"] += 1
                return None
        read[trace.trace_id] = full
        entry = replace(TraceEntry.of(trace).then(self.lists), fullness=full)
        done.entries[trace.trace_id] = entry
        shards.add(trace, entry.text_bytes)
        return entry


def ingest_shard_facts(trace: Trace, redactor: "Redactor | None") -> Facts:
    """The facts of a recorded trace as they may be written down."""
    facts = Facts.of(trace)
    if redactor is None:
        return facts
    return facts._replace(repository=redactor.redact_text(facts.repository)[0])


def _count_account(account: Account, summary: Summary) -> None:
    report = account.report
    report.skipped += account.lost
    summary.left_out += account.left_out
    summary.matched += account.matched
    summary.records += report.records
    summary.skipped += report.skipped
    summary.flags += report.flags
    summary.unknown += report.unknown
    if report.error is not None:
        summary.unread[report.error] += 1


def count_entries(summary: Summary, entries: Collection[TraceEntry]) -> None:
    """Count the traces, their steps and what redaction found, once all shards are read: a trace that
    was in two of them is one."""
    summary.traces += len(entries)
    summary.contexts += sum(entry.contexts for entry in entries)
    summary.states += sum(entry.states for entry in entries)
    summary.redactions += sum_findings(entries)
