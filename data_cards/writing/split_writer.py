"""Write one config of a release: Parquet files for each split that has rows."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tracemill.data_cards.model.columns import column_features
from tracemill.data_cards.model.manifest import FileEntry, SplitEntry, TableEntry
from tracemill.data_cards.writing.table_writer import TableWriter
from tracemill.records.identity import StepId

TRAIN = "train"
SPLITS = (TRAIN, "validation", "test", "eval_overlap")
"""Splits in listing order. `eval_overlap` holds sessions made from benchmarks for evaluation."""
FILE_BYTES = 500_000_000
"""Size in bytes from which on a file is followed by another one."""
SplitOf = Callable[[str], str | None]


def put_all_in_train(trace_id: str) -> str:
    """Return `train` for every trace."""
    return TRAIN


class SplitWriter:
    """A writer of the rows of a config into the files of their split.

    Only rows of `votes` and `dropped` may have a trace without a split; they go to `train`. A file of
    `file_bytes` or more is followed by another one.
    """

    def __init__(self, folder: Path, config: str, split_of: SplitOf, file_bytes: int = FILE_BYTES) -> None:
        self._folder = folder
        self._config = config
        self._split_of = split_of
        self._file_bytes = file_bytes
        self._features = column_features(config)
        self._writers: dict[str, list[TableWriter]] = {}

    @property
    def rows(self) -> int:
        """Return the number of rows in all splits."""
        return sum(writer.rows for writers in self._writers.values() for writer in writers)

    def add(self, row: dict[str, Any]) -> None:
        """Add a row."""
        trace_id = row.get("trace_id") or StepId.parse(row["step_id"]).trace_id
        split = self._split_of(trace_id) or TRAIN
        writers = self._writers.setdefault(split, [])
        if not writers or writers[-1].file_bytes >= self._file_bytes:
            if writers:
                writers[-1].close()
            path = self._folder / "data" / self._config / f"{split}-{len(writers):05}.parquet"
            writers.append(TableWriter(path, self._features))
        writers[-1].add(row)

    def close(self) -> None:
        """Close the files and rename them as `datasets` does, with the number of files."""
        for writers in self._writers.values():
            for at, writer in enumerate(writers):
                writer.close()
                name = f"{writer.path.stem.rpartition('-')[0]}-{at:05}-of-{len(writers):05}.parquet"
                writer.path = writer.path.rename(writer.path.with_name(name))

    def fingerprint(self) -> bytes:
        """Return a hash of the rows and their splits, in any order and any files."""
        data: list[bytes] = []
        for split, writers in self._in_order():
            digests = sorted(digest for writer in writers for digest in writer.digests)
            data += (split.encode() + b"/", hashlib.blake2b(b"".join(digests), digest_size=16).digest())
        return hashlib.blake2b(b"".join(data), digest_size=16).digest()

    def entry(self) -> TableEntry:
        """Return the manifest entry of the closed files."""
        splits = {
            split: SplitEntry(files=tuple(map(self._entry, writers))) for split, writers in self._in_order()
        }
        return TableEntry(splits=splits)

    def _in_order(self) -> list[tuple[str, list[TableWriter]]]:
        return sorted(self._writers.items(), key=lambda item: SPLITS.index(item[0]))

    def _entry(self, writer: TableWriter) -> FileEntry:
        with writer.path.open("rb") as handle:
            digest = hashlib.file_digest(handle, lambda: hashlib.blake2b(digest_size=16))
        return FileEntry(
            path=writer.path.relative_to(self._folder).as_posix(),
            rows=writer.rows,
            file_bytes=writer.path.stat().st_size,
            memory_bytes=writer.bytes,
            blake2b=digest.hexdigest(),
        )
