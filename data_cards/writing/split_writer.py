"""One config of a release: Parquet files for each split that has rows."""

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
"""Splits in the order they are listed. `eval_overlap` holds what benchmarks for evaluation are made of."""
FILE_BYTES = 500_000_000
"""Bytes of a file behind which another one is begun."""
SplitOf = Callable[[str], str | None]


def put_all_in_train(trace_id: str) -> str:
    """The split of every trace where nothing is held out."""
    return TRAIN


class SplitWriter:
    """Writes the rows of a config, each into the files of its trace's split. Rows of a trace without a split
    lie in `train`: only records of what happened (`votes`, `dropped`) have such rows. A file that holds
    `file_bytes` or more is followed by another one."""

    def __init__(self, folder: Path, config: str, split_of: SplitOf, file_bytes: int = FILE_BYTES) -> None:
        self._folder = folder
        self._config = config
        self._split_of = split_of
        self._file_bytes = file_bytes
        self._features = column_features(config)
        self._writers: dict[str, list[TableWriter]] = {}

    @property
    def rows(self) -> int:
        """Rows in all splits."""
        return sum(writer.rows for writers in self._writers.values() for writer in writers)

    def add(self, row: dict[str, Any]) -> None:
        """Take one row."""
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
        """Write what is left, and give the files the names of `datasets`, which hold their number."""
        for writers in self._writers.values():
            for at, writer in enumerate(writers):
                writer.close()
                name = f"{writer.path.stem.rpartition('-')[0]}-{at:05}-of-{len(writers):05}.parquet"
                writer.path = writer.path.rename(writer.path.with_name(name))

    def fingerprint(self) -> bytes:
        """Hash of the rows and the splits they are in, whatever their order and their files."""
        parts: list[bytes] = []
        for split, writers in self._in_order():
            digests = sorted(digest for writer in writers for digest in writer.digests)
            parts += (split.encode() + b"/", hashlib.blake2b(b"".join(digests), digest_size=16).digest())
        return hashlib.blake2b(b"".join(parts), digest_size=16).digest()

    def entry(self) -> TableEntry:
        """What was written; the writer is closed."""
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
