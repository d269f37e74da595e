"""Two versions of a release: which rows came, went and changed."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq

from tracemill.records.errors import ReleaseError

_BATCH = 64
_HEAVY = ("prompt", "tools")
_NOT_CONTENT = ("recipe",)


@dataclass(frozen=True, slots=True)
class RowChanges:
    """Pair ids by what became of them, sorted."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]


def compare_rows(before: Path, after: Path, whole: bool = True) -> RowChanges:
    """The rows of `dpo` in two release folders, by `pair_id`; without `whole` a row counts as changed only
    where something beside its state did. A release of labels alone has none. One row group is held at a time.

    Raises ReleaseError where a table cannot be read.
    """
    old, new = _digests(before, whole), _digests(after, whole)
    return RowChanges(
        tuple(sorted(new.keys() - old.keys())),
        tuple(sorted(old.keys() - new.keys())),
        tuple(sorted(name for name in new.keys() & old.keys() if new[name] != old[name])),
    )


def _digests(folder: Path, whole: bool) -> dict[str, bytes]:
    return {row["pair_id"]: _digest(row) for path in _tables(folder) for row in _rows(path, whole)}


def _tables(folder: Path) -> list[Path]:
    if not any(folder.glob("data/*/*.parquet")):
        raise ReleaseError(f"{folder} holds no table", "a release made by tracemill")
    return sorted(folder.glob("data/dpo/*.parquet"))


def _rows(path: Path, whole: bool) -> Iterator[dict[str, Any]]:
    try:
        file = pq.ParquetFile(path)
        left_out = {*_NOT_CONTENT, *(() if whole else _HEAVY)}
        columns = [name for name in file.schema_arrow.names if name not in left_out]
        for batch in file.iter_batches(_BATCH, columns=columns):
            yield from batch.to_pylist()
    except (OSError, ValueError) as error:
        raise ReleaseError(f"{path} cannot be read ({error})", "a table of a release") from None


def _digest(row: dict[str, Any]) -> bytes:
    return hashlib.blake2b(orjson.dumps(row, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()
