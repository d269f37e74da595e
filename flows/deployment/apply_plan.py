"""Write a plan to a `prefect.yaml` and apply it: work pools, deployments, automations."""

import asyncio
import subprocess
import sys
from pathlib import Path

import prefect
import yaml
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.actions import WorkPoolCreate, WorkPoolUpdate
from prefect.client.schemas.objects import WorkerStatus
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
from prefect.settings import PREFECT_API_URL
from prefect.workers.utilities import get_default_base_job_template_for_infrastructure_type

from tracemill.flows.deployment.automations import put_automations
from tracemill.flows.deployment.deployment_plan import DeploymentPlan
from tracemill.records.errors import ConfigError, WorkspaceError

HEAD = "# Written by `tracemill deploy`, which replaces it.\n"
_POOL_LIMIT, _TRAINING_LIMIT = 2, 1
"""Runs at a time of the pools: a release beside a harvest, one training."""


def check_prefect_file(path: Path) -> None:
    """Raise ConfigError if a `prefect.yaml` exists that tracemill did not write."""
    if path.exists() and not path.read_text(encoding="utf-8").startswith(HEAD):
        raise ConfigError(f"{path} is there and was not written by tracemill", do="give another --file")


def write_prefect_file(plan: DeploymentPlan, path: Path) -> None:
    """Write the deployments of a plan to a `prefect.yaml`."""
    text = yaml.safe_dump({"deployments": plan.deployments()}, sort_keys=False)
    path.write_text(HEAD + text, encoding="utf-8")


def require_server() -> None:
    """Check that the server of `PREFECT_API_URL` answers.

    Raises ConfigError for no server or one of another version, WorkspaceError for one that does not answer.
    """
    if PREFECT_API_URL.value() is None:
        raise ConfigError("no Prefect server is named", "PREFECT_API_URL", "or use `tracemill schedule`")
    asyncio.run(_check_named_server())


async def _check_named_server() -> None:
    async with get_client() as client:
        await check_server(client)


def apply_plan(plan: DeploymentPlan, path: Path, pool_type: str) -> list[str]:
    """Apply the `prefect.yaml` at `path` to the server of `PREFECT_API_URL`; return lines to print.

    Raises ConfigError for a pool of another type and a deployment of another configuration.
    """
    return asyncio.run(_apply(plan, path, pool_type))


async def check_server(client: PrefectClient) -> None:
    """Check that a Prefect server of our version answers.

    Raises WorkspaceError or ConfigError in one line.
    """
    if (error := await client.api_healthcheck()) is not None:
        raise WorkspaceError(
            f"the Prefect server at {client.api_url} does not answer ({type(error).__name__})",
            do="run `prefect server start` and set PREFECT_API_URL",
        )
    if (version := await client.api_version()) != prefect.__version__:
        raise ConfigError(f"the Prefect server is version {version}", f"version {prefect.__version__}")


async def _apply(plan: DeploymentPlan, path: Path, pool_type: str) -> list[str]:
    async with get_client() as client:
        await refuse_other_configuration(client, plan)
        limits = {plan.pool: _POOL_LIMIT}
        if plan.settings.training is not None:
            limits.setdefault(plan.training_pool, _TRAINING_LIMIT)
        for pool, limit in limits.items():
            await _put_pool(client, pool, pool_type, limit)
        _deploy(path)
        await put_automations(client, plan)
        said = [f"deployed {each['name']} to pool {each['work_pool']['name']}" for each in plan.deployments()]
        for pool in limits:
            workers = await client.read_workers_for_work_pool(pool)
            if not any(worker.status == WorkerStatus.ONLINE for worker in workers):
                said.append(f"pool {pool} has no worker; start one: prefect worker start --pool {pool}")
    return said


async def refuse_other_configuration(client: PrefectClient, plan: DeploymentPlan) -> None:
    """Raise ConfigError if a deployment of the same name belongs to another configuration."""
    for name in plan.full_names():
        try:
            there = await client.read_deployment_by_name(name)
        except ObjectNotFound:
            continue
        if (config := there.parameters.get("config")) != str(plan.config):
            raise ConfigError(f"deployment {name} belongs to {config}", do="give --suffix")


async def _put_pool(client: PrefectClient, name: str, pool_type: str, limit: int) -> None:
    try:
        there = await client.read_work_pool(name)
    except ObjectNotFound:
        template = await get_default_base_job_template_for_infrastructure_type(pool_type)
        made = WorkPoolCreate(
            name=name, type=pool_type, base_job_template=template or {}, concurrency_limit=limit
        )
        try:
            there = await client.create_work_pool(made)
        except ObjectAlreadyExists:  # a worker that came up just now makes its pool too
            there = await client.read_work_pool(name)
    if there.type != pool_type:
        raise ConfigError(f"work pool {name} is of type {there.type}", pool_type, "give another --pool-type")
    if there.concurrency_limit is None:
        await client.update_work_pool(name, WorkPoolUpdate(concurrency_limit=limit))


def _deploy(path: Path) -> None:
    command = [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all", "--prefect-file", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        raise ConfigError(f"`prefect deploy` failed: {lines[-1] if lines else done.returncode}")
