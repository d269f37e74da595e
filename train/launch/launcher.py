"""The protocol of a launcher, which runs a training on this machine or elsewhere."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from pydantic import BaseModel

from tracemill.records.errors import TrainingError
from tracemill.records.frozen_model import FrozenModel
from tracemill.train.training_job import TrainingJob
from tracemill.train.training_settings import TrainingSettings

PROGRESS = "progress.jsonl"
OUTCOME = "outcome.json"
LAUNCH = "launch.json"

Options = TypeVar("Options", bound=BaseModel)


class JobState(StrEnum):
    """The state of a job; the last three are final."""

    SUBMITTING = "submitting"
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        """Return whether the state stays as it is."""
        return self in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


class JobRefused(TrainingError):
    """A job that was certainly not submitted; after any other error that is unknown."""


@dataclass(frozen=True, slots=True)
class JobStatus:
    """A state, why it is so if it is a failure, and the newest progress of the training if that is known."""

    state: JobState
    reason: str = ""
    progress: dict[str, Any] | None = None


class LaunchOptions(FrozenModel):
    """Options of a launcher: the table `[training.launch]`."""


@dataclass(frozen=True, slots=True)
class LaunchAttempt:
    """One attempt at a training job.

    `key` names the attempt at a service: letters, digits and hyphens, at most 63. `folder` holds its files.
    """

    job: TrainingJob
    key: str
    folder: Path

    @property
    def settings(self) -> TrainingSettings:
        """Return the settings of the job."""
        return self.job.settings

    def options(self, kind: type[Options]) -> Options:
        """Return the options of the launcher."""
        return kind.model_validate(self.settings.launch)


class Launcher(Protocol):
    """A way to run trainings; a value of the registry `LAUNCHERS`.

    If the training machine shares this file system, it runs `python -m tracemill.train.launch.run_job
    FOLDER`, which leaves the checkpoint in `job.target`. Otherwise it runs the same without a folder and
    with the job in `TRACEMILL_JOB`; the checkpoint is transferred through the model repository
    `training.hub`.
    """

    options: ClassVar[type[BaseModel]]
    """The model of `[training.launch]`."""
    attached: ClassVar[bool]
    """Whether Ctrl-C cancels the job; else it goes on without the command that submitted it."""
    remote: ClassVar[bool]
    """Whether the checkpoint comes by the Hub, since the job shares no files with this machine."""
    poll_s: ClassVar[float]
    """Seconds between two polls."""

    def check(self, settings: TrainingSettings) -> None:
        """Raise TrainingError if a training with these settings cannot start; connect to nothing."""
        ...

    def describe(self, launch: LaunchAttempt) -> dict[str, Any]:
        """Return the exact job as JSON values, without the values of secrets; connect to nothing."""
        ...

    def submit(self, launch: LaunchAttempt) -> str:
        """Submit the job and return its id; a job with this key that exists already is not submitted again.

        Raises JobRefused if it is refused, and TrainingError if it is unknown whether it was submitted.
        """
        ...

    def poll(self, launch: LaunchAttempt, job_id: str) -> JobStatus:
        """Return the state of a job. Raises TrainingError if it is unknown."""
        ...

    def logs(self, launch: LaunchAttempt, job_id: str) -> Iterator[str]:
        """Yield the lines that the job has written so far."""
        ...

    def cancel(self, launch: LaunchAttempt, job_id: str) -> None:
        """Ask the job to stop; a training saves first if it can."""
        ...


def newest_progress(folder: Path) -> dict[str, Any] | None:
    """Return the last line of progress that a training wrote into the folder of its attempt."""
    try:
        lines = (folder / PROGRESS).read_bytes().splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        try:
            return json.loads(line)
        except ValueError:  # still being written
            continue
    return None


def read_outcome(folder: Path) -> JobStatus | None:
    """Return how a training ended, None if it has not ended or was killed."""
    try:
        outcome = json.loads((folder / OUTCOME).read_bytes())
    except (OSError, ValueError):
        return None
    return JobStatus(JobState(outcome["state"]), outcome["reason"])


def log_lines(*files: Path) -> Iterator[str]:
    """Yield the lines of those files that exist."""
    for file in files:
        if file.is_file():
            with file.open(encoding="utf-8", errors="replace") as lines:
                yield from (line.rstrip("\n") for line in lines)
