"""`tracemill train` and `tracemill serve` on the command line."""

from pathlib import Path
from typing import Annotated, Any

import typer

from tracemill.cli.options import Config, Json, WorkspaceOption
from tracemill.cli.source_options import source_options_overrides


def train(
    config: Config = None,
    release: Annotated[
        str | None,
        typer.Option(
            help="NAME[@VERSION] or VERSION of the workspace, a folder, or OWNER/NAME[@TAG] of the Hub."
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(help="Id of a model at the Hub, or its folder.")] = None,
    method: Annotated[
        str | None, typer.Option(help="sft, dpo, simpo, kto, or what an installed package adds.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Folder of checkpoints.")] = None,
    max_steps: Annotated[int | None, typer.Option(min=1, help="Steps of the optimiser at most.")] = None,
    workspace: WorkspaceOption = None,
    json: Json = False,
) -> None:
    """Train a model on a release, with a trainer of TRL in a process of its own.

    The same command goes on with a training that was cut off.
    """
    from tracemill.cli.commands import train_only
    from tracemill.flows.config.run_settings import load_settings

    given: dict[str, Any] = {
        "model": model,
        "method": method,
        "output": output and str(output.resolve()),
        "max_steps": max_steps,
    }
    if model is not None and (model.startswith((".", "/", "~")) or Path(model).exists()):
        given["model"] = str(Path(model).expanduser().resolve())
    over = source_options_overrides(workspace)
    if chosen := {key: value for key, value in given.items() if value is not None}:
        over["training"] = chosen
    train_only(load_settings(config, over), release, json)


def serve(
    config: Annotated[Path, typer.Argument(help="Run configuration (TOML).")],
    cron: Annotated[str, typer.Option(help="When to run: minute hour day month weekday.")],
    timezone: Annotated[str, typer.Option(help="Time zone of the schedule, such as Europe/Berlin.")] = "UTC",
) -> None:
    """Do the whole run of a configuration at the times of a cron schedule, until Ctrl-C.

    Text goes to teachers only where that was accepted beforehand.
    """
    from tracemill.cli.commands import quiet_prefect
    from tracemill.flows.config.run_settings import load_settings

    load_settings(config, {}).cap_usd()
    quiet_prefect()
    from tracemill.flows.schedule import serve_schedule

    serve_schedule(config.resolve(), cron, timezone)
