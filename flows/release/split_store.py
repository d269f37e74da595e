"""Remember splits, tasks and rows of a dataset that grows, as keyed hashes alone.

`splits/<name>.json` in the workspace. Without `redaction.key` its entries say nothing, so there is nothing
in it to forget.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tracemill.data_cards.model.manifest import read_manifest
from tracemill.data_cards.model.versions import parse_version_key, versions_in_folder
from tracemill.normalize.minhash import Signature
from tracemill.privacy.core.placeholder_keys import workspace_key
from tracemill.records.errors import WorkspaceError
from tracemill.records.storage.atomic_files import read_json_file, write_json
from tracemill.records.storage.workspace import Workspace

_SCHEMA = 2
_COLUMNS = ("pair_id", "repository", "instance_id", "trace_id")
_TABLES = ("dpo", "sft", "agreed", "solved")
"""Configs that say of each row which pair and which session it is of; only a pair of `dpo` counts as in."""


@dataclass(frozen=True, slots=True)
class SplitState:
    """The state of a dataset.

    `sides` has splits by hashed key, `tasks` the signatures of tasks by the hashed key of their session,
    `rows` the hashed ids of released pairs, as of `version`; `major` counts rebuilds.
    """

    key: bytes
    path: Path
    major: int = 1
    version: str | None = None
    sides: dict[str, str] = field(default_factory=dict)
    tasks: dict[str, Signature] = field(default_factory=dict)
    rows: frozenset[str] = frozenset()

    @classmethod
    def of(cls, work: Workspace, name: str) -> "SplitState":
        """Read the state of the dataset of this name.

        Raises WorkspaceError if its file is damaged: without it repositories would change splits.
        """
        key, path = workspace_key(work.root / "redaction.key"), work.root / "splits" / f"{name}.json"
        if not path.exists():
            return cls(key, path)._caught_up(work.releases_dir / name)
        try:
            value: Any = read_json_file(path)
            if value["schema"] != _SCHEMA:
                raise ValueError
            tasks = {name: _signature(text) for name, text in value["tasks"].items()}
            rows = frozenset(value["rows"])
            found = cls(key, path, int(value["major"]), value["version"], dict(value["sides"]), tasks, rows)
        except (WorkspaceError, KeyError, TypeError, ValueError, AttributeError):
            raise WorkspaceError(
                f"{path} is damaged",
                "a file written by tracemill",
                "restore it, or remove it and make a new major version with --rebuild",
            ) from None
        return found._caught_up(work.releases_dir / name)

    def _caught_up(self, folder: Path) -> "SplitState":
        """Add the rows of a release that was finished just before a crash."""
        versions = versions_in_folder(folder)
        if not versions or (
            self.version and parse_version_key(versions[-1]) <= parse_version_key(self.version)
        ):
            return self
        rows, sides = set(self.rows), dict(self.sides)
        for config, split, row in _rows(folder / versions[-1]):
            if config == "dpo":
                rows.add(self.hashed("row", row["pair_id"]))
            named = (("repository", (row["repository"] or "").lower()), ("instance", row["instance_id"]))
            for kind, name in (*named, ("session", row["trace_id"])):
                if name:
                    sides.setdefault(self.hashed(kind, name), split)
        major = parse_version_key(versions[-1])[0]
        return replace(self, major=major, version=versions[-1], rows=frozenset(rows), sides=sides)

    def hashed(self, kind: str, name: str) -> str:
        """Return the keyed hash of a repository, an instance, a session or a row."""
        data = f"{kind} {name}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(data, key=self.key, digest_size=12).hexdigest()

    def holds(self, pair_id: str) -> bool:
        """Return whether a pair is in the dataset."""
        return bool(self.rows) and self.hashed("row", pair_id) in self.rows

    def rebuilt(self) -> "SplitState":
        """Return an empty state for the next major version; before the first release it stays the first."""
        return SplitState(self.key, self.path, self.major + 1 if self.version else self.major)

    def released(self, version: str, pair_ids: Iterable[str]) -> "SplitState":
        """Add the rows of a released version."""
        rows = frozenset(self.hashed("row", pair_id) for pair_id in pair_ids)
        return replace(self, major=parse_version_key(version)[0], version=version, rows=rows)

    def write(self) -> None:
        """Write the state to its file, readable by its owner alone."""
        value = {
            "schema": _SCHEMA,
            "major": self.major,
            "version": self.version,
            "sides": self.sides,
            "tasks": {name: value.tobytes().hex() for name, value in self.tasks.items()},
            "rows": sorted(self.rows),
        }
        write_json(self.path, value, private=True)


def _signature(text: str) -> Signature:
    return np.frombuffer(bytes.fromhex(text), dtype=np.uint32)


def _rows(folder: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield ids, config and split of the pairs and labels of a release, without their texts."""
    import pyarrow.parquet as pq

    tables = read_manifest(folder).tables
    for config in _TABLES:
        for split, entry in tables[config].splits.items() if config in tables else ():
            for file in entry.files:
                for row in pq.read_table(folder / file.path, columns=list(_COLUMNS)).to_pylist():
                    yield config, split, row
