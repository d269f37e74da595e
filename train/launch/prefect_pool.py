"""The launcher `prefect`: a flow run in a work pool, such as one whose workers have GPUs.

The workers have tracemill installed, and share the file system of the workspace and the checkpoints.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from pydantic import Field

from tracemill.records.errors import TrainingError
from tracemill.train.launch.detached_process import write_launch
from tracemill.train.launch.launcher import (
    JobRefused,
    JobState,
    JobStatus,
    LaunchAttempt,
    LaunchOptions,
    log_lines,
    newest_progress,
    read_outcome,
)
from tracemill.train.start_child import check_places
from tracemill.train.training_job import LOG
from tracemill.train.training_settings import TrainingSettings

T = TypeVar("T")
_TAG = "tracemill-training"
_CANCELLED_AFTER = timedelta(seconds=180)
"""Time after which a run being cancelled is taken as cancelled.

It is longer than workers look for such runs and let them save. A run cancelled while its process starts may
never leave this state.
"""


class PrefectOptions(LaunchOptions):
    """Options of the launcher `prefect`."""

    work_pool: str = Field(min_length=1)
    """Work pool whose workers train."""
    work_queue: str | None = None
    job_variables: dict[str, Any] = Field(default_factory=dict)
    """Variables of the work pool's job template, such as an image."""


class PrefectLauncher:
    """A launcher of trainings in a work pool of the Prefect server of `PREFECT_API_URL`."""

    options: ClassVar = PrefectOptions
    attached: ClassVar = False
    remote: ClassVar = False
    poll_s: ClassVar = 2.0

    def check(self, settings: TrainingSettings) -> None:
        """Raise TrainingError for a path that does not exist, or if no Prefect server is named."""
        from prefect.settings import PREFECT_API_URL

        check_places(settings)
        if not PREFECT_API_URL.value():
            raise TrainingError(
                "no Prefect server is named", "its address as PREFECT_API_URL", "set it, or start a server"
            )

    def describe(self, launch: LaunchAttempt) -> dict[str, Any]:
        """Return the deployment and the flow run."""
        from tracemill.train.launch.prefect_flow import ENTRYPOINT, FLOW_NAME

        options = launch.options(PrefectOptions)
        return {
            "deployment": f"{FLOW_NAME}/{options.work_pool}",
            "entrypoint": ENTRYPOINT,
            "work_pool": options.work_pool,
            "work_queue": options.work_queue,
            "job_variables": options.job_variables,
            "parameters": {"folder": str(launch.folder)},
            "name": f"train {launch.job.name}",
            "idempotency_key": launch.key,
            "tags": [_TAG, f"release:{launch.job.release.name}"],
        }

    def submit(self, launch: LaunchAttempt) -> str:
        """Create the flow run and return its id; the server makes one run of one key."""
        described, options = self.describe(launch), launch.options(PrefectOptions)
        write_launch(launch)

        def create(client: Any) -> str:
            _require_worker(client, options.work_pool)
            flow_id = client.create_flow_from_name(described["deployment"].partition("/")[0])
            deployment = client.create_deployment(
                flow_id=flow_id,
                name=options.work_pool,
                entrypoint=described["entrypoint"],
                work_pool_name=options.work_pool,
                enforce_parameter_schema=False,
            )
            run = client.create_flow_run_from_deployment(
                deployment,
                parameters=described["parameters"],
                name=described["name"],
                tags=described["tags"],
                idempotency_key=launch.key,
                work_queue_name=options.work_queue,
                job_variables=options.job_variables or None,
            )
            return str(run.id)

        return _ask(create)

    def poll(self, launch: LaunchAttempt, job_id: str) -> JobStatus:
        """Return the state of the flow run."""
        state = _ask(lambda client: client.read_flow_run(UUID(job_id)).state)
        if state is None or state.is_scheduled() or state.is_pending() or state.is_paused():
            return JobStatus(JobState.QUEUED)
        if state.is_completed():
            return JobStatus(JobState.SUCCEEDED)
        outcome = read_outcome(launch.folder)
        if state.is_cancelled() or (outcome is not None and outcome.state == JobState.CANCELLED):
            return JobStatus(JobState.CANCELLED)
        if state.is_failed() or state.is_crashed():
            said = outcome.reason if outcome is not None and outcome.reason else state.name
            return JobStatus(JobState.FAILED, f"flow run {job_id} failed: {said}")
        if state.is_cancelling() and datetime.now(UTC) - state.timestamp > _CANCELLED_AFTER:
            return JobStatus(JobState.CANCELLED)
        return JobStatus(JobState.RUNNING, progress=newest_progress(launch.folder))

    def logs(self, launch: LaunchAttempt, job_id: str) -> Iterator[str]:
        """Yield what Prefect logged of the flow run, then the log of the training."""
        from prefect.client.schemas.filters import LogFilter, LogFilterFlowRunId
        from prefect.client.schemas.sorting import LogSort

        wanted = LogFilter(flow_run_id=LogFilterFlowRunId(any_=[UUID(job_id)]))
        found = _ask(lambda client: client.read_logs(wanted, sort=LogSort.TIMESTAMP_ASC))
        yield from (each.message for each in found)
        yield from log_lines(launch.job.target / LOG, launch.job.partial / LOG)

    def cancel(self, launch: LaunchAttempt, job_id: str) -> None:
        """Ask the server to cancel the flow run; its worker ends the process."""
        from prefect.states import Cancelling

        _ask(lambda client: client.set_flow_run_state(UUID(job_id), Cancelling()))


def _require_worker(client: Any, pool: str) -> None:
    """Raise JobRefused for a work pool that does not exist, or has no worker online."""
    from prefect.exceptions import ObjectNotFound

    try:
        client.read_work_pool(pool)
    except ObjectNotFound:
        raise JobRefused(
            f"there is no work pool {pool!r}", "one as training.launch.work_pool", "prefect work-pool create"
        ) from None
    workers = client.read_workers_for_work_pool(pool)
    if not any(str(getattr(worker.status, "value", worker.status)) == "ONLINE" for worker in workers):
        raise JobRefused(
            f"work pool {pool!r} has no worker online", "one", f"prefect worker start --pool {pool}"
        )


def _ask(call: Callable[[Any], T]) -> T:
    """Return the result of a call with a client; a refusal is a TrainingError in one line."""
    import httpx
    from prefect.client.orchestration import get_client
    from prefect.exceptions import PrefectException

    try:
        with get_client(sync_client=True) as client:
            return call(client)
    except (httpx.HTTPError, PrefectException, RuntimeError, OSError) as error:
        raise TrainingError(
            f"the Prefect server does not take the request ({type(error).__name__})",
            "a server at PREFECT_API_URL, of the version installed here",
            "the same command finds the job again",
        ) from None


PREFECT = PrefectLauncher()
