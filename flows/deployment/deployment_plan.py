"""The deployments of a configuration: what runs when, with what, and after which event.

`tracemill deploy` writes them to a `prefect.yaml`, `tracemill schedule` serves them in one process.
"""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prefect.server.schemas.schedules import CronSchedule
from pydantic import ValidationError

from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.runtime.prefect_events import CREATED, HARVESTED, PUBLISHED, release_resource
from tracemill.records.errors import ConfigError

HEARTBEAT_S = 30
"""Seconds between the heartbeats of a run, the least that Prefect allows."""
DEAD_AFTER_S = 4 * HEARTBEAT_S
"""Seconds without a heartbeat after which a run counts as dead."""
_CLIENT_RETRIES = 11
"""Tries of a run to reach the server, with waits that double: over an hour."""


@dataclass(frozen=True, slots=True)
class DeploymentPlan:
    """The deployments of a configuration: its schedule, and the work pools of its runs."""

    config: Path
    settings: RunSettings
    cron: str
    timezone: str = "UTC"
    suffix: str = ""
    """What names of deployments end in, for several configurations at one server."""
    pool: str = "tracemill"
    training_pool: str = "tracemill-train"

    @property
    def harvest_name(self) -> str:
        """Return the name of the deployment of harvests, which the schedule starts."""
        return self._named("nightly-harvest")

    @property
    def release_name(self) -> str:
        """Return the name of the deployment of releases, which follow a harvest."""
        return self._named("release")

    @property
    def training_name(self) -> str:
        """Return the name of the deployment of trainings, which follow a release."""
        return self._named("train-from-release")

    def _named(self, name: str) -> str:
        return f"{name}-{self.suffix}" if self.suffix else name

    def deployments(self) -> list[dict[str, Any]]:
        """Return the deployments as entries of a `prefect.yaml`, with training if it is configured."""
        harvest = self._deployment("harvest", self.harvest_name, self.pool)
        harvest["schedules"] = [{"cron": self.cron, "timezone": self.timezone, "active": True}]
        release = self._deployment("release", self.release_name, self.pool)
        release["triggers"] = [self._after_harvest()]
        if self.settings.training is None:
            return [harvest, release]
        training = self._deployment("training", self.training_name, self.training_pool)
        training["triggers"] = [self._after_release()]
        return [harvest, release, training]

    def full_names(self) -> list[str]:
        """Return the names of the deployments with their flows' names, the harvest first."""
        return [f"{each['entrypoint'].rpartition('.')[2]}/{each['name']}" for each in self.deployments()]

    def _deployment(self, flow: str, name: str, pool: str) -> dict[str, Any]:
        parameters = {"config": str(self.config), "workspace": str(self.settings.workspace.absolute())}
        return {
            "name": name,
            "entrypoint": f"tracemill.flows.run_flow.{flow}",
            "parameters": parameters,
            "tags": ["tracemill", self.settings.release.name],
            "work_pool": {"name": pool, "job_variables": {"env": run_environment()}},
            "pull": [],
        }

    def _after_harvest(self) -> dict[str, Any]:
        return {
            "name": f"{self.release_name}: after each harvest",
            "match": {"prefect.resource.id": "tracemill.run.*"},
            "match_related": {
                "prefect.resource.role": "deployment",
                "prefect.resource.name": self.harvest_name,
            },
            "expect": [HARVESTED],
        }

    def _after_release(self) -> dict[str, Any]:
        """Return the trigger of a training: a new version on the Hub, or if unpublished in the workspace."""
        release = self.settings.release
        return {
            "name": f"{self.training_name}: on each release",
            "match": {"prefect.resource.id": release_resource(release.hub or release.name)},
            "expect": [PUBLISHED if release.hub else CREATED],
            "parameters": {"release": "{{ event.payload.dataset }}@{{ event.payload.version }}"},
        }


def run_environment() -> dict[str, str]:
    """Return environment variables of a run: heartbeats, retries while a server restarts, no telemetry."""
    return {
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": str(HEARTBEAT_S),
        "PREFECT_CLIENT_MAX_RETRIES": str(_CLIENT_RETRIES),
        "DO_NOT_TRACK": "1",
        "PYTHONSAFEPATH": "1",
    }


def check_schedule(cron: str, timezone: str) -> None:
    """Check a schedule of five fields in a time zone.

    Raises ConfigError if it is invalid or never occurs. A sixth field is refused, since some programs read
    it as seconds and others as a year.
    """
    wanted = "five fields, minute hour day month weekday, such as '0 3 * * *'"
    if len(cron.split()) != 5 and not cron.startswith("@"):
        raise ConfigError(f"--cron {cron!r} is not valid", wanted)
    try:
        CronSchedule(cron=cron, timezone="UTC")
    except ValidationError:
        raise ConfigError(f"--cron {cron!r} is not valid", wanted) from None
    try:
        schedule = CronSchedule(cron=cron, timezone=timezone)
    except ValidationError:
        raise ConfigError(f"--timezone {timezone!r} is unknown", "a name such as Europe/Berlin") from None
    try:
        asyncio.run(schedule.get_dates(1, start=datetime.now(UTC)))
    except ValueError:
        raise ConfigError(f"--cron {cron!r} never occurs", "a day that its month has") from None
