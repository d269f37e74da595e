"""Ingest shards in several processes, ahead of the stage that takes them in order."""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import repeat
from typing import TYPE_CHECKING

from tracemill.flows.ingest.ingest_order import IngestOptions, make_ingester
from tracemill.flows.ingest.ingest_shard import IngestedShard, ShardIngester
from tracemill.flows.runtime.interrupts import hold_interrupts
from tracemill.ingesters.reading.source_file import SourceFile
from tracemill.records.errors import WorkspaceError
from tracemill.records.storage.shard_file import Shard
from tracemill.records.storage.workspace import Workspace

if TYPE_CHECKING:
    from concurrent.futures import Future
    from multiprocessing.context import BaseContext


_WORTH_A_PROCESS_BYTES = 12e6
Files = tuple[SourceFile, ...]
# In a process of its own: how sources are taken in, and the fullness of what was read before it began.
_ingester: ShardIngester | None = None
_fullness: Mapping[str, int] = {}


@contextmanager
def ingest_in_processes(
    order: IngestOptions, shards: Sequence[Files], fullness: Mapping[str, int]
) -> Iterator[Iterator[IngestedShard | None]]:
    """Read shards in processes that know `fullness`; yield the results of each shard, in order.

    Yields None for each if one process is enough. The processes start before the block, as forks if this
    process has no other thread yet.
    """
    jobs = min(order.jobs or _jobs_for(shards), len(shards))
    if jobs <= 1:
        yield repeat(None, len(shards))
        return
    with _processes(order, jobs, shards, fullness) as made:
        yield made


def _jobs_for(shards: Sequence[Files]) -> int:
    total = sum(file.bytes for files in shards for file in files)
    return max(1, min(len(os.sched_getaffinity(0)), int(total / _WORTH_A_PROCESS_BYTES)))


def discard_shards(work: Workspace, shards: Sequence[Shard]) -> None:
    """Remove the files of shards that are not live."""
    live = {shard.path for shard in work.live("traces")} if shards else set[str]()
    for shard in shards:
        if shard.path not in live:
            (work.root / shard.path).unlink(missing_ok=True)


@contextmanager
def _processes(
    order: IngestOptions, jobs: int, shards: Sequence[Files], fullness: Mapping[str, int]
) -> Iterator[Iterator[IngestedShard]]:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import active_children
    from multiprocessing.process import BaseProcess

    others, processes = set(active_children()), set[BaseProcess]()
    try:
        with hold_interrupts():  # one that was held is raised at the end of this block
            pool = ProcessPoolExecutor(jobs, _context(), _begin_worker, (order, fullness))
            tasks = [pool.submit(_ingest, files) for files in shards]
            processes = set(active_children()) - others
        try:
            yield _results(tasks)
        finally:
            pool.shutdown(cancel_futures=True)
    finally:
        for process in processes:  # after a second press what is begun is not waited for
            process.kill()


def _results(tasks: list["Future[IngestedShard]"]) -> Iterator[IngestedShard]:
    from concurrent.futures.process import BrokenProcessPool

    tasks.reverse()
    try:
        while tasks:
            yield tasks.pop().result()  # a result is large, and kept by nobody
    except BrokenProcessPool:
        raise WorkspaceError(
            "a process of this command was killed, perhaps for lack of memory",
            "memory for each of the processes",
            "give fewer with --jobs; what was written stays",
        ) from None


def _context() -> "BaseContext":
    """Return the start method of processes: fork if it is safe, else spawn.

    It is safe on Linux if no other thread may hold a lock.
    """
    from multiprocessing import get_context

    return get_context("fork" if sys.platform == "linux" and threading.active_count() == 1 else "spawn")


def _begin_worker(order: IngestOptions, fullness: Mapping[str, int]) -> None:
    """Set up a worker process: ignore terminal signals, which the parent handles, and end with the parent."""
    global _ingester, _fullness
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    work = Workspace(order.out.expanduser(), order.text)
    _ingester, _fullness = make_ingester(order, work), fullness


def _ingest(files: Files) -> IngestedShard:
    assert _ingester is not None
    return _ingester.ingest(files, _fullness.get)


def _end_with_parent() -> None:
    from multiprocessing import parent_process

    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)
