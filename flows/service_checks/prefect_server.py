"""Check the Prefect server: version, scheduler, and who takes the runs of the deployments.

The server is that of `PREFECT_API_URL` or of the active Prefect profile. Without one nothing is checked: a
run starts a server of its own. Only deployments of tracemill count; a server may have others.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tracemill.flows.live_checks.live_check import LiveCheck
from tracemill.flows.runtime.named_server import names_a_server
from tracemill.flows.service_checks.clock import ClockReading, read_http_date

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.responses import DeploymentResponse

SERVER = "prefect server"
_LIMIT_S = 10.0


def check_prefect_server(clocks: list[ClockReading]) -> Iterator[LiveCheck]:
    """Yield checks of the server, its scheduler and its deployments; add its clock to `clocks`.

    A server that does not answer, or has another version, is one failed check, and the others are left out.
    """
    if not names_a_server():
        yield LiveCheck(SERVER, "ok", "none named in PREFECT_API_URL: a run starts its own")
        return
    import httpx
    from prefect.client.orchestration import get_client

    try:
        with get_client(httpx_settings={"timeout": _LIMIT_S}, sync_client=True) as client:
            version = _check_version(client, clocks)
            yield version
            if version.state == "failed":
                return
            deployments = _read_deployments(client)
            yield _check_scheduler(client, deployments)
            yield _check_workers(client, deployments)
    except httpx.HTTPStatusError as error:
        said = f"{_address()} answers with HTTP {error.response.status_code}"
        yield LiveCheck(SERVER, "failed", f"{said}; check PREFECT_API_URL and its credentials")
    except (httpx.HTTPError, RuntimeError, ValueError) as error:
        said = f"{_address()} does not answer ({type(error).__name__})"
        yield LiveCheck(SERVER, "failed", f"{said}; run `prefect server start` or correct PREFECT_API_URL")


def _address() -> str:
    from prefect.settings import PREFECT_API_URL

    return str(PREFECT_API_URL.value())


def _check_version(client: "SyncPrefectClient", clocks: list[ClockReading]) -> LiveCheck:
    """Compare the version of the server with that of this machine."""
    import prefect

    asked_at = datetime.now(UTC)
    response = client.request("GET", "/admin/version")
    response.raise_for_status()
    if (reading := read_http_date(SERVER, response.headers.get("Date"), asked_at)) is not None:
        clocks.append(reading)
    theirs, ours = str(response.json()), prefect.__version__
    if theirs != ours:
        said = f"{_address()} has version {theirs} and this machine {ours}; expected the same"
        return LiveCheck(SERVER, "failed", f"{said}; upgrade the older one")
    return LiveCheck(SERVER, "ok", f"version {ours} at {_address()}")


def _read_deployments(client: "SyncPrefectClient") -> "list[DeploymentResponse]":
    """Return the deployments of tracemill, by name."""
    found: list[DeploymentResponse] = []
    while page := client.read_deployments(limit=200, offset=len(found)):
        found += page
    ours = [each for each in found if "tracemill" in (each.entrypoint or "") or "tracemill" in each.tags]
    return sorted(ours, key=lambda each: each.name)


def _check_scheduler(client: "SyncPrefectClient", deployments: "Sequence[DeploymentResponse]") -> LiveCheck:
    """Return whether the server has created the next runs of every deployment with an active schedule."""
    from prefect.client.schemas import filters

    scheduled = [each for each in deployments if not each.paused and any(s.active for s in each.schedules)]
    if not scheduled:
        return LiveCheck("scheduler", "ok", "no deployment has an active schedule")
    coming: list[str] = []
    for deployment in scheduled:
        runs = client.read_flow_runs(
            deployment_filter=filters.DeploymentFilter(id=filters.DeploymentFilterId(any_=[deployment.id])),
            flow_run_filter=filters.FlowRunFilter(
                state=filters.FlowRunFilterState(name=filters.FlowRunFilterStateName(any_=["Scheduled"])),
                expected_start_time=filters.FlowRunFilterExpectedStartTime.model_validate(
                    {"after_": datetime.now(UTC)}
                ),
            ),
        )
        times = [run.expected_start_time for run in runs if run.expected_start_time is not None]
        if not times:
            said = f"the server has made no coming run of {deployment.name}"
            return LiveCheck("scheduler", "failed", f"{said}; expected one; restart the Prefect server")
        coming.append(f"{deployment.name} at {min(times):%Y-%m-%d %H:%M} UTC")
    return LiveCheck("scheduler", "ok", f"next runs: {', '.join(coming)}")


def _check_workers(client: "SyncPrefectClient", deployments: "Sequence[DeploymentResponse]") -> LiveCheck:
    """Return whether every deployment has a worker of its pool, or a process, to start its runs."""
    pools = sorted({each.work_pool_name for each in deployments if each.work_pool_name})
    found, faults = [], []
    for pool in pools:
        workers = client.read_workers_for_work_pool(pool)
        online = sum(str(_value(worker.status)) == "ONLINE" for worker in workers)
        found.append(f"{pool} ({online} online)")
        if not online:
            faults.append(f"the pool {pool} has no worker: run `prefect worker start --pool {pool}`")
    for each in deployments:
        if each.work_pool_name is None and not each.paused and str(_value(each.status)) != "READY":
            faults.append(f"{each.name} is served by nobody: run `tracemill schedule`")
        elif each.work_pool_name is None:
            found.append(f"{each.name} (served)")
    if faults:
        return LiveCheck("workers", "failed", "; ".join(faults))
    return LiveCheck("workers", "ok", ", ".join(found) or "no deployment of tracemill")


def _value(status: Any) -> object:
    with suppress(AttributeError):
        return status.value
    return status
