"""Read the traces of a workspace, one shard in memory at a time."""

from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa

from tracemill.records.errors import WorkspaceError
from tracemill.records.storage.shard_file import Shard
from tracemill.records.storage.trace_rows import traces_from_table
from tracemill.records.storage.workspace import Workspace
from tracemill.records.trace import Trace


def read_traces(work: Workspace, trace_ids: frozenset[str] | None = None) -> Iterator[Trace]:
    """Read stored traces, all or those with these ids, one in memory at a time."""
    for table in work.current("traces", trace_ids):
        yield from traces_of_table(table)


def traces_of_table(table: pa.Table) -> Iterator[Trace]:
    """Read the traces of a table, one in memory at a time."""
    for row in range(table.num_rows):
        yield traces_from_table(table.slice(row, 1))[0]


class StoredTraces:
    """Stored traces at the time of construction. One shard is in memory at a time."""

    def __init__(self, work: Workspace) -> None:
        self._work = work
        self._place: dict[str, Shard] = {}
        for shard in work.live("traces"):
            with suppress(WorkspaceError):
                self._place |= dict.fromkeys(work.covers("traces", shard), shard)
        self._open: tuple[Shard, pa.Table, dict[str, int]] | None = None

    def get(self, trace_id: str) -> Trace | None:
        """Return a stored trace; None if it does not exist, or its shard cannot be read."""
        shard = self._place.get(trace_id)
        if shard is None:
            return None
        if self._open is None or self._open[0] != shard:
            try:
                table = self._work.read("traces", shard)
            except (OSError, WorkspaceError, pa.ArrowException):
                return None
            rows = {name: row for row, name in enumerate(table["trace_id"].to_pylist())}
            self._open = shard, table, rows
        _, table, rows = self._open
        row = rows.get(trace_id)
        return None if row is None else traces_from_table(table.slice(row, 1))[0]
