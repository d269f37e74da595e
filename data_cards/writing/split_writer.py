"""One config of a release: a Parquet file for each split that has rows."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tracemill.data_cards.model.columns import column_features
from tracemill.data_cards.model.manifest import SplitEntry, TableEntry
from tracemill.data_cards.writing.table_writer import TableWriter
from tracemill.records.identity import StepId

TRAIN = "train"
SPLITS = (TRAIN, "validation", "test", "eval_overlap")
"""Splits in the order they are listed. `eval_overlap` holds what benchmarks for evaluation are made of."""
SplitOf = Callable[[str], str | None]


def put_all_in_train(trace_id: str) -> str:
    """The split of every trace where nothing is held out."""
    return TRAIN


class SplitWriter:
    """Writes the rows of a config, each into the file of its trace's split. Rows of a trace without a split
    lie in `train`: only records of what happened (`votes`, `dropped`) have such rows."""

    def __init__(self, folder: Path, config: str, split_of: SplitOf) -> None:
        self._folder = folder
        self._config = config
        self._split_of = split_of
        self._features = column_features(config)
        self._writers: dict[str, TableWriter] = {}

    @property
    def rows(self) -> int:
        """Rows in all splits."""
        return sum(writer.rows for writer in self._writers.values())

    def add(self, row: dict[str, Any]) -> None:
        """Take one row."""
        trace_id = row.get("trace_id") or StepId.parse(row["step_id"]).trace_id
        split = self._split_of(trace_id) or TRAIN
        writer = self._writers.get(split)
        if writer is None:
            writer = self._writers[split] = TableWriter(self._folder / self._path(split), self._features)
        writer.add(row)

    def close(self) -> None:
        """Write what is left."""
        for writer in self._writers.values():
            writer.close()

    def fingerprint(self) -> bytes:
        """Hash of the rows and the splits they are in, whatever their order."""
        parts = (split.encode() + b"/" + writer.fingerprint() for split, writer in self._in_order())
        return hashlib.blake2b(b"".join(parts), digest_size=16).digest()

    def entry(self) -> TableEntry:
        """What was written; the writer is closed."""
        return TableEntry(splits={split: self._entry(split, writer) for split, writer in self._in_order()})

    def _in_order(self) -> list[tuple[str, TableWriter]]:
        return sorted(self._writers.items(), key=lambda item: SPLITS.index(item[0]))

    def _path(self, split: str) -> str:
        return f"data/{self._config}/{split}-00000-of-00001.parquet"

    def _entry(self, split: str, writer: TableWriter) -> SplitEntry:
        path = self._folder / self._path(split)
        with path.open("rb") as handle:
            digest = hashlib.file_digest(handle, lambda: hashlib.blake2b(digest_size=16))
        return SplitEntry(
            path=self._path(split),
            rows=writer.rows,
            file_bytes=path.stat().st_size,
            memory_bytes=writer.bytes,
            blake2b=digest.hexdigest(),
        )
