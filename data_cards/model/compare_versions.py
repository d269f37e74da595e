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
"""Columns that may differ between versions in rows that say the same: weights are fitted anew."""
_LABELS = ("agreed", "solved")
"""Sources of labelled actions; the other rows of `sft` are sides of pairs."""


@dataclass(frozen=True, slots=True)
class RowChanges:
    """Sorted names of added, removed and changed rows.

    The name of a pair is its `pair_id`, that of a label a step and a source.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]


def compare_pairs(before: Path, after: Path, whole: bool = True) -> RowChanges:
    """Compare the rows of `dpo` of two release folders.

    Without `whole` the columns of the state are ignored. A folder without the config has no rows of it. One
    batch of rows is held at a time. Raises ReleaseError if a table cannot be read.
    """
    return _compare(*(_pairs(folder, whole) for folder in (before, after)))


def compare_labels(before: Path, after: Path, whole: bool = True) -> RowChanges:
    """Compare the labelled actions of two release folders, in `sft`, `agreed` and `solved`.

    Otherwise as `compare_pairs`.
    """
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
