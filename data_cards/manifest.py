"""`manifest.json`: what a release is, for machines."""

from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from data_cards.spec import Loss, TeacherEntry
from records.errors import ReleaseError

MANIFEST = "manifest.json"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TableEntry(_Frozen):
    """One Parquet file: where it lies in the release, its rows, its bytes there and in memory."""

    path: str
    rows: int
    file_bytes: int
    memory_bytes: int
    blake2b: str


class DroppedCount(_Frozen):
    """Rows one operator dropped for one reason."""

    operator: str
    reason: str
    rows: int


class GateEntry(_Frozen):
    """What judged the release before it was put in its place. `accepted`: different findings that
    somebody let pass; `texts` that were judged, each once."""

    statement: str
    opinions: tuple[str, ...]
    accepted: int
    texts: int


class Manifest(_Frozen):
    """Everything a program may want to know of a release; shares are of its rows.

    `content_fingerprint` covers the rows of all tables, whatever their order. `spend_usd` is what the
    run paid; `stated_cost_usd` the part of it that the rows themselves state.
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
    dropped: tuple[DroppedCount, ...]
    funnel: dict[str, int]
    teachers: tuple[TeacherEntry, ...]
    votes: dict[str, dict[str, int]]
    policy: str
    wording: str = "full"
    spend_usd: float
    cap_usd: float | None
    usd_per_pair: float
    stated_cost_usd: float
    simulated: Literal["none", "some", "all"]
    simulated_rows: int
    unverified_rows: int
    statement: str
    redaction: str
    redaction_counts: dict[str, int]
    gate: GateEntry | None = None
    tracemill_version: str
    git_commit: str | None


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a release. Raises ReleaseError where there is none, or it is of another version."""
    path = folder / MANIFEST
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ReleaseError(
            f"{path} cannot be read ({error.strerror})", "a release made by tracemill"
        ) from error
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) or "the whole file"
        raise ReleaseError(f"{path} is no manifest of this version ({where})", "schema 1") from error
