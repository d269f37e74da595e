"""The record of a training job in the workspace, by which a second call finds the job again.

trainings/<release>/<version>-<fingerprint>/record.json    the newest attempt
trainings/<release>/<version>-<fingerprint>/<attempt>/     its files: what runs, progress, log, outcome
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tracemill.records.errors import TrainingError
from tracemill.records.frozen_model import FrozenModel
from tracemill.records.storage.atomic_files import make_private_folder, write_json
from tracemill.train.launch.launcher import JobState, LaunchAttempt
from tracemill.train.training_job import TrainingJob

RECORD_VERSION = 1
_RECORD = "record.json"


class JobRecord(FrozenModel):
    """One attempt at a job: who runs it under which id, on which release, and where its checkpoint goes."""

    version: int = RECORD_VERSION
    launcher: str
    options: dict[str, Any]
    key: str
    attempt: int
    job_id: str | None = None
    """None as long as it is unknown whether the job was submitted."""
    state: JobState = JobState.SUBMITTING
    reason: str = ""
    release: str
    digest: str
    checkpoint: str
    job: dict[str, Any]
    """The exact job, as the launcher describes it."""
    submitted_at: str
    ended_at: str | None = None

    def ended(self, state: JobState, reason: str) -> "JobRecord":
        """Return the record with a final state, as of now."""
        return self.model_copy(update={"state": state, "reason": reason, "ended_at": now()})


class JobRecords:
    """The attempts at one job below the folder `trainings`."""

    def __init__(self, folder: Path, job: TrainingJob) -> None:
        self.job = job
        self.folder = folder / job.release.name / f"{job.release.version}-{job.fingerprint()}"

    def read(self) -> JobRecord | None:
        """Return the newest attempt, None if there is none.

        Raises TrainingError for a record that is damaged.
        """
        try:
            return JobRecord.model_validate_json((self.folder / _RECORD).read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError):
            raise TrainingError(
                f"{self.folder / _RECORD} is damaged",
                "the record of a training job",
                "check whether the job still runs, then remove the file",
            ) from None

    def write(self, record: JobRecord) -> JobRecord:
        """Write a record, and return it."""
        write_json(self.folder / _RECORD, record.model_dump(mode="json"))
        return record

    def launch(self, attempt: int) -> LaunchAttempt:
        """Return an attempt, with its folder made."""
        launch = self.planned(attempt)
        make_private_folder(launch.folder)
        return launch

    def planned(self, attempt: int) -> LaunchAttempt:
        """Return an attempt; write nothing."""
        key = f"tracemill-{self.job.fingerprint()}-{attempt}"
        return LaunchAttempt(self.job, key, (self.folder / str(attempt)).resolve())

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock under which jobs are submitted: one caller at a time."""
        make_private_folder(self.folder)
        lock = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
