"""Write one Parquet shard table by table; the hash of its content is its name."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from tracemill.records.errors import WorkspaceError
from tracemill.records.storage.atomic_files import open_pending_file
from tracemill.records.storage.table_schemas import SCHEMAS

_ROWS_IN_A_GROUP = 64


@dataclass(frozen=True, slots=True)
class Shard:
    """One immutable Parquet file of a table; `path` is relative to the workspace."""

    path: str
    rows: int
    bytes: int

    @property
    def source(self) -> str:
        """Return the source of its rows, from its folder `source=NAME`."""
        return Path(self.path).parts[1].removeprefix("source=")


class ShardFile:
    """A shard that is open for writing; `written` is set once it has its final name.

    Equal tables added in equal order give equal bytes.
    """

    def __init__(self, name: str, metadata: dict[str, str], handle: IO[bytes]) -> None:
        self.covers: set[str] = set()
        self.rows = 0
        self.written: Shard | None = None
        self._name = name
        self._out = _HashingFile(handle)
        schema = SCHEMAS[name][1].with_metadata(metadata)
        sink = pa.PythonFile(self._out, mode="w")
        # Statistics would copy the smallest and largest texts into the footer.
        self._writer = pq.ParquetWriter(
            sink, schema, compression="zstd", compression_level=3, write_statistics=False
        )

    @property
    def bytes(self) -> int:
        """Return the number of bytes written so far."""
        return self._out.size

    def add(self, table: pa.Table, covers: Iterable[str]) -> None:
        """Add rows, which cover the traces in `covers`. Raises WorkspaceError for other columns."""
        version, schema = SCHEMAS[self._name]
        if not table.schema.equals(schema):
            raise WorkspaceError(
                f"rows to write to table {self._name!r} do not match its schema {version}",
                f"the columns {', '.join(schema.names)}",
            )
        self.covers.update(covers)
        self.rows += table.num_rows
        self._writer.write_table(table, row_group_size=_ROWS_IN_A_GROUP)

    def end(self) -> str:
        """Write the footer and return the file name, which is the hash of the content."""
        covers = json.dumps(sorted(self.covers))
        self._writer.add_key_value_metadata({"tracemill.covers": covers})
        self._writer.close()
        return f"{self._out.state.hexdigest()}.parquet"

    def abandon(self) -> None:
        """Close the writer and discard its buffered rows."""
        self._out.handle = None
        with suppress(OSError, ValueError, pa.ArrowException):
            self._writer.close()


class _HashingFile:
    """A file that counts and hashes the bytes written to it; without a handle it drops them."""

    closed = False

    def __init__(self, handle: IO[bytes]) -> None:
        self.state = hashlib.blake2b(digest_size=16)
        self.size = 0
        self.handle: IO[bytes] | None = handle

    def write(self, data: bytes) -> int:
        """Hash the bytes and write them."""
        self.state.update(data)
        self.size += len(data)
        return self.handle.write(data) if self.handle is not None else len(data)

    def flush(self) -> None:
        """Do nothing: no bytes are held back."""

    def close(self) -> None:
        """Mark the file as closed; the caller that opened the handle closes it."""
        self.closed = True


@contextmanager
def open_shard_file(root: Path, folder: Path, name: str, metadata: dict[str, str]) -> Iterator[ShardFile]:
    """Open a shard of table `name` below `root / folder`; keep it on success, else remove it.

    Raises WorkspaceError if the folder cannot be written or the disk is full.
    """
    with open_pending_file(root / folder) as file:
        with file.temporary.open("wb") as handle:
            shard = ShardFile(name, metadata, handle)
            try:
                yield shard
                file.name = shard.end()
            except BaseException:
                shard.abandon()
                raise
        shard.written = Shard(str(folder / file.name), shard.rows, shard.bytes)
