"""Submit a training job once, find it again, wait for it and bring its checkpoint home."""

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracemill.records.errors import TrainingError
from tracemill.train.launch.job_record import JobRecord, JobRecords, now
from tracemill.train.launch.launcher import JobRefused, JobState, JobStatus, LaunchAttempt, Launcher
from tracemill.train.launch.registry import LAUNCHERS
from tracemill.train.start_child import MissingPackageError, finished_training, has_unfinished_training
from tracemill.train.training_job import (
    ProgressCallback,
    TrainingJob,
    TrainingResult,
    read_report,
)


@dataclass(frozen=True, slots=True)
class SubmittedJob:
    """A job that was submitted, by this call or an earlier one."""

    record: JobRecord
    launch: LaunchAttempt
    launcher: Launcher

    @property
    def job_id(self) -> str:
        """Return its id at the launcher."""
        assert self.record.job_id is not None
        return self.record.job_id

    def poll(self) -> JobStatus:
        """Return the state of the job; a recorded end is final."""
        if self.record.state.final:
            return JobStatus(self.record.state, self.record.reason)
        return self.launcher.poll(self.launch, self.job_id)


def describe_job(job: TrainingJob, folder: Path) -> dict[str, Any]:
    """Return the exact job that `submit_training` would submit; connect to nothing and write nothing.

    A package that is not installed is listed in `missing` and stops nothing.
    """
    records = JobRecords(folder, job)
    launcher = LAUNCHERS.get(job.settings.launcher)
    missing: dict[str, str] = {}
    try:
        launcher.check(job.settings)
    except MissingPackageError as error:
        missing["missing"] = str(error)
    launch = records.planned(_next_attempt(records.read()))
    return {
        **missing,
        "launcher": job.settings.launcher,
        "key": launch.key,
        "release": job.name,
        "digest": job.release.digest,
        "checkpoint": str(job.target),
        "job": launcher.describe(launch),
    }


def submit_training(job: TrainingJob, folder: Path) -> SubmittedJob:
    """Submit a job, unless it was submitted before and has not failed; record it below `folder`.

    Raises JobRefused if the launcher refuses, and TrainingError if it is not known whether the job was
    submitted: the next call finds that out.
    """
    launcher = LAUNCHERS.get(job.settings.launcher)
    launcher.check(job.settings)
    records = JobRecords(folder, job)
    with records.locked():
        if (there := _find(records)) is not None:
            return there
        record = records.read()
        if record is None or record.state.final:
            record = _new_record(records, launcher, _next_attempt(record))
        elif record.launcher != job.settings.launcher:
            raise TrainingError(
                f"it is unknown whether {record.key} was submitted to {record.launcher}",
                f"launcher = {record.launcher!r}, which finds it",
                "or give it up with --cancel",
            )
        launch = records.launch(record.attempt)
        records.write(record)
        try:
            job_id = launcher.submit(launch)
        except JobRefused as error:
            records.write(record.ended(JobState.FAILED, str(error)))
            raise
        record = records.write(record.model_copy(update={"job_id": job_id, "state": JobState.QUEUED}))
    return SubmittedJob(record, launch, launcher)


def find_job(job: TrainingJob, folder: Path) -> SubmittedJob | None:
    """Return the newest job that was submitted, finished or not, None if there is none."""
    records = JobRecords(folder, job)
    record = records.read()
    return None if record is None or record.job_id is None else _submitted(records, record)


def is_unfinished(job: TrainingJob, folder: Path) -> bool:
    """Return whether a training of this job was begun and has not ended."""
    record = JobRecords(folder, job).read()
    return has_unfinished_training(job) or (record is not None and not record.state.final)


def wait_for_training(submitted: SubmittedJob, folder: Path, on_progress: ProgressCallback) -> TrainingResult:
    """Wait for a job and return its checkpoint.

    Ctrl-C cancels a job of this machine, which saves first; another goes on without this call. Raises
    TrainingError if the job fails, or was cancelled.
    """
    job, launcher = submitted.launch.job, submitted.launcher
    try:
        status = _follow(submitted, on_progress)
    except KeyboardInterrupt:
        if launcher.attached:
            on_progress({"phase": "saving"})
            _cancel_and_wait(submitted, folder)
        raise
    if status.state == JobState.SUCCEEDED and not job.target.exists():
        _fetch(submitted)
    JobRecords(folder, job).write(submitted.record.ended(status.state, status.reason))
    if status.state != JobState.SUCCEEDED:
        raise TrainingError(status.reason or f"the training job {submitted.job_id} was {status.state}")
    report = read_report(job.target)
    if report is None:
        raise TrainingError(
            f"the training job {submitted.job_id} ended and {job.target} holds no checkpoint",
            "a checkpoint with training.json",
        )
    return TrainingResult(job.target, report, True)


def run_launched(job: TrainingJob, folder: Path, on_progress: ProgressCallback) -> TrainingResult:
    """Return the checkpoint of a job; submit the job, or find it again, and wait for it."""
    LAUNCHERS.get(job.settings.launcher).check(job.settings)
    if (there := finished_training(job)) is not None:
        return there
    return wait_for_training(submit_training(job, folder), folder, on_progress)


def cancel_job(job: TrainingJob, folder: Path) -> JobRecord | None:
    """Ask the newest job to stop and return its record, None if there is none.

    A job of this machine is waited for: it saves first. One that may not have been submitted is given up.
    """
    records = JobRecords(folder, job)
    record = records.read()
    if record is None or record.state.final:
        return record
    if record.job_id is None:
        return records.write(record.ended(JobState.CANCELLED, "given up"))
    submitted = _submitted(records, record)
    submitted.launcher.cancel(submitted.launch, submitted.job_id)
    if submitted.launcher.attached:
        _wait_for_end(submitted)
    _record_end(submitted, folder)
    return record


def job_log(submitted: SubmittedJob) -> Iterator[str]:
    """Yield the log of the job so far."""
    return submitted.launcher.logs(submitted.launch, submitted.job_id)


def _find(records: JobRecords) -> SubmittedJob | None:
    """Return the job that runs already or has succeeded, None if one is to be submitted."""
    record = records.read()
    if record is None or record.job_id is None:
        return None
    submitted = _submitted(records, record)
    status = submitted.poll()
    if status.state in (JobState.FAILED, JobState.CANCELLED):
        if not record.state.final:
            records.write(record.ended(status.state, status.reason))
        return None
    removed = record.state.final and not submitted.launcher.remote and not records.job.target.exists()
    return None if removed else submitted


def _submitted(records: JobRecords, record: JobRecord) -> SubmittedJob:
    """Return a recorded job, at the launcher and with the options that it was submitted with."""
    given = {"launcher": record.launcher, "launch": record.options}
    settings = records.job.settings.model_copy(update=given)
    job = records.job.model_copy(update={"settings": settings})
    planned = records.planned(record.attempt)
    return SubmittedJob(
        record, LaunchAttempt(job, planned.key, planned.folder), LAUNCHERS.get(record.launcher)
    )


def _new_record(records: JobRecords, launcher: Launcher, attempt: int) -> JobRecord:
    job = records.job
    launch = records.planned(attempt)
    return JobRecord(
        launcher=job.settings.launcher,
        options=job.settings.launch,
        key=launch.key,
        attempt=attempt,
        release=job.name,
        digest=job.release.digest,
        checkpoint=str(job.target),
        job=launcher.describe(launch),
        submitted_at=now(),
    )


def _next_attempt(record: JobRecord | None) -> int:
    return 1 if record is None else record.attempt + 1


def _follow(submitted: SubmittedJob, on_progress: ProgressCallback) -> JobStatus:
    """Poll a job until it has ended."""
    on_progress({"phase": f"job {submitted.job_id} of {submitted.record.launcher}"})
    told: dict[str, Any] | None = None
    while not (status := submitted.poll()).state.final:
        if status.progress is not None and status.progress != told:
            told = status.progress
            on_progress(told)
        time.sleep(submitted.launcher.poll_s)
    return status


def _cancel_and_wait(submitted: SubmittedJob, folder: Path) -> None:
    """Cancel a job and wait until it has saved; a second Ctrl-C ends it at once."""
    submitted.launcher.cancel(submitted.launch, submitted.job_id)
    try:
        _wait_for_end(submitted)
    except KeyboardInterrupt:
        submitted.launcher.cancel(submitted.launch, submitted.job_id)
        with suppress(KeyboardInterrupt):
            _wait_for_end(submitted)
    _record_end(submitted, folder)


def _wait_for_end(submitted: SubmittedJob) -> None:
    while not submitted.poll().state.final:
        time.sleep(submitted.launcher.poll_s)


def _record_end(submitted: SubmittedJob, folder: Path) -> None:
    status = submitted.poll()
    if status.state.final:
        records = JobRecords(folder, submitted.launch.job)
        records.write(submitted.record.ended(status.state, status.reason))


def _fetch(submitted: SubmittedJob) -> None:
    """Download the checkpoint of a job that shares no files with this machine."""
    from tracemill.train.model_repository import ModelRepository

    job = submitted.launch.job
    if job.settings.hub is not None:
        ModelRepository(job.settings.hub).fetch(submitted.record.key, job.target)
