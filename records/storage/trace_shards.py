"""Write traces into shards as they come, so that memory follows the largest trace and not their number."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pyarrow as pa

from tracemill.records.storage.shard_file import Shard, ShardFile
from tracemill.records.storage.trace_rows import traces_to_table
from tracemill.records.storage.workspace import Workspace, workspace_shard_folder
from tracemill.records.trace import Trace

_GROUP_BYTES = 1 << 21
_GROUP_TRACES = 64


class TraceShards:
    """Shards of the `traces` table that are not live yet, made by `trace_shards`.

    A shard ends at its size limit, and before a second trace of the same id: of two shards that cover a
    trace the later one counts. `written` lists the finished shards, `misfits` the ids of traces that cannot
    be stored. Equal traces in equal order give equal bytes.
    """

    def __init__(self, work: Workspace, day: str, limit_bytes: float, stack: ExitStack) -> None:
        self.written: list[Shard] = []
        self.misfits: list[str] = []
        self._work = work
        self._day = day
        self._limit = limit_bytes
        self._stack = stack
        self._file: ShardFile | None = None
        self._source = ""
        self._waiting: list[Trace] = []
        self._waiting_bytes = 0
        self._ids: set[str] = set()
        self._shard_bytes = 0

    def add(self, trace: Trace, text_bytes: int) -> None:
        """Add a trace with about `text_bytes` bytes of text; `flush` and `end` write it."""
        if trace.trace_id in self._ids or trace.source != self._source:
            self.end()
        self._source = trace.source
        self._ids.add(trace.trace_id)
        self._waiting.append(trace)
        self._waiting_bytes += text_bytes

    def flush(self) -> None:
        """Write the waiting traces if they are enough for a row group.

        The caller need not keep them. Raises WorkspaceError if they cannot be written.
        """
        if self._waiting_bytes >= _GROUP_BYTES or len(self._waiting) >= _GROUP_TRACES:
            self._write_group()
            if self._shard_bytes >= self._limit:
                self.end()

    def end(self) -> None:
        """Finish the current shard; the next trace begins another."""
        self._write_group()
        file, self._file = self._file, None
        self._stack.close()
        self._ids, self._shard_bytes = set(), 0
        if file is not None and file.written is not None:
            self.written.append(file.written)

    def _write_group(self) -> None:
        if not self._waiting:
            return
        table = self._table()
        covers = [trace.trace_id for trace in self._waiting]
        self._waiting.clear()
        self._waiting_bytes = 0
        if not covers:
            return
        self._shard_bytes += table.nbytes
        if self._file is None:
            folder = workspace_shard_folder("traces", self._source, self._day)
            self._file = self._stack.enter_context(self._work.open_shard("traces", folder))
        self._file.add(table, covers)

    def _table(self) -> pa.Table:
        """Return the waiting traces as a table, after removing those that cannot be stored."""
        try:
            return traces_to_table(self._waiting)
        except (TypeError, ValueError, AttributeError):
            self.misfits += [trace.trace_id for trace in self._waiting if not _fits(trace)]
            self._waiting = [trace for trace in self._waiting if _fits(trace)]
            return traces_to_table(self._waiting)


@contextmanager
def trace_shards(work: Workspace, day: str, limit_bytes: float) -> Iterator[TraceShards]:
    """Yield a writer of shards of about `limit_bytes` each; the last one ends with the block.

    If the block fails, the current shard is dropped. Raises WorkspaceError if shards cannot be written.
    """
    with ExitStack() as stack:
        shards = TraceShards(work, day, limit_bytes, stack)
        yield shards
        shards.end()


def _fits(trace: Trace) -> bool:
    try:
        traces_to_table([trace])
    except (TypeError, ValueError, AttributeError):
        return False
    return True
