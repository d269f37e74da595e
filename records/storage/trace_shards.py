"""Traces into shards as they come, so that memory follows the largest of them and not their number."""

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
    """Shards of the `traces` table, not live yet. Made by `trace_shards`.

    A shard ends by size, and where a trace comes again: of two shards that cover a trace the later one
    counts. `written` lists what is finished, `misfits` the ids of traces that no columns can be made of.
    Equal traces in equal order give equal bytes.
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
        self._taken_bytes = 0

    def add(self, trace: Trace, text_bytes: int) -> None:
        """One more trace; `text_bytes` is about the size of its text. It is written by `flush` and `end`."""
        if trace.trace_id in self._ids or trace.source != self._source:
            self.end()
        self._source = trace.source
        self._ids.add(trace.trace_id)
        self._waiting.append(trace)
        self._waiting_bytes += text_bytes

    def flush(self) -> None:
        """Write what waits, where it is enough for a row group. Raises WorkspaceError where it cannot be
        written. Hold no trace meanwhile: once in columns, none is needed any more."""
        if self._waiting_bytes >= _GROUP_BYTES or len(self._waiting) >= _GROUP_TRACES:
            self._write_group()
            if self._taken_bytes >= self._limit:
                self.end()

    def end(self) -> None:
        """The shard at hand is finished; the next trace begins another."""
        self._write_group()
        file, self._file = self._file, None
        self._stack.close()
        self._ids, self._taken_bytes = set(), 0
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
        self._taken_bytes += table.nbytes
        if self._file is None:
            folder = workspace_shard_folder("traces", self._source, self._day)
            self._file = self._stack.enter_context(self._work.writing("traces", folder))
        self._file.add(table, covers)

    def _table(self) -> pa.Table:
        """What waits, in columns; a trace with a value that fits none is taken out."""
        try:
            return traces_to_table(self._waiting)
        except (TypeError, ValueError, AttributeError):
            self.misfits += [trace.trace_id for trace in self._waiting if not _fits(trace)]
            self._waiting = [trace for trace in self._waiting if _fits(trace)]
            return traces_to_table(self._waiting)


@contextmanager
def trace_shards(work: Workspace, day: str, limit_bytes: float) -> Iterator[TraceShards]:
    """Shards of about `limit_bytes` of columns each; the last one ends with the block, and where that
    fails the one at hand is dropped. Raises WorkspaceError where they cannot be written."""
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
