"""Taking traces out of the tables for good: shards written anew, the old files deleted.

The order makes a kill harmless: new shards are written, the pointer is replaced, old files go last.
What a kill leaves behind is a file nothing points to, and `sweep_rewritten_shards` removes those.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tracemill.records.errors import WorkspaceError
from tracemill.records.storage.table_schemas import SCHEMAS
from tracemill.records.storage.workspace import Shard, Workspace, workspace_rows_without_traces

DROP_ORDER = ("pairs", "votes", "replies", "decisions", "traces")
"""The tables in the order they are rewritten: the traces last, so that a rerun after a kill finds what
is left to do."""


def drop_traces(work: Workspace, name: str, traces: frozenset[str]) -> int:
    """Remove the rows of these traces from every shard of a table; gives how many rows the table
    said of them. A shard that speaks for nothing else is dropped. Hold `runs.sole_writer`."""
    before = work.live(name)
    after: list[Shard] = []
    removed = 0
    for shard in before:
        covered = work.covers(name, shard)
        if not covered & traces:
            after.append(shard)
            continue
        table = work.read(name, shard)
        kept = workspace_rows_without_traces(name, table, traces)
        removed += table.num_rows - kept.num_rows
        if stays := covered - traces:
            place, rule = Path(shard.path).parent, work.made_by(name, shard)
            made_of = {of: rows for of, rows in work.made_of(name, shard).items() if of in stays}
            fresh = work.write_file(name, kept, sorted(stays), place, rule, made_of)
            after = [*(s for s in after if s.path != fresh.path), fresh]
    if after != before:
        work.point(name, after)
        sweep_rewritten_shards(work)
    return removed


def sweep_rewritten_shards(work: Workspace) -> int:
    """Delete what nothing points to: shards that are not live and temporary files of writers that were
    killed; gives how many files. Hold `runs.sole_writer`: a file being written looks the same."""
    stray = [*_stray_shards(work), *_temporary(work.root)]
    for path in stray:
        try:
            path.unlink()
        except OSError as error:
            raise WorkspaceError(f"{path} cannot be removed ({error.strerror})") from None
        with suppress(OSError):
            path.parent.rmdir()  # where it was the last of its folder
    return len(stray)


def _stray_shards(work: Workspace) -> Iterator[Path]:
    for name in SCHEMAS:
        live = {work.root / shard.path for shard in work.live(name)}
        yield from (path for path in (work.root / name).rglob("*.parquet") if path not in live)


def _temporary(root: Path) -> Iterator[Path]:
    for folder in (*SCHEMAS, "runs"):
        yield from (path for path in (root / folder).rglob(".*.tmp") if path.is_file())
    yield from (path for path in root.glob(".*.tmp") if path.is_file())
