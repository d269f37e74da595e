"""The workspace: a folder of tables as immutable Parquet shards, runs and releases.

    traces/ decisions/ replies/ pairs/    tables: source=<source>/day=<day>/<digest>.parquet
        live.json                         the pointer: which shards are live, oldest first
    runs/<run_id>/                        manifests of each stage
    releases/<name>/<version>/            finished releases
    ledger.sqlite                         money and bought answers (a database URL may replace it)
    consents.json, forgotten.json         what may leave this machine, and what must not come back

A shard is named by its content and never changes. It says in its metadata which traces it covers; a
later shard that covers a trace replaces what earlier ones say of it. The pointer is replaced
atomically under a lock, so there is one writer at a time.
"""

import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from records.columns import SCHEMAS, upgrade
from records.errors import WorkspaceError
from records.files import read_json_file, write_json, writing

LAYOUT_VERSION = 1
_MARKER = "workspace.json"


@dataclass(frozen=True, slots=True)
class Shard:
    """One immutable Parquet file of a table; `path` is relative to the workspace."""

    path: str
    rows: int
    bytes: int


class Workspace:
    """A folder as described above. Create it with `open`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def open(cls, root: Path | str, create: bool = True) -> "Workspace":
        """The workspace at `root`, made where it is missing and `create` is set.

        Raises WorkspaceError for a folder that is missing, not writable, not empty and no workspace, or
        of a newer layout.
        """
        root = Path(root).expanduser()
        marker = root / _MARKER
        if marker.exists():
            version = _layout_of(marker)
            if version != LAYOUT_VERSION:
                newer = isinstance(version, int) and version > LAYOUT_VERSION
                raise WorkspaceError(
                    f"{marker} names layout {version!r}",
                    f"layout {LAYOUT_VERSION}",
                    "update tracemill" if newer else "restore the file, or start a new workspace",
                )
        elif not create:
            raise WorkspaceError(f"{root} is no workspace", "a folder made by tracemill run or ingest")
        else:
            if root.is_dir() and any(root.iterdir()):
                raise WorkspaceError(
                    f"{root} holds other files", "an empty or new folder", "choose another with --workspace"
                )
            write_json(marker, {"layout": LAYOUT_VERSION})
        if not os.access(root, os.W_OK) or not root.stat().st_mode & stat.S_IWUSR:
            raise WorkspaceError(f"{root} cannot be written", "a folder with write permission")
        return cls(root)

    @property
    def releases_dir(self) -> Path:
        """Where releases lie: `<name>/<version>/`."""
        return self.root / "releases"

    @property
    def ledger_path(self) -> Path:
        """The default ledger: a SQLite file in the workspace."""
        return self.root.resolve() / "ledger.sqlite"

    def run_dir(self, run_id: str) -> Path:
        """Where the manifests of a run lie."""
        return self.root / "runs" / run_id

    def live(self, name: str) -> list[Shard]:
        """The live shards of a table, oldest first."""
        pointer = self.root / name / "live.json"
        if not pointer.exists():
            return []
        value: Any = read_json_file(pointer)
        try:
            return [Shard(**item) for item in value["shards"]]
        except (TypeError, KeyError):
            raise WorkspaceError(
                f"{pointer} lists no shards",
                "the pointer of a table",
                "restore it, or remove it and run again: what was bought is in the ledger",
            ) from None

    def write(self, name: str, table: pa.Table, covers: Sequence[str], source: str, day: str) -> Shard:
        """Add a table as a shard that speaks for the traces in `covers`, and make it live.

        Writing the content of the newest live shard of these traces again adds nothing. `day` is
        `YYYY-MM-DD`.
        """
        shard = self.write_file(name, table, covers, Path(name) / f"source={source}" / f"day={day}")
        with self.lock():
            self._point(name, [*(s for s in self.live(name) if s.path != shard.path), shard])
        return shard

    def point(self, name: str, shards: Sequence[Shard]) -> None:
        """Make these the live shards of a table, oldest first; the files of others stay."""
        with self.lock():
            self._point(name, shards)

    def _point(self, name: str, shards: Sequence[Shard]) -> None:
        pointed = [{"path": s.path, "rows": s.rows, "bytes": s.bytes} for s in shards]
        write_json(self.root / name / "live.json", {"schema": SCHEMAS[name][0], "shards": pointed})

    def write_file(self, name: str, table: pa.Table, covers: Sequence[str], folder: Path) -> Shard:
        """Write a table as a shard that is not live yet; `folder` is relative to the workspace."""
        version, schema = SCHEMAS[name]
        if not table.schema.equals(schema):
            raise WorkspaceError(f"a table for {name} has other columns than schema {version}")
        metadata = {
            "tracemill.table": name,
            "tracemill.schema": str(version),
            "tracemill.covers": json.dumps(sorted(covers)),
        }
        sink = pa.BufferOutputStream()
        table = table.replace_schema_metadata(metadata)
        pq.write_table(table, sink, compression="zstd", row_group_size=64)
        data = sink.getvalue()
        path = self.root / folder / f"{hashlib.blake2b(data, digest_size=16).hexdigest()}.parquet"
        with writing(path) as temporary:
            temporary.write_bytes(data)
        return Shard(str(path.relative_to(self.root)), table.num_rows, data.size)

    def covers(self, name: str, shard: Shard) -> frozenset[str]:
        """The traces a shard speaks for."""
        metadata = self._metadata(name, shard)
        return frozenset(json.loads(metadata[b"tracemill.covers"]))

    def _metadata(self, name: str, shard: Shard) -> dict[bytes, bytes]:
        path = self.root / shard.path
        try:
            metadata = pq.read_schema(path).metadata or {}
        except (OSError, pa.ArrowInvalid) as error:
            raise WorkspaceError(
                f"{path} cannot be read",
                f"a Parquet shard of {name}",
                "run `tracemill run` again: it makes the shard anew and pays for nothing twice",
            ) from error
        if metadata.get(b"tracemill.table", b"").decode() != name:
            raise WorkspaceError(f"{path} is no shard of {name}")
        return metadata

    def current(self, name: str, traces: frozenset[str] | None = None) -> Iterator[pa.Table]:
        """What the table says today, shard by shard, newest first: of each trace only the rows of the
        newest shard that covers it. `traces` limits it to those."""
        done: set[str] = set()
        for shard in reversed(self.live(name)):
            wanted = self.covers(name, shard) - done
            done |= wanted
            if traces is not None:
                wanted &= traces
            if wanted:
                yield _of_traces(name, self.read(name, shard), wanted)

    def read(self, name: str, shard: Shard) -> pa.Table:
        """One shard as a table of today's schema."""
        path = self.root / shard.path
        version = int(self._metadata(name, shard)[b"tracemill.schema"])
        table = pq.ParquetFile(path).read().replace_schema_metadata(None)
        return upgrade(name, table, version, str(path))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Held while the pointer is replaced; other processes wait."""
        with (self.root / ".lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield


def trace_ids_of(name: str, table: pa.Table) -> list[str]:
    """The trace of each row of a table."""
    if name == "traces":
        return table.column("trace_id").to_pylist()
    return [step_id.rsplit(":", 2)[0] for step_id in table.column("step_id").to_pylist()]


def without_traces(name: str, table: pa.Table, gone: frozenset[str]) -> pa.Table:
    """The rows of a table that are of other traces."""
    return table.filter(pa.array([i not in gone for i in trace_ids_of(name, table)], pa.bool_()))


def _of_traces(name: str, table: pa.Table, wanted: frozenset[str]) -> pa.Table:
    return table.filter(pa.array([i in wanted for i in trace_ids_of(name, table)], pa.bool_()))


def _layout_of(marker: Path) -> object:
    value = read_json_file(marker)
    return value.get("layout") if isinstance(value, dict) else None
