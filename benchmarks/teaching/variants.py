"""Releases that differ from a finished one in the rows of one config: what the arms train on.

A variant is a folder that `tracemill train` takes like any release: the same columns, with a manifest whose
digests are those of its files.
"""

import json
import shutil
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from datasets import Dataset, load_dataset

from tracemill.data_cards.model.columns import column_features

Row = dict[str, Any]
_FILE = "data/{config}/train-00000-of-00001.parquet"


def read_config(release: Path, config: str) -> list[Row]:
    """Return the rows of every split of a config; none where the release does not have it."""
    if not (release / "data" / config).is_dir():
        return []
    found: Any = load_dataset(str(release), config, cache_dir=str(release.parent / "cache"))
    return [row for split in found.values() for row in split]


def write_variant(release: Path, folder: Path, config: str, rows: Sequence[Row]) -> Path:
    """Write a release with these rows as its only config; return its folder."""
    shutil.rmtree(folder, ignore_errors=True)
    path = folder / _FILE.format(config=config)
    path.parent.mkdir(parents=True)
    features = column_features(config)
    whole = [{name: row.get(name) for name in features} for row in rows]
    Dataset.from_list(whole, features=features).to_parquet(str(path))
    manifest = json.loads((release / "manifest.json").read_text(encoding="utf-8"))
    entry = {
        "path": path.relative_to(folder).as_posix(),
        "rows": len(rows),
        "file_bytes": path.stat().st_size,
        "memory_bytes": path.stat().st_size,
        "blake2b": blake2b(path.read_bytes(), digest_size=16).hexdigest(),
    }
    manifest["tables"] = {config: {"splits": {"train": {"files": [entry]}}}}
    manifest["content_fingerprint"] = entry["blake2b"]
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    listed = f"  data_files:\n  - split: train\n    path: {entry['path']}\n"
    card = f"---\nconfigs:\n- config_name: {config}\n{listed}---\n"
    (folder / "README.md").write_text(card, encoding="utf-8")
    return folder


def message_row(role: str, content: str, **more: Any) -> Row:
    """Return a message as the columns of a release hold it."""
    row: Row = {"role": role, "content": content, "tool_calls": None, "tool_call_id": None, "name": None}
    return {**row, **more}


def weighted(rows: Iterable[Row], weight: float = 1.0) -> list[Row]:
    """Return rows that all have one weight."""
    return [{**row, "weight": weight} for row in rows]
