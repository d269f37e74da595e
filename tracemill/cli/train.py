"""`tracemill train`, `eval-model`, `schedule` and `deploy` on the command line."""

from json import dumps as to_json
from pathlib import Path
from typing import Annotated

import typer

from tracemill.cli.options import (
    ConfigArgument,
    ConfigOption,
    Json,
    WorkspaceOption,
    Yes,
    required_configuration,
)
from tracemill.cli.overrides import given_options, run_overrides
from tracemill.records.errors import ConfigError
from tracemill.records.printable import printable

ReleaseOption = Annotated[
    str | None,
    typer.Option(
        metavar="RELEASE",
        help="NAME[@VERSION], VERSION, a folder or OWNER/NAME[@TAG].",
        show_default="the newest",
    ),
]


def train(
    config: ConfigArgument = None,
    release: ReleaseOption = None,
    model: Annotated[str | None, typer.Option(help="Model id on the Hub, or a folder.")] = None,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="sft, dpo, simpo, kto, prm, composer or one from a package.",
            show_default="sft",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of checkpoints.", show_default="in the workspace"),
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Maximum number of optimiser steps.")
    ] = None,
    launcher: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="local, command, prefect, slurm, hf-jobs, modal or one from a package.",
            show_default="local",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the exact job; submit nothing.")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Submit the job and do not wait for it.")] = False,
    logs: Annotated[bool, typer.Option("--logs", help="Print the log of the submitted job.")] = False,
    cancel: Annotated[bool, typer.Option("--cancel", help="Ask the submitted job to stop.")] = False,
    yes: Yes = False,
    workspace: WorkspaceOption = None,
    json: Json = False,
) -> None:
    """Train a model on a release with TRL.

    The same command resumes a training that was interrupted, and finds a job that was submitted.
    """
    from tracemill.cli.commands import quiet_prefect, say, warn_of_training
    from tracemill.flows.config.run_settings import load_settings

    flags = (("--dry-run", dry_run), ("--detach", detach), ("--logs", logs), ("--cancel", cancel))
    if len(chosen := [name for name, given in flags if given]) > 1:
        raise ConfigError(f"{' and '.join(chosen)} are both given", "one of them")
    keys = given_options(
        model=model and _placed(model),
        method=method,
        output=output and str(output.resolve()),
        max_steps=max_steps,
        launcher=launcher,
    )
    settings = load_settings(config, run_overrides(workspace) | given_options(training=keys))
    if settings.training is not None and settings.training.launcher == "prefect":
        quiet_prefect()
    from tracemill.flows.training import training_run as run

    if dry_run:
        described = run.describe_training(settings, release)
        if "missing" in described:
            typer.echo(f"tracemill: a training cannot start here: {described['missing']}", err=True)
        typer.echo(to_json(described, indent=2))
    elif logs:
        for line in run.training_log(settings, release):
            typer.echo(printable(line, 10_000))
    elif detach or cancel:
        if detach:
            record, done = run.start_training(settings, release, yes).record, "submitted"
        else:
            record, done = run.stop_training(settings, release), "told to stop"
        found = record.model_dump(mode="json", include={"launcher", "job_id", "release", "checkpoint"})
        rows = [
            ("job", f"{record.job_id or record.key} of {record.launcher}, {done}"),
            ("checkpoint", record.checkpoint),
        ]
        say(rows, f"tracemill train {record.release}", found, json)
    else:
        found = run.train_and_decide(settings, release, yes)
        say(run.training_table_rows(found), f"tracemill train {found['release']}", found, json)
        warn_of_training(found)


def eval_model(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...", help="Model id on the Hub, or a folder; the first is the baseline."
        ),
    ],
    release: ReleaseOption = None,
    config: ConfigOption = None,
    max_length: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Maximum tokens of a prompt with one side.", show_default="4096"
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option(metavar="NAME", help="auto, cpu or cuda.", show_default="auto")
    ] = None,
    world: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:CLASS", help="Environment class whose tasks are played too.", show_default="none"
        ),
    ] = None,
    tasks: Annotated[str, typer.Option(metavar="FIRST:END", help="Range of its tasks.")] = "0:100",
    temperature: Annotated[
        float, typer.Option(metavar="X", min=0, help="Sampling temperature of actions; 0 is greedy.")
    ] = 0.0,
    turns: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum actions per task.")] = 16,
    new_tokens: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum tokens per action.")] = 256,
    workspace: WorkspaceOption = None,
    json: Json = False,
) -> None:
    """Measure how models rank the pairs that a release holds out, and the tasks of a world they solve.

    No training reads these pairs. With --world they are measured where --release is given. Nothing is sent
    and nothing is spent.
    """
    from tracemill.cli.commands import say
    from tracemill.flows.config.run_settings import load_settings
    from tracemill.flows.training.model_evaluation import PlaySettings, evaluate_models, evaluation_table_rows

    placed = [_placed(model) for model in models]
    keys = given_options(model=placed[0], max_length=max_length, device=device)
    over = run_overrides(workspace) | {"training": keys}
    play = PlaySettings.of(world, tasks, temperature, turns, new_tokens) if world is not None else None
    found = evaluate_models(load_settings(config, over), placed, release, play)
    say(evaluation_table_rows(found), f"tracemill eval-model {found.get('release', world)}", found, json)


def _placed(model: str) -> str:
    """Return the absolute path of a model in a folder; an id of the Hub stays as it is."""
    if model.startswith((".", "/", "~")) or Path(model).exists():
        return str(Path(model).expanduser().resolve())
    return model


def schedule(
    cron: Annotated[str, typer.Option(metavar="CRON", help="Times: minute hour day month weekday.")],
    config: ConfigArgument = None,
    timezone: Annotated[str, typer.Option(metavar="ZONE", help="Time zone, such as Europe/Berlin.")] = "UTC",
) -> None:
    """Run a configuration on a cron schedule until Ctrl-C.

    Text is sent to teachers only with consent given before.
    """
    from tracemill.cli.commands import keep_prefect_to_itself
    from tracemill.flows.config.run_settings import load_settings

    config = required_configuration(config)
    load_settings(config, {}).cap_usd()
    keep_prefect_to_itself()
    from tracemill.flows.schedule import serve_schedule

    serve_schedule(config.resolve(), cron, timezone)


def deploy(
    cron: Annotated[str, typer.Option(metavar="CRON", help="Times: minute hour day month weekday.")],
    config: ConfigArgument = None,
    timezone: Annotated[str, typer.Option(metavar="ZONE", help="Time zone, such as Europe/Berlin.")] = "UTC",
    pool: Annotated[
        str, typer.Option(metavar="NAME", help="Work pool of harvests and releases.")
    ] = "tracemill",
    training_pool: Annotated[
        str, typer.Option(metavar="NAME", help="Work pool of trainings.")
    ] = "tracemill-train",
    pool_type: Annotated[
        str, typer.Option(metavar="TYPE", help="Type of pools that are created.")
    ] = "process",
    suffix: Annotated[
        str, typer.Option(metavar="NAME", help="Suffix of the names, for several configurations.")
    ] = "",
    file: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the deployments.")] = Path(
        "prefect.yaml"
    ),
    write_only: Annotated[
        bool, typer.Option("--write-only", help="Write the file and apply nothing.")
    ] = False,
) -> None:
    """Write the deployments of a configuration and apply them to a Prefect server.

    The server is that of PREFECT_API_URL. Workers of the pools start the scheduled runs.
    """
    from tracemill.cli.commands import quiet_prefect
    from tracemill.flows.config.run_settings import load_settings

    config = required_configuration(config)
    settings = load_settings(config, {})
    settings.cap_usd()
    quiet_prefect()
    from tracemill.flows.deployment.apply_plan import (
        apply_plan,
        check_prefect_file,
        require_server,
        write_prefect_file,
    )
    from tracemill.flows.deployment.deployment_plan import DeploymentPlan, check_schedule

    check_schedule(cron, timezone)
    plan = DeploymentPlan(config.resolve(), settings, cron, timezone, suffix, pool, training_pool)
    check_prefect_file(file)
    if not write_only:
        require_server()
    write_prefect_file(plan, file)
    typer.echo(f"wrote {file}")
    if not write_only:
        for line in apply_plan(plan, file, pool_type):
            typer.echo(line)
