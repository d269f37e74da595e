"""The shards of `tracemill ingest`, one after the other or in several processes, with one outcome."""

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import astuple, dataclass
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

from tracemill.flows.ingest.duplicate_board import ReadBefore, SharedFullness
from tracemill.flows.ingest.ingest_shard import Ingested, Intake
from tracemill.flows.runtime.lean_imports import lean_imports
from tracemill.flows.sources.source_spec import SourceOrder
from tracemill.ingesters.reading.source_file import SourceFile
from tracemill.records.errors import WorkspaceError
from tracemill.records.identity import canonical_json, digest
from tracemill.records.storage.shard_file import Shard
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import Trace

if TYPE_CHECKING:
    from multiprocessing.context import BaseContext

    from tracemill.flows.admission.privacy_settings import PrivacySettings
    from tracemill.flows.admission.select_settings import SelectSettings
    from tracemill.flows.admission.trace_filter import Sieve
    from tracemill.flows.runtime.worker_pool import Piped
    from tracemill.flows.sources.sampling import SampleOrder
    from tracemill.privacy.redaction.redactor import Rules

_WORTH_A_PROCESS_BYTES = 12e6
_BOARD = ".fullness.tmp"
Files = tuple[SourceFile, ...]


@dataclass(frozen=True, slots=True)
class IngestOrder:
    """What `tracemill ingest` is asked for. `jobs` processes at most; None: one for every 12 MB, up to
    the cores there are. `privacy` are the user's own lists; `forgotten` the workspaces whose forgotten
    sessions stay out of a folder of recorded text, which can forget nothing itself."""

    sources: SourceOrder
    out: Path
    select: "SelectSettings | None" = None
    unredacted: bool = False
    jobs: int | None = None
    shard_mb: float = 16.0
    sample: "SampleOrder | None" = None
    privacy: "PrivacySettings | None" = None
    forgotten: tuple[Path, ...] = ()
    ask_again: bool = False
    """What was redacted otherwise than today is read again, so that its steps are asked anew."""
    rules: "Rules | None" = None
    """Today's, unless others are given."""

    def fingerprint(self) -> str:
        """What is taken in, without where to and how fast."""
        chosen = self.select.model_dump(mode="json") if self.select else {}
        sampled = astuple(self.sample) if self.sample else None
        lists = self.privacy.model_dump(mode="json") if self.privacy else {}
        asked = [self.sources.names(), self.sources.format, chosen, self.unredacted, sampled, lists]
        return digest("ingest", canonical_json(asked), size=8)


@contextmanager
def parallel_ingest_shards(
    order: IngestOrder, intake: Intake, shards: Sequence[Files], read: dict[str, int]
) -> Iterator[Iterator[Ingested]]:
    """What each shard gives, in order, its traces live in the workspace; `read` holds the fullness of
    what is there. Any number of processes gives the same bytes; they begin before the block, as copies of
    this one where it has no other thread yet. Raises WorkspaceError where the workspace cannot be written."""
    jobs = min(order.jobs or _jobs_for(shards), len(shards))
    alone = nullcontext(repeat(None, len(shards)))
    with _in_processes(order, jobs, shards, dict(read)) if jobs > 1 else alone as made:
        yield _in_order(intake, shards, made, read)


def _in_order(
    intake: Intake, shards: Sequence[Files], made: Iterable[Ingested | None], read: dict[str, int]
) -> Iterator[Ingested]:
    work = intake.work
    for files, done in zip(shards, made, strict=True):
        if done is not None:
            _discard(work, done.left)
            if not done.knew(read):  # which copy of a session stays is decided in order
                _discard(work, done.shards)
                done = None
        if done is None:
            done = intake.files(files, read)
        else:
            read |= {trace_id: entry.fullness for trace_id, entry in done.entries.items()}
        work.add("traces", done.shards)
        yield done


def _jobs_for(shards: Sequence[Files]) -> int:
    total = sum(file.bytes for files in shards for file in files)
    return max(1, min(len(os.sched_getaffinity(0)), int(total / _WORTH_A_PROCESS_BYTES)))


def parallel_ingest_intake(order: IngestOrder, work: Workspace) -> Intake:
    """How the sources of an order are taken in. Raises WorkspaceError where one that says what was
    forgotten is none."""
    select, size = order.select, order.shard_mb * 1e6
    if order.unredacted:
        return Intake(work, None, _recorded_sieve(order) if select or order.forgotten else None, size)
    from tracemill.flows.admission.list_scope import NO_LISTS
    from tracemill.flows.admission.redaction_setup import TODAYS_RULES, list_scope, make_redactor, make_sieve
    from tracemill.flows.admission.reredaction import Renewer
    from tracemill.flows.run_state.stored_traces import StoredTraces

    lists = list_scope(work, order.privacy) if order.privacy else NO_LISTS
    redactor = make_redactor(work, order.privacy, order.rules or TODAYS_RULES)
    renewer = Renewer.of(work, redactor, lists, order.ask_again)
    return Intake(work, renewer, make_sieve(select, work), size, StoredTraces(work))


def _recorded_sieve(order: IngestOrder) -> "Sieve":
    from tracemill.flows.admission.forgotten_list import Forgotten
    from tracemill.flows.admission.trace_filter import Sieve

    known = [Forgotten.of(Workspace.open(place, create=False)) for place in order.forgotten]

    def reason(trace: Trace) -> str | None:
        return next((why for each in known if (why := each.reason(trace))), None)

    return Sieve(reason, order.select)


def _discard(work: Workspace, shards: Sequence[Shard]) -> None:
    live = {shard.path for shard in work.live("traces")} if shards else set[str]()
    for shard in shards:
        if shard.path not in live:
            (work.root / shard.path).unlink(missing_ok=True)


@contextmanager
def _in_processes(
    order: IngestOrder, jobs: int, shards: Sequence[Files], read: dict[str, int]
) -> Iterator[Iterator[Ingested | None]]:
    from tracemill.flows.runtime.worker_pool import Piped

    board = order.out.expanduser() / _BOARD
    board.unlink(missing_ok=True)  # of one that was killed
    processes = Piped(_context(), jobs, _taker, order, read, board)
    try:
        try:
            yield _results(processes, shards)
        finally:
            processes.finish()
    finally:
        processes.kill()  # after a second press what is begun is not waited for
        board.unlink(missing_ok=True)


def _results(processes: "Piped", shards: Sequence[Files]) -> Iterator[Ingested]:
    from tracemill.flows.runtime.worker_pool import ProcessEnded

    try:
        yield from processes.map(list(enumerate(shards)))
    except ProcessEnded:
        processes.kill()
        raise WorkspaceError(
            "a process of this command was killed, perhaps for want of memory",
            "memory for each of the processes",
            "give fewer with --jobs; what was written stays",
        ) from None


def _context() -> "BaseContext":
    """How a process begins: as a copy of this one, which costs nothing, where that is sound (Linux, no other
    thread that may hold a lock), else from nothing."""
    from multiprocessing import get_context

    return get_context("fork" if sys.platform == "linux" and threading.active_count() == 1 else "spawn")


def _taker(order: IngestOrder, read: dict[str, int], board: Path) -> Callable[[int, Files], Ingested]:
    """The work of a process of its own."""
    work = Workspace(order.out.expanduser(), "recorded" if order.unredacted else "redacted")
    return partial(_take_in, parallel_ingest_intake(order, work), read, board)


def _take_in(intake: Intake, read: dict[str, int], board: Path, number: int, files: Files) -> Ingested:
    """What a shard gives. It is begun once more where a session in it turns out to be in an earlier one."""
    left: list[Shard] = []
    for strict in (True, False):
        with SharedFullness(read, board, number, strict) as known, lean_imports():
            try:
                done = intake.files(files, known)
            except ReadBefore as late:
                left = late.written
                continue
        done.known, done.left = known.known, left
        return done
    raise AssertionError
