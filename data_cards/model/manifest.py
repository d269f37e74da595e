"""`manifest.json`: what a release is, for machines."""

import hashlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from tracemill.data_cards.model.release_spec import Growth, LabelFigures, Loss, TeacherEntry
from tracemill.records.errors import ReleaseError

MANIFEST = "manifest.json"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FileEntry(_Frozen):
    """One Parquet file: where it lies in the release, its rows, its bytes there and in memory."""

    path: str
    rows: int
    file_bytes: int
    memory_bytes: int
    blake2b: str


class SplitEntry(_Frozen):
    """The files of a config and a split, in their order."""

    files: tuple[FileEntry, ...]

    @model_validator(mode="before")
    @classmethod
    def _of_one_file(cls, given: Any) -> Any:
        """Read an entry of one file, as releases had it before they had several."""
        return {"files": (given,)} if isinstance(given, dict) and "path" in given else given

    @property
    def rows(self) -> int:
        """Rows in all files."""
        return sum(file.rows for file in self.files)

    @property
    def file_bytes(self) -> int:
        """Bytes of the files."""
        return sum(file.file_bytes for file in self.files)

    @property
    def memory_bytes(self) -> int:
        """Bytes of the rows in memory."""
        return sum(file.memory_bytes for file in self.files)


class TableEntry(_Frozen):
    """One config: its files by split, `train` first."""

    splits: dict[str, SplitEntry]

    @property
    def rows(self) -> int:
        """Rows in all splits."""
        return sum(entry.rows for entry in self.splits.values())

    @property
    def file_bytes(self) -> int:
        """Bytes of the files."""
        return sum(entry.file_bytes for entry in self.splits.values())

    @property
    def memory_bytes(self) -> int:
        """Bytes of the rows in memory."""
        return sum(entry.memory_bytes for entry in self.splits.values())


class DroppedCount(_Frozen):
    """Rows one operator dropped for one reason."""

    operator: str
    reason: str
    rows: int


class LengthEntry(_Frozen):
    """Of all rows those that fit into so many tokens as they are, and those that fit once their context is
    cut."""

    max_tokens: int
    whole: int
    cut: int


class GateEntry(_Frozen):
    """What judged the release before it was put in its place. `accepted`: different findings that
    somebody let pass; `texts` that were judged, each once."""

    statement: str
    opinions: tuple[str, ...]
    accepted: int
    texts: int


class StyleEntry(_Frozen):
    """Areas under the ROC curve, .5 where nothing is told: of a classifier over the words of one side, tried
    on traces it has not seen, and of length alone (over .5 where the chosen side is the longer)."""

    pairs: int
    words_auc: float
    length_auc: float


class ChangeEntry(_Frozen):
    """One version of the changelog: its pairs (`rows`) and labelled actions (`labels`), and what came and
    went of both since the version before. Changed rows have another side, label or vote; a new weight is no
    change. None in a first version, and for labels where older software wrote the entry."""

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
    """Everything a program may want to know of a release. `rows` are its pairs, and shares are of those;
    `labels` is the account of single actions, which `sources`, `presentation_shares` and `unverified_rows`
    count too.

    `content_fingerprint` covers the rows of all tables, whatever their order. `spend_usd` is what the
    run paid; `stated_cost_usd` the part of it that the rows themselves state. `chosen_chars` and
    `rejected_chars` are means of a side. `gating` says what the gate decided and explored. `changes` is every
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
    losses: tuple[Loss, ...]
    labels: LabelFigures = LabelFigures()
    dropped: tuple[DroppedCount, ...]
    funnel: dict[str, int]
    major: int = 1
    growth: Growth | None = None
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
        """Pairs by split, `train` first; of a release without a pair its labelled actions."""
        table = self.tables.get("dpo") or self.tables.get("sft")
        return {split: entry.rows for split, entry in table.splits.items()} if table else {}


class Published(BaseModel):
    """What is read of the manifest of a published version, whichever version of tracemill wrote it."""

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

    @classmethod
    def of(cls, manifest: Manifest) -> "Published":
        """The same of a local release."""
        return cls.model_validate_json(manifest.model_dump_json())


_ELSEWHERE = "restore it, or move the folder out of the workspace and release anew"


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a release. Raises ReleaseError where there is none, or it is of another version."""
    path = folder / MANIFEST
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ReleaseError(
            f"{path} cannot be read ({error.strerror})", "a release made by tracemill", _ELSEWHERE
        ) from error
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) or "the whole file"
        raise ReleaseError(
            f"{path} is no manifest of this version ({where})", "schema 1", _ELSEWHERE
        ) from error


def check_files(folder: Path, manifest: Manifest, do: str = "release it anew") -> None:
    """Raises ReleaseError where a table of a release is missing or not what was written."""
    for path, digest in _digests(manifest):
        file = folder / path
        if not file.is_file():
            raise ReleaseError(f"{file} is missing", "the release as it was written", do)
        if _digest_of(file) != digest:
            raise ReleaseError(f"{file} was changed", "the release as it was written", do)


def restore_files(folder: Path, manifest: Manifest, fresh: Path) -> None:
    """Moves tables out of `fresh`, where the same content was just written, into the place of those that are
    missing from a release or changed. Raises ReleaseError where one cannot be restored so."""
    for path, digest in _digests(manifest):
        there, again = folder / path, fresh / path
        if there.is_file() and _digest_of(there) == digest:
            continue
        if again.is_file() and _digest_of(again) == digest:
            there.parent.mkdir(parents=True, exist_ok=True)
            again.replace(there)
    check_files(folder, manifest, f"remove {folder} and release it anew")


def _digest_of(file: Path) -> str:
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def _digests(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Every (path, digest) of a file that the manifest names."""
    for table in manifest.tables.values():
        for entry in table.splits.values():
            yield from ((file.path, file.blake2b) for file in entry.files)
