"""Two versions of a release: which rows came, went and changed."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq

from tracemill.data_cards.model.columns import ACTIONS
from tracemill.records.errors import ReleaseError

_BATCH = 64
_HEAVY = ("prompt", "tools")
_NOT_CONTENT = ("recipe", "weight", "outcome_weight", "outcome_support")
"""What another version gives a row that says the same: weights are fitted anew to all sessions."""
_LABELS = ("agreed", "solved")
"""What a labelled action comes from; the other rows of `sft` are sides of pairs."""


@dataclass(frozen=True, slots=True)
class RowChanges:
    """Names of rows by what became of them, sorted: those of pairs are `pair_id`s, those of labels a step
    and a source."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]


def compare_pairs(before: Path, after: Path, whole: bool = True) -> RowChanges:
    """Return what became of the rows of `dpo` between two release folders.

    Without `whole` a row counts as changed only where something beside its state did. A folder without the
    config has no rows of it. One row group is held at a time.

    Raises ReleaseError where a table cannot be read.
    """
    return _compare(*(_pairs(folder, whole) for folder in (before, after)))


def compare_labels(before: Path, after: Path, whole: bool = True) -> RowChanges:
    """Return what became of the labelled actions between two release folders, whichever of `sft`, `agreed`
    and `solved` hold them; otherwise as `compare_pairs`."""
    return _compare(*(_labels(folder, whole) for folder in (before, after)))


def _compare(old: dict[str, bytes], new: dict[str, bytes]) -> RowChanges:
    return RowChanges(
        tuple(sorted(new.keys() - old.keys())),
        tuple(sorted(old.keys() - new.keys())),
        tuple(sorted(name for name in new.keys() & old.keys() if new[name] != old[name])),
    )


def _pairs(folder: Path, whole: bool) -> dict[str, bytes]:
    return {row["pair_id"]: _digest(row) for row in _rows(folder, "dpo", whole)}


def _labels(folder: Path, whole: bool) -> dict[str, bytes]:
    rows = (row for config in ACTIONS for row in _rows(folder, config, whole))
    kept = (row for row in rows if row["label_source"] in _LABELS)
    return {f"{row['step_id']} {row['label_source']}": _digest(row) for row in kept}


def _rows(folder: Path, config: str, whole: bool) -> Iterator[dict[str, Any]]:
    if not any(folder.glob("data/*/*.parquet")):
        raise ReleaseError(f"{folder} holds no table", "a release made by tracemill")
    left_out = {*_NOT_CONTENT, *(() if whole else _HEAVY)}
    for path in sorted(folder.glob(f"data/{config}/*.parquet")):
        try:
            file = pq.ParquetFile(path)
            columns = [name for name in file.schema_arrow.names if name not in left_out]
            for batch in file.iter_batches(_BATCH, columns=columns):
                yield from batch.to_pylist()
        except (OSError, ValueError) as error:
            raise ReleaseError(f"{path} cannot be read ({error})", "a table of a release") from None


def _digest(row: dict[str, Any]) -> bytes:
    return hashlib.blake2b(orjson.dumps(row, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()
