"""`manifest.json`: the description of a release for programs."""

import hashlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from tracemill.data_cards.model.release_spec import LabelFigures, OperatorDrops, TeacherEntry, VersionGrowth
from tracemill.records.errors import ReleaseError

MANIFEST = "manifest.json"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FileEntry(_Frozen):
    """A Parquet file: its path in the release, its rows, its bytes on disk and in memory."""

    path: str
    rows: int
    file_bytes: int
    memory_bytes: int
    blake2b: str


class SplitEntry(_Frozen):
    """The files of a config and a split, in order."""

    files: tuple[FileEntry, ...]

    @model_validator(mode="before")
    @classmethod
    def _of_one_file(cls, value: Any) -> Any:
        """Read an entry with one file, as older releases have it."""
        return {"files": (value,)} if isinstance(value, dict) and "path" in value else value

    @property
    def rows(self) -> int:
        """Return the rows of all files."""
        return sum(file.rows for file in self.files)

    @property
    def file_bytes(self) -> int:
        """Return the bytes of the files."""
        return sum(file.file_bytes for file in self.files)

    @property
    def memory_bytes(self) -> int:
        """Return the bytes of the rows in memory."""
        return sum(file.memory_bytes for file in self.files)


class TableEntry(_Frozen):
    """One config: its files by split, `train` first."""

    splits: dict[str, SplitEntry]

    @property
    def rows(self) -> int:
        """Return the rows of all splits."""
        return sum(entry.rows for entry in self.splits.values())

    @property
    def file_bytes(self) -> int:
        """Return the bytes of the files."""
        return sum(entry.file_bytes for entry in self.splits.values())

    @property
    def memory_bytes(self) -> int:
        """Return the bytes of the rows in memory."""
        return sum(entry.memory_bytes for entry in self.splits.values())


class DroppedCount(_Frozen):
    """Rows one operator dropped for one reason."""

    operator: str
    reason: str
    rows: int


class LengthEntry(_Frozen):
    """Rows that fit into `max_tokens` as they are (`whole`), and once their context is cut (`cut`)."""

    max_tokens: int
    whole: int
    cut: int


class GateEntry(_Frozen):
    """The privacy scan of a release before it was published.

    `accepted` counts distinct findings that were allowed, `texts` the distinct texts that were scanned.
    """

    statement: str
    opinions: tuple[str, ...]
    accepted: int
    texts: int


class StyleEntry(_Frozen):
    """Areas under the ROC curve of telling chosen from rejected sides; .5 is chance.

    `words_auc` is of a classifier over words, tested on other traces. `length_auc` is of length alone, above
    .5 if the chosen side is longer.
    """

    pairs: int
    words_auc: float
    length_auc: float


class ChangeEntry(_Frozen):
    """One version of the changelog: its pairs (`rows`) and labelled actions (`labels`), and changes to both.

    A changed row has another side, label or vote; a new weight is no change. Counts of changes are None in a
    first version, and those of labels if older software wrote the entry.
    """

    version: str
    created: datetime
    rows: int
    added: int | None = None
    removed: int | None = None
    changed: int | None = None
    labels: int | None = None
    labels_added: int | None = None
    labels_removed: int | None = None
    labels_changed: int | None = None


class Manifest(_Frozen):
    """The metadata of a release for programs.

    `rows` are its pairs, and shares are of those. `labels` describes single actions, which `sources`,
    `presentation_shares` and `unverified_rows` count too. `content_fingerprint` covers the rows of all tables
    in any order.

    `spend_usd` is what the run paid, `stated_cost_usd` the part that the rows state. `chosen_chars` and
    `rejected_chars` are means per side. `gating` holds the decisions of the gate. `changes` lists every
    version up to this one, oldest first.
    """

    schema_version: Literal[1] = 1
    name: str
    version: str
    created: datetime
    content_fingerprint: str
    recipe: str
    recipe_fingerprint: str
    configuration_fingerprint: str
    rows: int
    tables: dict[str, TableEntry]
    label_sources: dict[str, int]
    verified: dict[str, int]
    operations: dict[str, int]
    sources: dict[str, dict[str, int]]
    presentation_shares: dict[str, float]
    restricted: dict[str, int] = {}
    losses: tuple[OperatorDrops, ...]
    labels: LabelFigures = LabelFigures()
    dropped: tuple[DroppedCount, ...]
    funnel: dict[str, int]
    major: int = 1
    growth: VersionGrowth | None = None
    lengths: tuple[LengthEntry, ...] = ()
    cuts: dict[str, int] = {}
    tokens_by: str = ""
    max_tokens: int = 0
    overlaps: dict[str, int] = {}
    teachers: tuple[TeacherEntry, ...]
    votes: dict[str, dict[str, int]]
    policy: str
    wording: str = "full"
    chosen_chars: float = 0.0
    rejected_chars: float = 0.0
    style: StyleEntry | None = None
    gating: dict[str, Any] = {}
    changes: tuple[ChangeEntry, ...] = ()
    spend_usd: float
    cap_usd: float | None
    usd_per_pair: float
    stated_cost_usd: float
    simulated: Literal["none", "some", "all"]
    simulated_rows: int
    simulated_labels: int = 0
    unverified_rows: int
    statement: str
    redaction: str
    redaction_counts: dict[str, int]
    gate: GateEntry | None = None
    tracemill_version: str
    git_commit: str | None

    @property
    def splits(self) -> dict[str, int]:
        """Return the number of pairs by split, `train` first; of labelled actions if there are no pairs."""
        table = self.tables.get("dpo") or self.tables.get("sft")
        return {split: entry.rows for split, entry in table.splits.items()} if table else {}


class PublishedManifest(BaseModel):
    """The fields that are read of the manifest of a published version of any tracemill."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    version: str
    created: str = ""
    content_fingerprint: str
    rows: int
    operations: dict[str, int] = {}
    votes: dict[str, dict[str, int]] = {}
    usd_per_pair: float = 0.0
    chosen_chars: float = 0.0
    rejected_chars: float = 0.0
    teachers: tuple[TeacherEntry, ...] = ()

    @classmethod
    def of(cls, manifest: Manifest) -> "PublishedManifest":
        """Build it from the manifest of a local release."""
        return cls.model_validate_json(manifest.model_dump_json())


_RESTORE = "restore it, or move the folder out of the workspace and release anew"


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a release.

    Raises ReleaseError if there is none or it has another schema version.
    """
    path = folder / MANIFEST
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ReleaseError(
            f"{path} cannot be read ({error.strerror})", "a release made by tracemill", _RESTORE
        ) from error
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) or "the whole file"
        raise ReleaseError(
            f"{path} is not a manifest of this version ({where})", "schema 1", _RESTORE
        ) from error


def check_files(folder: Path, manifest: Manifest, do: str = "write the release again") -> None:
    """Raise ReleaseError if a file of a release is missing or was changed."""
    for path, digest in _digests(manifest):
        file = folder / path
        if not file.is_file():
            raise ReleaseError(f"{file} is missing", "the release as it was written", do)
        if _digest_of(file) != digest:
            raise ReleaseError(f"{file} was changed", "the release as it was written", do)


def restore_files(folder: Path, manifest: Manifest, fresh: Path) -> None:
    """Replace missing or changed files of a release by their copies in `fresh`.

    `fresh` holds the same content, just written. Raises ReleaseError if a file cannot be restored.
    """
    for path, digest in _digests(manifest):
        file, replacement = folder / path, fresh / path
        if file.is_file() and _digest_of(file) == digest:
            continue
        if replacement.is_file() and _digest_of(replacement) == digest:
            file.parent.mkdir(parents=True, exist_ok=True)
            replacement.replace(file)
    check_files(folder, manifest, f"remove {folder} and write the release again")


def _digest_of(file: Path) -> str:
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _digests(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Yield (path, digest) of every file that the manifest names."""
    for table in manifest.tables.values():
        for entry in table.splits.values():
            yield from ((file.path, file.blake2b) for file in entry.files)
