"""The registry of launchers.

Packages add a launcher by an entry point of the group `tracemill.launchers`.
"""

from pydantic import BaseModel, ValidationError

from tracemill.records.errors import ConfigError
from tracemill.records.registry import Registry
from tracemill.train.launch.launcher import Launcher
from tracemill.train.training_settings import TrainingSettings

_METHODS = ("check", "describe", "submit", "poll", "logs", "cancel")


def _fits(_: str, launcher: object) -> bool:
    options = getattr(launcher, "options", None)
    return (
        all(callable(getattr(launcher, each, None)) for each in _METHODS)
        and isinstance(options, type)
        and issubclass(options, BaseModel)
    )


LAUNCHERS: Registry[Launcher] = Registry(
    "launcher",
    "tracemill.launchers",
    {
        "local": "tracemill.train.launch.local:LOCAL",
        "command": "tracemill.train.launch.command:COMMAND",
        "prefect": "tracemill.train.launch.prefect_pool:PREFECT",
        "slurm": "tracemill.train.launch.slurm:SLURM",
        "hf-jobs": "tracemill.train.launch.hf_jobs:HF_JOBS",
        "modal": "tracemill.train.launch.modal_sandbox:MODAL",
    },
    fits=_fits,
    expected=f"a value with `options` and the methods {', '.join(_METHODS)}",
)


def check_launcher(settings: TrainingSettings) -> None:
    """Raise ConfigError for a launcher that does not exist, or options that it does not take."""
    launcher = LAUNCHERS.get(settings.launcher)
    try:
        launcher.options.model_validate(settings.launch)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(["launch", *map(str, fault["loc"])])
        known = ", ".join(launcher.options.model_fields) or "no option"
        raise ConfigError(
            f"{where}: {fault['msg'].removeprefix('Value error, ')}",
            f"options of the launcher {settings.launcher!r}: {known}",
        ) from None
