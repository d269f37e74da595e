"""The workspace: a folder of tables as immutable Parquet shards, runs and releases.

    traces/ decisions/ replies/ votes/ pairs/    tables: source=<source>/day=<day>/<digest>.parquet
        live.json                                the live shards, oldest first
    runs/<run_id>/                               manifests of each stage
    releases/<name>/<version>/                   finished releases
    ledger.sqlite                                money and bought answers (or a database URL)
    consents.json, forgotten.json                what may leave this machine, what must not come back
    workspace.json                               the marker: layout, and whether the text is redacted

The folder may be the working copy of a workspace behind a URL (`records/storage/working_copy.py`).

A shard is named by the hash of its content and never changes. Its metadata lists the traces it covers; a
later shard that covers a trace replaces the rows of earlier ones. `live.json` is replaced atomically under
a lock, so there is one writer at a time.
"""

import fcntl
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tracemill.records.errors import WorkspaceError
from tracemill.records.storage.atomic_files import read_json_file, write_json
from tracemill.records.storage.shard_file import Shard, ShardFile, open_shard_file
from tracemill.records.storage.table_schemas import SCHEMAS, upgrade
from tracemill.records.storage.working_copy import RUN_LOCK, working_copy_at
from tracemill.records.storage.workspace_marker import (
    MARKER,
    Text,
    check_marker,
    close_to_others,
    create_marker,
)

MadeOf = Mapping[str, tuple[int, str]]
"""Trace id → number of rows of another table that went into a shard, and a digest of them."""


class Workspace:
    """A workspace folder, as the module describes it; use `open` to create or open one.

    `text` says whether its tables hold `redacted` text, or text as `recorded`. Recorded text is never sent,
    labelled or released.
    """

    def __init__(self, root: Path, text: Text = "redacted") -> None:
        self.root = root
        self.text: Text = text
        self.copy = working_copy_at(root)
        """Where the workspace lies; None for a folder alone."""
        self._covered: dict[str, frozenset[str]] = {}

    @classmethod
    def open(
        cls, root: Path | str, create: bool = True, text: Text = "redacted", writes: bool = True
    ) -> "Workspace":
        """Open the workspace at `root`, and make it where it is missing and `create` is set.

        Without `writes` it may be read-only; with it, files that an older version left open to others become
        private. Raises WorkspaceError for a folder that is missing, not writable, not empty and no workspace,
        of a newer layout, or that holds the other kind of text.
        """
        root = Path(root).expanduser()
        marker = root / MARKER
        if marker.exists():
            check_marker(marker, text)
        elif not create:
            raise WorkspaceError(
                f"{root} is not a workspace",
                "a folder made by tracemill run or ingest",
                "run one of them first, or name yours with --workspace",
            )
        else:
            if root.is_dir() and any(path.name != RUN_LOCK for path in root.iterdir()):
                raise WorkspaceError(
                    f"{root} holds other files", "an empty or new folder", "choose another with --workspace"
                )
            create_marker(marker, text)
            if working_copy_at(root) is None:  # which lies in a cache
                (root / ".gitignore").write_text("*\n", encoding="utf-8")
        work = cls(root, text)
        if writes and not work.is_writable():
            raise WorkspaceError(f"{root} cannot be written", "a folder with write permission")
        if writes:
            close_to_others(marker)
        return work

    def is_writable(self) -> bool:
        """Return whether files may be made in the folder."""
        return os.access(self.root, os.W_OK) and bool(self.root.stat().st_mode & stat.S_IWUSR)

    @property
    def releases_dir(self) -> Path:
        """Return the folder of releases: `<name>/<version>/`."""
        return self.root / "releases"

    @property
    def dry_run_path(self) -> Path:
        """Return the file of the requests a dry run wrote."""
        return self.root / "dry-run.jsonl"

    @property
    def ledger_path(self) -> Path:
        """Return the path of the default ledger, a SQLite file in the workspace."""
        return self.root.resolve() / "ledger.sqlite"

    def run_dir(self, run_id: str) -> Path:
        """Return the folder of a run's manifests."""
        return self.root / "runs" / run_id

    def live(self, name: str) -> list[Shard]:
        """Return the live shards of a table, oldest first."""
        pointer = self.root / name / "live.json"
        if self.copy is not None:
            self.copy.refresh(f"{name}/live.json")
        if not pointer.exists():
            return []
        value: Any = read_json_file(pointer)
        try:
            return [Shard(**item) for item in value["shards"]]
        except (TypeError, KeyError):
            raise WorkspaceError(
                f"{pointer} lists no shards",
                "the list of a table's live shards",
                "restore it, or remove it and run again: what was bought is in the ledger",
            ) from None

    def write(
        self,
        name: str,
        table: pa.Table,
        covers: Sequence[str],
        source: str,
        day: str,
        made_by: str = "",
        made_of: MadeOf | None = None,
    ) -> Shard:
        """Write a table as a shard that covers the traces in `covers`, and make it live.

        If a live shard of the source, of any day, has the same content, no file is added and that shard
        becomes the newest. `day` is `YYYY-MM-DD`, `made_by` names the rule that made the rows, `made_of`
        the rows they were made from.
        """
        shard = self.write_file(
            name, table, covers, workspace_shard_folder(name, source, day), made_by, made_of
        )
        if (held := self._same_content(name, shard)) is not None:
            self._remove_file(shard)
            shard = held
        self.add(name, [shard])
        return shard

    def _same_content(self, name: str, shard: Shard) -> Shard | None:
        """Return the live shard of the same source and content but another day, None if there is none."""
        path = Path(shard.path)
        for held in self.live(name):
            other = Path(held.path)
            if (other.name, other.parent.parent) == (path.name, path.parent.parent) and other != path:
                return held
        return None

    def _remove_file(self, shard: Shard) -> None:
        (self.root / shard.path).unlink()
        if self.copy is not None:
            self.copy.remove([shard.path])

    def add(self, name: str, shards: Sequence[Shard]) -> None:
        """Make shards live as the newest of a table, in their order."""
        if shards:
            with self.lock():
                fresh = {shard.path for shard in shards}
                self._set_live(name, [*(s for s in self.live(name) if s.path not in fresh), *shards])

    def set_live(self, name: str, shards: Sequence[Shard]) -> None:
        """Make these the only live shards of a table, oldest first; the files of others stay."""
        with self.lock():
            self._set_live(name, shards)

    def _set_live(self, name: str, shards: Sequence[Shard]) -> None:
        listed = [{"path": s.path, "rows": s.rows, "bytes": s.bytes} for s in shards]
        write_json(self.root / name / "live.json", {"schema": SCHEMAS[name][0], "shards": listed})
        if self.copy is not None:
            self.copy.put(f"{name}/live.json")

    def write_file(
        self,
        name: str,
        table: pa.Table,
        covers: Sequence[str],
        folder: Path,
        made_by: str = "",
        made_of: MadeOf | None = None,
    ) -> Shard:
        """Write a table as a shard that is not live yet; `folder` is relative to the workspace."""
        with self.open_shard(name, folder, made_by, made_of) as shard:
            shard.add(table, covers)
        assert shard.written is not None
        return shard.written

    @contextmanager
    def open_shard(
        self, name: str, folder: Path, made_by: str = "", made_of: MadeOf | None = None
    ) -> Iterator[ShardFile]:
        """Open a shard to write table by table, not live yet; `folder` is relative to the workspace."""
        metadata = {
            "tracemill.table": name,
            "tracemill.schema": str(SCHEMAS[name][0]),
            "tracemill.text": self.text,
        }
        if made_by:
            metadata["tracemill.made_by"] = made_by
        if made_of:
            metadata["tracemill.made_of"] = json.dumps(made_of, sort_keys=True)
        with open_shard_file(self.root, folder, name, metadata) as shard:
            yield shard
        if self.copy is not None and shard.written is not None:
            self.copy.put(shard.written.path)

    def shard_path(self, shard: Shard) -> Path:
        """Return the file of a shard on this machine."""
        return self.root / shard.path if self.copy is None else self.copy.fetch(shard.path)

    def require_here(self) -> None:
        """Prepare the workspace in a worker. Raises WorkspaceError if it is not on this machine."""
        if self.copy is not None:
            self.copy.arrive()
        Workspace.open(self.root, create=False, text=self.text)

    def push(self) -> None:
        """Upload the changes of a working copy to its URL; do nothing for a local workspace."""
        if self.copy is not None:
            self.copy.push()

    def covers(self, name: str, shard: Shard) -> frozenset[str]:
        """Return the ids of the traces a shard covers."""
        covered = self._covered.get(shard.path)
        if covered is None:
            metadata = self._metadata(name, shard)
            covered = self._covered[shard.path] = frozenset(json.loads(metadata[b"tracemill.covers"]))
        return covered

    def made_by(self, name: str, shard: Shard) -> str:
        """Return the rule that made the rows of a shard, "" if it names none."""
        return self._metadata(name, shard).get(b"tracemill.made_by", b"").decode()

    def made_of(self, name: str, shard: Shard) -> MadeOf:
        """Return the recorded inputs of a shard's rows, by trace."""
        made_of = json.loads(self._metadata(name, shard).get(b"tracemill.made_of", b"{}"))
        return {trace_id: (count, state) for trace_id, (count, state) in made_of.items()}

    def _metadata(self, name: str, shard: Shard) -> dict[bytes, bytes]:
        path = self.root / shard.path
        try:
            if self.copy is None:
                metadata = pq.read_metadata(path).metadata or {}
            else:
                with self.copy.open(shard.path) as file:
                    metadata = pq.read_metadata(file).metadata or {}
        except (OSError, pa.ArrowInvalid) as error:
            raise WorkspaceError(
                f"{path} cannot be read",
                f"a Parquet shard of {name}",
                "run `tracemill run` again: it makes the shard anew and pays for nothing twice",
            ) from error
        if metadata.get(b"tracemill.table", b"").decode() != name:
            raise WorkspaceError(f"{path} is not a shard of {name}")
        if metadata.get(b"tracemill.text", b"redacted").decode() != self.text:
            raise WorkspaceError(
                f"{path} does not hold {self.text} text", f"shards of {self.text} text alone", "take it out"
            )
        return metadata

    def current(
        self,
        name: str,
        traces: frozenset[str] | None = None,
        columns: Sequence[str] | None = None,
        by_trace: bool = False,
    ) -> Iterator[pa.Table]:
        """Yield the current rows of a table, shard by shard, newest first, or sorted `by_trace`.

        Of each trace only the rows of the newest shard that covers it count. `traces` and `columns` limit
        the rows and columns; `columns` must include the one that names the trace. With `by_trace` the
        shards are in the order of their first trace.
        """
        shards = self.current_traces(name)
        if by_trace:
            shards = iter(sorted(shards, key=lambda each: min(each[1], default="")))
        for shard, current in shards:
            wanted = current if traces is None else current & traces
            if wanted:
                yield _of_traces(name, self.read(name, shard, columns), wanted)

    def current_traces(self, name: str) -> Iterator[tuple[Shard, frozenset[str]]]:
        """Yield the live shards of a table, newest first, each with the traces no newer one covers."""
        seen: set[str] = set()
        for shard in reversed(self.live(name)):
            current = self.covers(name, shard) - seen
            seen |= current
            yield shard, current

    def read(self, name: str, shard: Shard, columns: Sequence[str] | None = None) -> pa.Table:
        """Return one shard, or some of its columns, as a table of the current schema."""
        path = self.shard_path(shard)
        version = int(self._metadata(name, shard)[b"tracemill.schema"])
        file = pq.ParquetFile(path)
        if columns is not None and version == SCHEMAS[name][0]:
            return file.read(columns=list(columns)).replace_schema_metadata(None)
        table = upgrade(name, file.read().replace_schema_metadata(None), version, str(path))
        return table if columns is None else table.select(columns)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock for replacing `live.json`; other processes wait, on every machine."""
        everywhere = nullcontext() if self.copy is None else self.copy.hold("tables", wait=True)
        with everywhere, (self.root / ".lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield


def workspace_shard_folder(name: str, source: str, day: str) -> Path:
    """Return the folder of a table's shards, relative to the workspace; `day` is `YYYY-MM-DD`."""
    return Path(name) / f"source={source}" / f"day={day}"


def workspace_trace_ids(name: str, table: pa.Table) -> list[str]:
    """Return the trace id of each row of a table."""
    if name == "traces":
        return table.column("trace_id").to_pylist()
    return [step_id.rsplit(":", 2)[0] for step_id in table.column("step_id").to_pylist()]


def workspace_rows_without_traces(name: str, table: pa.Table, traces: frozenset[str]) -> pa.Table:
    """Return the rows of a table without those of these traces."""
    return table.filter(pa.array([i not in traces for i in workspace_trace_ids(name, table)], pa.bool_()))


def _of_traces(name: str, table: pa.Table, wanted: frozenset[str]) -> pa.Table:
    return table.filter(pa.array([i in wanted for i in workspace_trace_ids(name, table)], pa.bool_()))
