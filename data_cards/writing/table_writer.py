"""Write one Parquet file of a release in row groups."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from tracemill.data_cards.model.columns import storage_column_schema, written_column_schema

if TYPE_CHECKING:
    from datasets import Features

GROUP_BYTES = 32 * 1024 * 1024
GROUP_ROWS = 1000
_NOT_CONTENT = ("recipe",)  # the same rows under a newer data-juicer are no new content


class TableWriter:
    """A writer of rows to a Parquet file, with a digest of each; at most one row group is held.

    It has a page index and content-defined chunks, so that the Hub uploads only what a release does not share
    with the last one.
    """

    def __init__(self, path: Path, features: "Features") -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.rows = 0
        self.bytes = 0
        self._schema: pa.Schema = written_column_schema(features)
        self._storage = storage_column_schema(self._schema)
        self._buffer: list[dict[str, Any]] = []
        self._buffered = 0
        self.digests: list[bytes] = []
        self._file = path.open("wb")
        self._writer = pq.ParquetWriter(
            self._file,
            self._schema,
            compression="zstd",
            use_content_defined_chunking=True,
            write_page_index=True,
        )

    def add(self, row: dict[str, Any]) -> None:
        """Add a row."""
        content = {name: value for name, value in row.items() if name not in _NOT_CONTENT}
        data = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
        self.digests.append(hashlib.blake2b(data, digest_size=16).digest())
        self._buffer.append(row)
        self._buffered += len(data)
        if self._buffered >= GROUP_BYTES or len(self._buffer) >= GROUP_ROWS:
            self._flush()

    def close(self) -> None:
        """Write the buffered rows and close the file."""
        self._flush()
        self._writer.close()
        self._file.close()

    @property
    def file_bytes(self) -> int:
        """Return the bytes written to the file so far."""
        return self._file.tell()

    def _flush(self) -> None:
        if not self._buffer:
            return
        table = pa.Table.from_pylist(self._buffer, schema=self._storage).cast(self._schema)
        self._writer.write_table(table, row_group_size=GROUP_ROWS)
        self.rows += table.num_rows
        self.bytes += table.nbytes
        self._buffer, self._buffered = [], 0
