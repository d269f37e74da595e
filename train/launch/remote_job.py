"""What jobs on machines without our files have in common: the release and the checkpoint go by the Hub."""

import os
from collections.abc import Mapping
from pathlib import Path

from tracemill.records.errors import TrainingError
from tracemill.train.launch.launcher import LaunchAttempt
from tracemill.train.training_settings import TrainingSettings

REMOTE_COMMAND = ("python", "-P", "-m", "tracemill.train.launch.run_job")
TOKEN = "HF_TOKEN"


def check_remote(settings: TrainingSettings) -> None:
    """Raise TrainingError for settings that a job without shared files cannot run with."""
    launcher = f"the launcher {settings.launcher!r} shares no files with this machine"
    if settings.hub is None:
        raise TrainingError(
            f"{launcher} and needs training.hub", "a model repository OWNER/NAME for the checkpoint"
        )
    if Path(settings.model).is_absolute() or settings.chat_template is not None:
        given = "chat_template" if settings.chat_template is not None else "model"
        raise TrainingError(f"{launcher}, but training.{given} is a path on it", "a model of the Hub")
    if settings.accelerate is not None:
        raise TrainingError(
            f"{launcher}, but training.accelerate is a path on it", "the defaults of accelerate"
        )
    if TOKEN not in settings.environment:
        raise TrainingError(
            f"training.environment does not name {TOKEN}", "this name, since the job uploads with the token"
        )
    for name in settings.environment:
        if not os.environ.get(name):
            raise TrainingError(f"training.environment names {name}, which is not set", f"a value of {name}")


def check_release(launch: LaunchAttempt) -> None:
    """Raise TrainingError if the release is on this machine alone."""
    release = launch.job.release
    if release.repository is None:
        raise TrainingError(
            f"release {launch.job.name} is on this machine and the job runs elsewhere",
            "a release on the Hub as OWNER/NAME@TAG",
            "tracemill release publish, then --release OWNER/NAME@TAG",
        )


def remote_variables(launch: LaunchAttempt) -> dict[str, str]:
    """Return the variables that `run_job` reads; they hold no secret and no folder of this machine."""
    settings = launch.settings.model_copy(update={"output": None})
    return {
        "TRACEMILL_JOB": launch.job.model_copy(update={"settings": settings}).model_dump_json(),
        "TRACEMILL_KEY": launch.key,
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "DO_NOT_TRACK": "1",
    }


def named_secrets(launch: LaunchAttempt, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that `training.environment` names, with their values."""
    return {name: environ[name] for name in launch.settings.environment}
