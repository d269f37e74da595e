"""Remove traces from the tables for good: rewrite the shards and delete the old files.

The order makes a kill harmless: new shards are written, `live.json` is replaced, old files go last.
`sweep_rewritten_shards` removes the files that a kill leaves behind.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tracemill.records.errors import WorkspaceError
from tracemill.records.storage.table_schemas import SCHEMAS
from tracemill.records.storage.workspace import Shard, Workspace, workspace_rows_without_traces

DROP_ORDER = ("pairs", "votes", "replies", "decisions", "traces")
"""Tables in the order they are rewritten: traces last, so that a rerun after a kill finds the rest."""


def drop_traces(work: Workspace, name: str, traces: frozenset[str]) -> int:
    """Remove the rows of these traces from every shard of a table, and return their number.

    A shard without other traces is dropped. The caller holds `runs.sole_writer`.
    """
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
        if remaining := covered - traces:
            folder, rule = Path(shard.path).parent, work.made_by(name, shard)
            made_of = {of: rows for of, rows in work.made_of(name, shard).items() if of in remaining}
            fresh = work.write_file(name, kept, sorted(remaining), folder, rule, made_of)
            after = [*(s for s in after if s.path != fresh.path), fresh]
    if after != before:
        work.set_live(name, after)
        sweep_rewritten_shards(work)
    return removed


def sweep_rewritten_shards(work: Workspace) -> int:
    """Delete shards that are not live and temporary files of killed writers, and return their number.

    The caller holds `runs.sole_writer`, since a file being written looks the same.
    """
    stray = [*_stray_shards(work), *_temporary_files(work.root)]
    if work.copy is not None:
        work.copy.remove(_stray_behind_url(work))
    for path in stray:
        try:
            path.unlink()
        except OSError as error:
            raise WorkspaceError(f"{path} cannot be removed ({error.strerror})") from None
        with suppress(OSError):
            path.parent.rmdir()  # fails where the folder holds other files
    return len(stray)


def _stray_shards(work: Workspace) -> Iterator[Path]:
    for name in SCHEMAS:
        live = {work.root / shard.path for shard in work.live(name)}
        yield from (path for path in (work.root / name).rglob("*.parquet") if path not in live)


def _stray_behind_url(work: Workspace) -> list[str]:
    assert work.copy is not None
    live = {shard.path for name in SCHEMAS for shard in work.live(name)}
    return [each for name in SCHEMAS for each in work.copy.shards(name) if each not in live]


def _temporary_files(root: Path) -> Iterator[Path]:
    for folder in (*SCHEMAS, "runs"):
        yield from (path for path in (root / folder).rglob(".*.tmp") if path.is_file())
    yield from (path for path in root.glob(".*.tmp") if path.is_file())
