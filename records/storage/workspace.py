"""The workspace: a folder of tables as immutable Parquet shards, runs and releases.

    traces/ decisions/ replies/ pairs/    tables: source=<source>/day=<day>/<digest>.parquet
        live.json                         the pointer: which shards are live, oldest first
    runs/<run_id>/                        manifests of each stage
    releases/<name>/<version>/            finished releases
    ledger.sqlite                         money and bought answers (a database URL may replace it)
    consents.json, forgotten.json         what may leave this machine, and what must not come back
    workspace.json                        the marker: layout, and whether the text is redacted

A shard is named by its content and never changes. It says in its metadata which traces it covers; a
later shard that covers a trace replaces what earlier ones say of it. The pointer is replaced
atomically under a lock, so there is one writer at a time.
"""

import fcntl
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tracemill.records.errors import WorkspaceError
from tracemill.records.storage.atomic_files import read_json_file, write_json
from tracemill.records.storage.shard_file import Shard, ShardFile, writing_shard
from tracemill.records.storage.table_schemas import SCHEMAS, upgrade
from tracemill.records.storage.workspace_marker import (
    MARKER,
    Text,
    check_marker,
    close_to_others,
    create_marker,
)

MadeOf = Mapping[str, tuple[int, str]]
"""By trace how many rows of another table went into a shard, and a digest of which."""


class Workspace:
    """A folder as described above. Create it with `open`.

    `text` says what its tables hold: `redacted` text, or text as `recorded`, from which nothing may be
    sent, labelled or released.
    """

    def __init__(self, root: Path, text: Text = "redacted") -> None:
        self.root = root
        self.text: Text = text
        self._covered: dict[str, frozenset[str]] = {}

    @classmethod
    def open(
        cls, root: Path | str, create: bool = True, text: Text = "redacted", writes: bool = True
    ) -> "Workspace":
        """The workspace at `root`, made where it is missing and `create` is set. Without `writes` it may be
        one that can only be read; with it, files that an older version left open to others are closed.

        Raises WorkspaceError for a folder that is missing, not writable, not empty and no workspace, of
        a newer layout, or that holds the other kind of text.
        """
        root = Path(root).expanduser()
        marker = root / MARKER
        if marker.exists():
            check_marker(marker, text)
        elif not create:
            raise WorkspaceError(f"{root} is no workspace", "a folder made by tracemill run or ingest")
        else:
            if root.is_dir() and any(root.iterdir()):
                raise WorkspaceError(
                    f"{root} holds other files", "an empty or new folder", "choose another with --workspace"
                )
            create_marker(marker, text)
        work = cls(root, text)
        if writes and not work.is_writable():
            raise WorkspaceError(f"{root} cannot be written", "a folder with write permission")
        if writes:
            close_to_others(marker)
        return work

    def is_writable(self) -> bool:
        """Whether files may be made in the folder."""
        return os.access(self.root, os.W_OK) and bool(self.root.stat().st_mode & stat.S_IWUSR)

    @property
    def releases_dir(self) -> Path:
        """Where releases lie: `<name>/<version>/`."""
        return self.root / "releases"

    @property
    def dry_run_path(self) -> Path:
        """The requests a dry run wrote."""
        return self.root / "dry-run.jsonl"

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
        """Add a table as a shard that speaks for the traces in `covers`, and make it live.

        Writing the content of the newest live shard of these traces again adds nothing. `day` is
        `YYYY-MM-DD`; `made_by` names the rule that the rows follow, `made_of` what they were made of.
        """
        shard = self.write_file(
            name, table, covers, workspace_shard_folder(name, source, day), made_by, made_of
        )
        self.add(name, [shard])
        return shard

    def add(self, name: str, shards: Sequence[Shard]) -> None:
        """Make these live as the newest of a table, in their order."""
        if shards:
            with self.lock():
                fresh = {shard.path for shard in shards}
                self._point(name, [*(s for s in self.live(name) if s.path not in fresh), *shards])

    def point(self, name: str, shards: Sequence[Shard]) -> None:
        """Make these the live shards of a table, oldest first; the files of others stay."""
        with self.lock():
            self._point(name, shards)

    def _point(self, name: str, shards: Sequence[Shard]) -> None:
        pointed = [{"path": s.path, "rows": s.rows, "bytes": s.bytes} for s in shards]
        write_json(self.root / name / "live.json", {"schema": SCHEMAS[name][0], "shards": pointed})

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
        with self.writing(name, folder, made_by, made_of) as shard:
            shard.add(table, covers)
        assert shard.written is not None
        return shard.written

    def writing(
        self, name: str, folder: Path, made_by: str = "", made_of: MadeOf | None = None
    ) -> AbstractContextManager[ShardFile]:
        """A shard to be written portion by portion, not live yet; `folder` is relative to the workspace."""
        metadata = {
            "tracemill.table": name,
            "tracemill.schema": str(SCHEMAS[name][0]),
            "tracemill.text": self.text,
        }
        if made_by:
            metadata["tracemill.made_by"] = made_by
        if made_of:
            metadata["tracemill.made_of"] = json.dumps(made_of, sort_keys=True)
        return writing_shard(self.root, folder, name, metadata)

    def covers(self, name: str, shard: Shard) -> frozenset[str]:
        """The traces a shard speaks for; looked up once, since a shard never changes."""
        known = self._covered.get(shard.path)
        if known is None:
            metadata = self._metadata(name, shard)
            known = self._covered[shard.path] = frozenset(json.loads(metadata[b"tracemill.covers"]))
        return known

    def made_by(self, name: str, shard: Shard) -> str:
        """The rule that the rows of a shard follow, "" where it names none."""
        return self._metadata(name, shard).get(b"tracemill.made_by", b"").decode()

    def made_of(self, name: str, shard: Shard) -> MadeOf:
        """What the rows of a shard were made of, by trace; without those that nothing is said of."""
        said = json.loads(self._metadata(name, shard).get(b"tracemill.made_of", b"{}"))
        return {trace_id: (count, state) for trace_id, (count, state) in said.items()}

    def _metadata(self, name: str, shard: Shard) -> dict[bytes, bytes]:
        path = self.root / shard.path
        try:
            metadata = pq.read_metadata(path).metadata or {}
        except (OSError, pa.ArrowInvalid) as error:
            raise WorkspaceError(
                f"{path} cannot be read",
                f"a Parquet shard of {name}",
                "run `tracemill run` again: it makes the shard anew and pays for nothing twice",
            ) from error
        if metadata.get(b"tracemill.table", b"").decode() != name:
            raise WorkspaceError(f"{path} is no shard of {name}")
        if metadata.get(b"tracemill.text", b"redacted").decode() != self.text:
            raise WorkspaceError(
                f"{path} does not hold {self.text} text", f"shards of {self.text} text alone", "take it out"
            )
        return metadata

    def current(
        self, name: str, traces: frozenset[str] | None = None, columns: Sequence[str] | None = None
    ) -> Iterator[pa.Table]:
        """What the table says today, shard by shard, newest first: of each trace only the rows of the
        newest shard that covers it. `traces` limits it to those, `columns` to some columns, the one that
        names the trace among them."""
        for shard, traces_of_it in self.speaking(name):
            wanted = traces_of_it if traces is None else traces_of_it & traces
            if wanted:
                yield _of_traces(name, self.read(name, shard, columns), wanted)

    def speaking(self, name: str) -> Iterator[tuple[Shard, frozenset[str]]]:
        """The live shards of a table, newest first, each with the traces that no newer one covers."""
        done: set[str] = set()
        for shard in reversed(self.live(name)):
            wanted = self.covers(name, shard) - done
            done |= wanted
            yield shard, wanted

    def read(self, name: str, shard: Shard, columns: Sequence[str] | None = None) -> pa.Table:
        """One shard as a table of today's schema, or some of its columns."""
        path = self.root / shard.path
        version = int(self._metadata(name, shard)[b"tracemill.schema"])
        file = pq.ParquetFile(path)
        if columns is not None and version == SCHEMAS[name][0]:
            return file.read(columns=list(columns)).replace_schema_metadata(None)
        table = upgrade(name, file.read().replace_schema_metadata(None), version, str(path))
        return table if columns is None else table.select(columns)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Held while the pointer is replaced; other processes wait."""
        with (self.root / ".lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield


def workspace_shard_folder(name: str, source: str, day: str) -> Path:
    """Where the shards of a table lie, relative to the workspace; `day` is `YYYY-MM-DD`."""
    return Path(name) / f"source={source}" / f"day={day}"


def workspace_trace_ids(name: str, table: pa.Table) -> list[str]:
    """The trace of each row of a table."""
    if name == "traces":
        return table.column("trace_id").to_pylist()
    return [step_id.rsplit(":", 2)[0] for step_id in table.column("step_id").to_pylist()]


def workspace_rows_without_traces(name: str, table: pa.Table, gone: frozenset[str]) -> pa.Table:
    """The rows of a table that are of other traces."""
    return table.filter(pa.array([i not in gone for i in workspace_trace_ids(name, table)], pa.bool_()))


def _of_traces(name: str, table: pa.Table, wanted: frozenset[str]) -> pa.Table:
    return table.filter(pa.array([i in wanted for i in workspace_trace_ids(name, table)], pa.bool_()))
