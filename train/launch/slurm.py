"""The launcher `slurm`: a batch job of Slurm (https://slurm.schedmd.com/sbatch.html).

The checkout, the workspace and the checkpoints lie on a file system that the nodes share.
"""

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any, ClassVar

from pydantic import Field

from tracemill.records.errors import TrainingError
from tracemill.records.storage.atomic_files import write_atomically
from tracemill.train.launch.detached_process import job_command, process_log, write_launch
from tracemill.train.launch.launcher import (
    JobRefused,
    JobState,
    JobStatus,
    LaunchAttempt,
    LaunchOptions,
    newest_progress,
    read_outcome,
)
from tracemill.train.start_child import check_places
from tracemill.train.training_settings import TrainingSettings

_PROGRAMS = ("sbatch", "sacct", "scancel")
_TIMEOUT_S = 60.0
_SCRIPT = "job.sh"
_QUEUED = {"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT", "SUSPENDED"}
_RUNNING = {"RUNNING", "COMPLETING", "CONFIGURING", "RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED"}


class SlurmOptions(LaunchOptions):
    """Options of the launcher `slurm`."""

    partition: str | None = None
    account: str | None = None
    gpus: int = Field(1, ge=0)
    """GPUs of the one node; `training.processes` says how many of them are used."""
    cpus: int = Field(8, ge=1)
    memory: str = "32G"
    time: str = "08:00:00"
    """Longest duration, as sbatch takes it."""
    sbatch: tuple[str, ...] = ()
    """Further options of sbatch, such as `--qos=high`."""
    setup: tuple[str, ...] = ()
    """Shell lines before the training, such as `module load cuda`."""


class SlurmLauncher:
    """A launcher of trainings in batch jobs of Slurm."""

    options: ClassVar = SlurmOptions
    attached: ClassVar = False
    remote: ClassVar = False
    poll_s: ClassVar = 15.0

    def check(self, settings: TrainingSettings) -> None:
        """Raise TrainingError for a missing program of Slurm, or a path that does not exist."""
        check_places(settings)
        for name in _PROGRAMS:
            if shutil.which(name) is None:
                raise TrainingError(
                    f"{name} is not there", "the programs of Slurm", "call it on a login node"
                )

    def describe(self, launch: LaunchAttempt) -> dict[str, Any]:
        """Return the command line of sbatch and its script."""
        return {"command": _sbatch(launch), "script": _script(launch)}

    def submit(self, launch: LaunchAttempt) -> str:
        """Submit the script, named by its key, and return the id of the job."""
        there = _sacct("JobID", f"--name={launch.key}", "--starttime=now-30days").split()
        if there:
            return there[-1]
        write_launch(launch)
        with write_atomically(launch.folder / _SCRIPT) as file:
            file.write_text(_script(launch), encoding="utf-8")
        return _call(_sbatch(launch)).strip().partition(";")[0]

    def poll(self, launch: LaunchAttempt, job_id: str) -> JobStatus:
        """Return the state that sacct gives; a job that it does not show yet is queued."""
        word = (_sacct("State", f"--jobs={job_id}").split() or ["PENDING"])[0]
        if word in _QUEUED:
            return JobStatus(JobState.QUEUED)
        if word in _RUNNING:
            return JobStatus(JobState.RUNNING, progress=newest_progress(launch.folder))
        if word == "COMPLETED":
            return JobStatus(JobState.SUCCEEDED)
        if word.startswith("CANCELLED"):
            return JobStatus(JobState.CANCELLED)
        outcome = read_outcome(launch.folder)
        said = outcome.reason if outcome is not None and outcome.reason else word
        return JobStatus(JobState.FAILED, f"job {job_id} of Slurm failed: {said}")

    def logs(self, launch: LaunchAttempt, job_id: str) -> Iterator[str]:
        """Yield the output of the job."""
        return process_log(launch)

    def cancel(self, launch: LaunchAttempt, job_id: str) -> None:
        """Send SIGTERM by scancel; the training saves within Slurm's KillWait."""
        _call(["scancel", job_id])


def _sbatch(launch: LaunchAttempt) -> list[str]:
    """Return the command line; the job gets only the named environment variables."""
    options = launch.options(SlurmOptions)
    exported = ",".join(name for name in launch.settings.environment if name in os.environ)
    given = {"--partition": options.partition, "--account": options.account}
    if options.gpus:
        given["--gpus"] = str(options.gpus)
    return [
        "sbatch",
        "--parsable",
        f"--job-name={launch.key}",
        f"--export={exported or 'NONE'}",
        f"--output={launch.folder / 'job.log'}",
        "--open-mode=append",
        f"--chdir={launch.folder}",
        "--nodes=1",
        "--ntasks=1",
        f"--cpus-per-task={options.cpus}",
        f"--mem={options.memory}",
        f"--time={options.time}",
        "--signal=B:TERM@120",
        *(f"{name}={value}" for name, value in given.items() if value is not None),
        *options.sbatch,
        str(launch.folder / _SCRIPT),
    ]


def _script(launch: LaunchAttempt) -> str:
    options = launch.options(SlurmOptions)
    lines = ["#!/bin/sh", "set -e", *options.setup, f"exec {shlex.join(job_command(launch.folder))}"]
    return "\n".join(lines) + "\n"


def _sacct(column: str, *which: str) -> str:
    return _call(["sacct", "--allocations", "--noheader", "--parsable2", f"--format={column}", *which])


def _call(command: list[str]) -> str:
    """Return the output of a Slurm program. Raises TrainingError with its last line if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TrainingError(
            f"{command[0]} does not answer ({type(error).__name__})",
            do="run the same tracemill command again: it finds the job",
        ) from None
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or [f"code {done.returncode}"])[-1]
        raise JobRefused(f"{command[0]} failed: {said}")
    return done.stdout


SLURM = SlurmLauncher()
