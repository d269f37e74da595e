"""Serve the deployments of a configuration on one machine.

Prefect's server keeps the clock. It is the user's own where one is named, else one that is started here and
ends with this process. This process runs what is due. A time that passed while nobody served is made up for
once.
"""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from prefect.client.orchestration import get_client
from prefect.deployments.runner import RunnerDeployment
from prefect.events import DeploymentEventTrigger
from prefect.runner import Runner
from prefect.schedules import Cron
from prefect.settings import PREFECT_API_URL, PREFECT_HOME, temporary_settings
from prefect.types.entrypoint import EntrypointType

from tracemill.flows import run_flow
from tracemill.flows.config.run_settings import load_settings
from tracemill.flows.deployment.apply_plan import check_server
from tracemill.flows.deployment.automations import put_automations
from tracemill.flows.deployment.deployment_plan import (
    HEARTBEAT_S,
    DeploymentPlan,
    check_schedule,
    run_environment,
)
from tracemill.flows.deployment.local_server import lock_served_config, prefect_server
from tracemill.flows.runtime.terminal import say_lines
from tracemill.records.identity import digest

_SAVING_S = 30.0
"""Seconds a run that was told to stop has to write what it has, after its calls in flight finished."""
_AT_A_TIME = 3
"""Runs at a time: a harvest, a release that waits for it, a training."""


def serve_schedule(config: Path, cron: str, timezone: str) -> None:
    """Run the configuration in the file `config` at the times of `cron`, until Ctrl-C.

    Raises ConfigError for an invalid schedule or time zone, a broken configuration or a server of another
    version, WorkspaceError if no Prefect server answers or this user serves the file already,
    KeyboardInterrupt at its end.
    """
    check_schedule(cron, timezone)
    with (
        lock_served_config(PREFECT_HOME.value(), config),
        prefect_server() as url,
        temporary_settings({PREFECT_API_URL: url}),
    ):
        os.environ |= {"PREFECT_API_URL": url, **run_environment()}
        settings = load_settings(config, {})
        suffix = f"{config.stem}-{digest('config', str(config), size=4)}"
        plan = DeploymentPlan(config, settings, cron, timezone, suffix)
        # asyncio takes a Ctrl-C in an orderly way only where nobody else's handler stands
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with suppress(KeyboardInterrupt):
                asyncio.run(_serve(plan))
        finally:
            signal.signal(signal.SIGINT, before)
    raise KeyboardInterrupt


class _Runner(Runner):
    """A Prefect runner that ends at SIGTERM, which service supervisors send, as at Ctrl-C."""

    def handle_sigterm(self, *_: Any, **__: Any) -> None:
        """Handle SIGTERM."""
        signal.raise_signal(signal.SIGINT)


async def _serve(plan: DeploymentPlan) -> None:
    runner = _Runner(limit=_AT_A_TIME, pause_on_shutdown=False, heartbeat_seconds=HEARTBEAT_S)
    async with get_client() as client:
        await check_server(client)
        for each in plan.deployments():
            await runner.aadd_deployment(await _deployment(each))
        await put_automations(client, plan)
    say_lines([f"{plan.config} runs at {plan.cron!r} ({plan.timezone}); Ctrl-C ends this"])
    served = asyncio.create_task(runner.start())
    try:
        await asyncio.wait({served})
        served.result()
    except asyncio.CancelledError:
        if runner.started:
            say_lines(["ending; a run that is going on is told to stop"])
            await asyncio.to_thread(end_runs, plan.settings.replay.interrupt_wait_s + _SAVING_S)
            await runner.astop()
        raise
    finally:
        served.cancel()


async def _deployment(entry: dict[str, Any]) -> RunnerDeployment:
    flow = getattr(run_flow, entry["entrypoint"].rpartition(".")[2])
    schedules = [Cron(each["cron"], timezone=each["timezone"]) for each in entry.get("schedules", ())]
    return await flow.ato_deployment(
        entry["name"],
        schedules=schedules,
        parameters=entry["parameters"],
        triggers=[DeploymentEventTrigger.model_validate(each) for each in entry.get("triggers", ())],
        tags=entry["tags"],
        entrypoint_type=EntrypointType.MODULE_PATH,
    )


def end_runs(grace_s: float) -> None:
    """Send SIGTERM to the runs that this process started; wait at most `grace_s` seconds for them."""
    runs = list[psutil.Process]()
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            if "PREFECT__FLOW_RUN_ID" in child.environ():
                child.terminate()
                runs.append(child)
    psutil.wait_procs(runs, timeout=grace_s)
