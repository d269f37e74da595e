"""One Parquet shard while it is written: rows go to the disk as they come, its content gives its name."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tracemill.records.errors import WorkspaceError
from tracemill.records.storage.atomic_files import pending
from tracemill.records.storage.table_schemas import SCHEMAS

_ROWS_IN_A_GROUP = 64
_VALUES_AT_ONCE = 1 << 14  # between two looks at the size of a page
# Long and hardly ever repeated: a dictionary of them would be built and thrown away again.
_FREE_TEXT = frozenset(("content", "arguments", "reasoning", "raw", "text", "notes"))
# Where compression pays: in other columns a dictionary leaves little, and a compressor costs more to set up.
_COMPRESSED = _FREE_TEXT | {"tools", "id", "tool_call_id", "native_id", "timestamp", "evidence"}


@dataclass(frozen=True, slots=True)
class Shard:
    """One immutable Parquet file of a table; `path` is relative to the workspace."""

    path: str
    rows: int
    bytes: int


class ShardFile:
    """A shard that is open for writing. Equal tables added in equal portions give equal bytes.

    `written` is set once it is in its place.
    """

    def __init__(self, name: str, metadata: dict[str, str], handle: IO[bytes]) -> None:
        self.covers: set[str] = set()
        self.rows = 0
        self.written: Shard | None = None
        self._name = name
        self._out = _Hashing(handle)
        schema = SCHEMAS[name][1]
        leaves = [path for field in schema for path in _leaves(field.name, field.type)]
        small = [path for path in leaves if _last(path) not in _FREE_TEXT]
        options: dict[str, Any] = {
            "compression": {path: "zstd" if _last(path) in _COMPRESSED else "none" for path in leaves},
            "use_dictionary": small,
            "write_statistics": [path for path in small if "." not in path],
            "write_batch_size": _VALUES_AT_ONCE,
        }
        sink = pa.PythonFile(self._out, mode="w")
        self._writer = pq.ParquetWriter(sink, schema.with_metadata(metadata), **options)

    @property
    def bytes(self) -> int:
        """What is written so far."""
        return self._out.size

    def add(self, table: pa.Table, covers: Iterable[str]) -> None:
        """More rows, which speak for the traces in `covers`. Raises WorkspaceError for other columns."""
        version, schema = SCHEMAS[self._name]
        if not table.schema.equals(schema):
            raise WorkspaceError(f"a table for {self._name} has other columns than schema {version}")
        self.covers.update(covers)
        self.rows += table.num_rows
        self._writer.write_table(table, row_group_size=_ROWS_IN_A_GROUP)

    def end(self) -> str:
        """Nothing more comes: gives the name of the file, which is that of its content."""
        covers = json.dumps(sorted(self.covers))
        self._writer.add_key_value_metadata({"tracemill.covers": covers})
        self._writer.close()
        return f"{self._out.state.hexdigest()}.parquet"

    def abandon(self) -> None:
        """It will not be ended: what the writer still holds goes nowhere."""
        self._out.handle = None
        with suppress(OSError, ValueError, pa.ArrowException):
            self._writer.close()


class _Hashing:
    """Bytes on their way to a file, counted and hashed; without a handle they go nowhere."""

    closed = False

    def __init__(self, handle: IO[bytes]) -> None:
        self.state = hashlib.blake2b(digest_size=16)
        self.size = 0
        self.handle: IO[bytes] | None = handle

    def write(self, data: bytes) -> int:
        """Pass them on."""
        self.state.update(data)
        self.size += len(data)
        return self.handle.write(data) if self.handle is not None else len(data)

    def flush(self) -> None:
        """Nothing is held back here."""

    def close(self) -> None:
        """The handle is closed by whoever opened it."""
        self.closed = True


def _last(path: str) -> str:
    return path.rsplit(".", 1)[-1]


def _leaves(path: str, kind: pa.DataType) -> Iterator[str]:
    """The columns of a Parquet file that a field becomes, by their paths in it."""
    if pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", field.type)
    else:
        yield path


@contextmanager
def writing_shard(root: Path, folder: Path, name: str, metadata: dict[str, str]) -> Iterator[ShardFile]:
    """A shard of table `name` below `root / folder`, there under its name where the block ends well and
    gone where not. Raises WorkspaceError where the folder cannot be written or the disk is full."""
    with pending(root / folder) as file:
        with file.temporary.open("wb") as handle:
            shard = ShardFile(name, metadata, handle)
            try:
                yield shard
                file.name = shard.end()
            except BaseException:
                shard.abandon()
                raise
        shard.written = Shard(str(folder / file.name), shard.rows, shard.bytes)
