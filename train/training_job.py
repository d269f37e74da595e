"""What a training works on: the release, the settings, and the folders."""

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from tracemill.records.errors import TrainingError
from tracemill.train.registry import TRAINING_METHODS
from tracemill.train.training_settings import TrainingSettings

REPORT = "training.json"
LOG = "train.log"
SCHEMA = 2
Told = Callable[[dict[str, Any]], None]
"""Takes what is known of the progress of a training."""
LESS_MEMORY = "a smaller training.max_length, LoRA or batch = 1 takes less"


class TrainingRelease(BaseModel):
    """A release that is there: in `path`, or in a dataset `repository` of the Hub at a commit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    version: str
    digest: str
    """Fingerprint of its content, or the commit."""
    path: Path | None = None
    repository: str | None = None
    simulated: str = "unknown"
    """`none`, `some` or `all` of its rows are."""
    configs: tuple[str, ...] | None = None
    """Its configs with rows; None where that is known only once it is loaded."""

    @property
    def place(self) -> str:
        """Where it is, in words: its folder, or its repository."""
        return str(self.path) if self.path else self.repository or ""


def check_config(release: TrainingRelease, method: str, there: Collection[str]) -> None:
    """Raises TrainingError where `there`, the configs of a release, lacks the one that a method reads."""
    wanted = TRAINING_METHODS.get(method).config
    if wanted in there:
        return
    able = [name for name in TRAINING_METHODS.names() if TRAINING_METHODS.get(name).config in there]
    raise TrainingError(
        f"release {release.place} has no rows in the config `{wanted}`, which method {method!r} reads",
        f"a method that it has rows for ({', '.join(able)})" if able else "a release with rows to train on",
        "name one as training.method or --method, or make a release with that config (release.views)",
    )


class Job(BaseModel):
    """What the child process is told."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    release: TrainingRelease
    settings: TrainingSettings
    tracemill_version: str

    def fingerprint(self) -> str:
        """The same for what gives the same checkpoint."""
        return f"{self.release.digest[:16]}-{self.settings.fingerprint()}"

    @property
    def target(self) -> Path:
        """Folder of the checkpoint."""
        assert self.settings.output is not None
        return self.settings.output / self.release.name / self.release.version

    @property
    def partial(self) -> Path:
        """Folder of the training until it is finished; another one for other settings."""
        return self.target.parent / f".{self.release.version}-{self.settings.fingerprint()}.partial"


@dataclass(frozen=True, slots=True)
class Trained:
    """A finished training: its folder, `training.json`, and whether it was there already."""

    path: Path
    report: dict[str, Any]
    created: bool


def read_report(folder: Path) -> dict[str, Any] | None:
    """`training.json` of a finished training, None where there is none."""
    try:
        found = json.loads((folder / REPORT).read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
