"""A training in a process of this machine that goes on without the one that started it.

The process holds a lock as long as it lives, so a process id that the system gave to another is never taken
for it.
"""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from tracemill.records.storage.atomic_files import write_json
from tracemill.train.launch.launcher import (
    LAUNCH,
    JobState,
    JobStatus,
    LaunchAttempt,
    log_lines,
    newest_progress,
    read_outcome,
)
from tracemill.train.training_job import LOG

JOB_LOG = "job.log"
_LOCK, _PID, _STOPPED = ".lock", "pid", "stopped"
_started: list["subprocess.Popen[bytes]"] = []
"""Processes that this one started, which it reaps when they have ended."""


def job_command(folder: Path) -> list[str]:
    """Return the command line that runs the job of a folder."""
    return [sys.executable, "-P", "-m", "tracemill.train.launch.run_job", str(folder)]


def write_launch(launch: LaunchAttempt, **more: Any) -> None:
    """Write the input of `run_job` into the folder of an attempt."""
    write_json(launch.folder / LAUNCH, {"job": launch.job.model_dump(mode="json"), **more})


def start_process(launch: LaunchAttempt, environment: Mapping[str, str]) -> str:
    """Start the process of an attempt and return its id; one that runs already is not started again."""
    lock = os.open(launch.folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if not _acquire(lock):
            return (launch.folder / _PID).read_text()
        with (launch.folder / JOB_LOG).open("ab") as log:
            process = subprocess.Popen(
                job_command(launch.folder),
                cwd=launch.folder,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(lock,),
                start_new_session=True,
            )
    finally:
        os.close(lock)
    (launch.folder / _PID).write_text(str(process.pid))
    _started.append(process)
    return str(process.pid)


def process_log(launch: LaunchAttempt) -> Iterator[str]:
    """Yield the output of the process, and of the training in it."""
    places = (launch.job.target / LOG, launch.job.partial / LOG)
    return log_lines(launch.folder / JOB_LOG, *places)


def _runs(folder: Path) -> bool:
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        return not _acquire(lock)
    finally:
        os.close(lock)


def _acquire(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class ProcessLauncher:
    """The common part of launchers of local processes: following one, its log, and its end."""

    attached: ClassVar = True
    remote: ClassVar = False
    poll_s: ClassVar = 0.1

    def poll(self, launch: LaunchAttempt, job_id: str) -> JobStatus:
        """Return the state of the process."""
        _started[:] = [process for process in _started if process.poll() is None]
        if _runs(launch.folder):
            return JobStatus(JobState.RUNNING, progress=newest_progress(launch.folder))
        if (outcome := read_outcome(launch.folder)) is not None:
            return outcome
        if (launch.folder / _STOPPED).exists():
            return JobStatus(JobState.CANCELLED, "interrupted")
        return JobStatus(JobState.FAILED, "the process of the training was killed")

    def logs(self, launch: LaunchAttempt, job_id: str) -> Iterator[str]:
        """Yield the output of the process."""
        return process_log(launch)

    def cancel(self, launch: LaunchAttempt, job_id: str) -> None:
        """Send SIGTERM: the training saves; a second one ends it at once."""
        with suppress(ProcessLookupError):
            if _runs(launch.folder):
                (launch.folder / _STOPPED).touch()
                os.kill(int((launch.folder / _PID).read_text()), signal.SIGTERM)
