"""The launcher `hf-jobs`: a job of the Hub (https://huggingface.co/docs/hub/jobs)."""

import os
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeVar

from pydantic import Field

from tracemill.records.errors import TrainingError
from tracemill.train.launch.launcher import JobRefused, JobState, JobStatus, LaunchAttempt, LaunchOptions
from tracemill.train.launch.remote_job import (
    REMOTE_COMMAND,
    check_release,
    check_remote,
    named_secrets,
    remote_variables,
)
from tracemill.train.start_child import INSTALL
from tracemill.train.training_settings import TrainingSettings

T = TypeVar("T")
_LABEL = "tracemill-job"
_STATES = {
    "SCHEDULING": JobState.QUEUED,
    "RUNNING": JobState.RUNNING,
    "COMPLETED": JobState.SUCCEEDED,
    "CANCELED": JobState.CANCELLED,
    "DELETED": JobState.CANCELLED,
    "ERROR": JobState.FAILED,
}


class HFJobsOptions(LaunchOptions):
    """Options of the launcher `hf-jobs`."""

    flavor: str = "a10g-small"
    """Hardware, by its name at the Hub."""
    image: str = "python:3.12"
    """Container image."""
    setup: tuple[str, ...] = (INSTALL,)
    """Shell lines before the training."""
    timeout: str = Field("8h", pattern=r"^\d+[smhd]$")
    """Longest duration, such as `90m`."""
    namespace: str | None = None
    """User or organisation that pays; by default the owner of the token."""


class HFJobsLauncher:
    """A launcher of trainings in jobs of the Hub."""

    options: ClassVar = HFJobsOptions
    attached: ClassVar = False
    remote: ClassVar = True
    poll_s: ClassVar = 15.0

    def check(self, settings: TrainingSettings) -> None:
        """Raise TrainingError for settings that need files of this machine, and for unset variables."""
        check_remote(settings)

    def describe(self, launch: LaunchAttempt) -> dict[str, Any]:
        """Return the arguments of `HfApi.run_job`, with only the names of secrets."""
        check_release(launch)
        return {**self._arguments(launch), "secrets": sorted(launch.settings.environment)}

    def submit(self, launch: LaunchAttempt) -> str:
        """Submit the job, with its key as a label, and return its id."""
        namespace = launch.options(HFJobsOptions).namespace
        labels = {_LABEL: launch.key}
        there = _ask(lambda: [job.id for job in _api().list_jobs(labels=labels, namespace=namespace)])
        if there:
            return there[0]
        secrets = named_secrets(launch, os.environ)
        return str(_ask(lambda: _api().run_job(**self._arguments(launch), secrets=secrets)).id)

    def poll(self, launch: LaunchAttempt, job_id: str) -> JobStatus:
        """Return the stage of the job."""
        namespace = launch.options(HFJobsOptions).namespace
        status = _ask(lambda: _api().inspect_job(job_id=job_id, namespace=namespace)).status
        state = _STATES.get(str(getattr(status.stage, "value", status.stage)), JobState.RUNNING)
        reason = f"job {job_id} of the Hub failed ({status.message or 'no message'})"
        return JobStatus(state, reason if state == JobState.FAILED else "")

    def logs(self, launch: LaunchAttempt, job_id: str) -> Iterator[str]:
        """Yield the lines of the job so far."""
        namespace = launch.options(HFJobsOptions).namespace
        yield from _ask(lambda: list(_api().fetch_job_logs(job_id=job_id, namespace=namespace)))

    def cancel(self, launch: LaunchAttempt, job_id: str) -> None:
        """Cancel the job; nothing is saved."""
        namespace = launch.options(HFJobsOptions).namespace
        _ask(lambda: _api().cancel_job(job_id=job_id, namespace=namespace))

    def _arguments(self, launch: LaunchAttempt) -> dict[str, Any]:
        options = launch.options(HFJobsOptions)
        return {
            "image": options.image,
            "command": [
                "sh",
                "-c",
                "\n".join(("set -e", *options.setup, f"exec {' '.join(REMOTE_COMMAND)}")),
            ],
            "env": remote_variables(launch),
            "flavor": options.flavor,
            "timeout": options.timeout,
            "name": launch.key,
            "labels": {_LABEL: launch.key},
            "namespace": options.namespace,
        }


def _api() -> Any:
    from huggingface_hub import HfApi

    return HfApi()


def _ask(call: Callable[[], T]) -> T:
    """Return the result of a call; a refusal is a TrainingError in one line."""
    from huggingface_hub.errors import HfHubHTTPError
    from huggingface_hub.utils import httpx

    try:
        return call()
    except HfHubHTTPError as error:
        status = error.response.status_code
        kind = JobRefused if 400 <= status < 500 else TrainingError
        raise kind(
            f"the Hub answers {status} to a request about jobs", "a token of HF_TOKEN that may run jobs"
        ) from None
    except (OSError, httpx.TransportError, ValueError) as error:
        raise TrainingError(
            f"jobs of the Hub cannot be reached ({type(error).__name__})",
            "a Hub that answers",
            "the same command finds the job again",
        ) from None


HF_JOBS = HFJobsLauncher()
