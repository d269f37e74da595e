"""A training job: the release, the settings and the folders."""

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
TENSORBOARD = "tensorboard"
"""Folder of TensorBoard's files in a checkpoint."""
REFERENCE_CACHE = ".reference_log_probs.json"
"""File beside the checkpoints of a release that `reference = "cached"` keeps."""
SCHEMA = 2
ProgressCallback = Callable[[dict[str, Any]], None]
"""Takes the progress of a training: `{"phase": "words"}`, or `{"step": 3, "total": 10, "loss": 0.6}`."""
LESS_MEMORY = "a smaller training.max_length, LoRA or batch = 1 takes less"


class TrainingRelease(BaseModel):
    """A release to train on: in the folder `path`, or in a dataset `repository` of the Hub at a commit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    version: str
    digest: str
    """Fingerprint of its content, or the commit."""
    path: Path | None = None
    repository: str | None = None
    simulated: str = "unknown"
    """How many of its rows are simulated: `none`, `some`, `all` or `unknown`."""
    configs: tuple[str, ...] | None = None
    """Its configs with rows; None if that is not known before it is loaded."""
    terms: dict[str, str] = {}
    """What the terms of each of its teachers say on training; empty if there are none or it is not known."""

    @property
    def place(self) -> str:
        """Return its folder or repository, for messages."""
        return str(self.path) if self.path else self.repository or ""


def reads_rows(settings: TrainingSettings) -> bool:
    """Return whether a training reads rows of its release."""
    return TRAINING_METHODS.get(settings.method).reads_rows(dict(settings))


def check_config(release: TrainingRelease, method: str, configs: Collection[str]) -> None:
    """Raise TrainingError if the config that a method reads is not among the `configs` of a release."""
    config = TRAINING_METHODS.get(method).config
    if config in configs:
        return
    usable = [name for name in TRAINING_METHODS.names() if TRAINING_METHODS.get(name).config in configs]
    raise TrainingError(
        f"release {release.place} has no rows in the config `{config}`, which method {method!r} reads",
        f"a method that it has rows for ({', '.join(usable)})"
        if usable
        else "a release with rows to train on",
        "name one as training.method or --method, or make a release with that config (release.views)",
    )


class TrainingJob(BaseModel):
    """The job of a child process, as its `job.json` holds it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    release: TrainingRelease
    settings: TrainingSettings
    tracemill_version: str

    def fingerprint(self) -> str:
        """Return a string that is equal for jobs that give the same checkpoint."""
        return f"{self.release.digest[:16]}-{self.settings.fingerprint()}"

    @property
    def name(self) -> str:
        """Return `<release>@<version>`, for messages."""
        return f"{self.release.name}@{self.release.version}"

    @property
    def target(self) -> Path:
        """Return the folder of the checkpoint."""
        assert self.settings.output is not None
        return self.settings.output / self.release.name / self.release.version

    @property
    def partial(self) -> Path:
        """Return the folder of the unfinished training, which depends on the settings."""
        return self.target.parent / f".{self.release.version}-{self.settings.fingerprint()}.partial"


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """A finished training: its folder, its `training.json`, and whether this call created it."""

    path: Path
    report: dict[str, Any]
    created: bool


def read_report(folder: Path) -> dict[str, Any] | None:
    """Return `training.json` of a finished training, None if there is none."""
    try:
        report = json.loads((folder / REPORT).read_bytes())
    except (OSError, ValueError):
        return None
    return report if isinstance(report, dict) else None
