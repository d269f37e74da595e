"""The command line. Starts fast: what a command needs is imported when it runs.

Exit codes: 0 well, 1 teachers do not answer or a training failed, 2 bad input (one line on stderr), 4 the run
had spent its cap before and nothing was asked, 130 interrupted.
"""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from tracemill.cli.evaluate import evaluate
from tracemill.cli.formats import formats_app
from tracemill.cli.options import (
    AcceptTerms,
    AskAgain,
    ClaudeCode,
    Config,
    Json,
    MaxUsd,
    Name,
    NewRun,
    OpenHands,
    Preset,
    Rebuild,
    SweGym,
    WorkspaceOption,
    Yes,
)
from tracemill.cli.privacy import Accept, privacy_app
from tracemill.cli.publish import diff, publish, releases, retract
from tracemill.cli.replay import estimate, replay
from tracemill.cli.report import audit, report
from tracemill.cli.simulate import simulate_openrouter
from tracemill.cli.source_options import (
    DenyProject,
    ForgottenIn,
    Format,
    Hub,
    Idle,
    Jobs,
    Out,
    Paths,
    PrivacyOf,
    Project,
    Recorded,
    Sample,
    Seed,
    Since,
    Unredacted,
    Until,
    accepted_options,
    sample_asked,
    select_asked,
    source_options_overrides,
    source_options_table,
)
from tracemill.cli.train import serve, train
from tracemill.flows.runtime.interrupts import EXIT_CODE, remembered
from tracemill.records.errors import TracemillError
from tracemill.records.storage.atomic_files import make_files_private

app = typer.Typer(
    name="tracemill",
    help="Turns recorded coding-agent sessions into preference datasets.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from tracemill.records.version import __version__

        typer.echo(f"tracemill {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Turns recorded coding-agent sessions into preference datasets."""


@app.command()
def run(
    config: Config = None,
    claude_code: ClaudeCode = None,
    openhands: OpenHands = None,
    swe_gym: SweGym = None,
    path: Paths = None,
    hub: Hub = None,
    form: Format = None,
    idle_minutes: Idle = None,
    sample: Sample = None,
    seed: Seed = None,
    workspace: WorkspaceOption = None,
    preset: Preset = None,
    max_usd: MaxUsd = None,
    name: Name = None,
    concurrency: Annotated[int | None, typer.Option(help="Calls in flight at most.")] = None,
    project: Project = None,
    deny_project: DenyProject = None,
    since: Since = None,
    until: Until = None,
    ask_again: AskAgain = None,
    new_run: NewRun = False,
    yes: Yes = False,
    accept_terms: AcceptTerms = False,
    accept: Accept = None,
    rebuild: Rebuild = False,
    json: Json = False,
) -> None:
    """Sessions in, a versioned preference dataset out: every stage in order.

    Without teachers nothing is sent and nothing is spent: only hindsight pairs are made.
    """
    from tracemill.cli.commands import run_all
    from tracemill.flows.config.run_settings import load_settings

    over = source_options_overrides(workspace, preset, max_usd, name, concurrency, ask_again)
    over |= select_asked(project, deny_project, since, until) | sample_asked(sample, seed)
    by_source = {"claude_code": claude_code, "openhands": openhands, "swe_gym": swe_gym}
    sources = {key: [str(p) for p in value] for key, value in by_source.items() if value}
    if sources := sources | source_options_table(path, hub, form, idle_minutes):
        over["sources"] = sources
    if accept_terms:
        over["accept_terms"] = True
    run_all(load_settings(config, accepted_options(over, accept, rebuild)), json, yes, new_run)


@app.command()
def ingest(
    out: Out,
    paths: Recorded = None,
    hub: Hub = None,
    form: Format = None,
    idle_minutes: Idle = None,
    sample: Sample = None,
    seed: Seed = None,
    privacy: PrivacyOf = None,
    unredacted: Unredacted = False,
    forgotten: ForgottenIn = None,
    ask_again: AskAgain = None,
    jobs: Jobs = None,
    project: Project = None,
    deny_project: DenyProject = None,
    since: Since = None,
    until: Until = None,
    json: Json = False,
) -> None:
    """Read sessions, redact them and write the traces; says what was passed over and why."""
    from tracemill.flows.runtime.lean_imports import lean_imports

    with lean_imports(numpy=bool(hub)):
        from tracemill.cli.ingest import ingest_asked

        what = source_options_table(paths, hub, form, idle_minutes)
        chosen = select_asked(project, deny_project, since, until)
        options = {"unredacted": unredacted, "jobs": jobs, "ask_again": bool(ask_again)}
        ingest_asked(out, what, chosen, sample_asked(sample, seed), privacy, forgotten or (), options, json)


app.command()(replay)
app.command()(estimate)
app.command()(evaluate)


@app.command()
def pairs(config: Config = None, workspace: WorkspaceOption = None, json: Json = False) -> None:
    """Make pairs of what the workspace holds: teachers' votes and hindsight. Costs nothing."""
    from tracemill.cli.commands import handle_pairs_command
    from tracemill.flows.config.run_settings import load_settings

    handle_pairs_command(load_settings(config, source_options_overrides(workspace)), json)


@app.command()
def normalize(
    config: Config = None,
    workspace: WorkspaceOption = None,
    recipe: Annotated[Path | None, typer.Option(help="data-juicer recipe (YAML).")] = None,
    json: Json = False,
) -> None:
    """Say what a recipe would keep and drop of the workspace's pairs, by operator; writes no release."""
    from tracemill.cli.commands import normalize_only
    from tracemill.flows.config.run_settings import load_settings

    over = source_options_overrides(workspace)
    if recipe is not None:
        over["normalize"] = {"recipe": str(recipe)}
    normalize_only(load_settings(config, over), json)


@app.command()
def release(
    config: Config = None,
    workspace: WorkspaceOption = None,
    name: Name = None,
    accept: Accept = None,
    rebuild: Rebuild = False,
    json: Json = False,
) -> None:
    """Normalise the workspace's pairs and write them as a versioned dataset with its card.

    Anything private that the publish gate finds in it refuses the release.
    """
    from tracemill.cli.commands import release_only
    from tracemill.flows.config.run_settings import load_settings

    over = accepted_options(source_options_overrides(workspace, name=name), accept, rebuild)
    release_only(load_settings(config, over), json)


app.command()(publish)
app.command()(retract)
app.command()(releases)
app.command()(diff)


@app.command()
def show(
    workspace: WorkspaceOption = None,
    pairs: Annotated[int, typer.Option("--pairs", "-p", min=0, help="Also show this many pairs.")] = 0,
    source: Annotated[
        str | None,
        typer.Option(help="Only pairs of this label source: teachers, hindsight, siblings, or a package's."),
    ] = None,
    json: Json = False,
) -> None:
    """Show the last run of a workspace, the figures of its last release and, if asked, some pairs."""
    from tracemill.cli.show import show_workspace

    show_workspace(workspace, pairs, source, json)


app.command()(report)
app.command()(audit)


@app.command()
def forget(
    target: Annotated[str, typer.Argument(help="Trace id, project or any text; - reads it from stdin.")],
    config: Config = None,
    workspace: WorkspaceOption = None,
    kind: Annotated[
        str | None, typer.Option("--as", help="Take it as trace, project or value; else the first that fits.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; for automation.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="With --yes: also where more than half of all traces would go.")
    ] = False,
    json: Json = False,
) -> None:
    """Remove a trace, a project or every trace that holds a text: from tables, ledger and releases.

    It does not come back at the next run. Says what remains to be done for what was published.
    """
    from tracemill.flows.config.run_settings import load_settings
    from tracemill.flows.forget.forget_run import forget_target

    forget_target(
        load_settings(config, source_options_overrides(workspace)), target, kind, yes, everything, json
    )


app.command()(train)
app.command()(serve)
app.add_typer(privacy_app, name="privacy")
app.add_typer(formats_app, name="formats")


@app.command()
def doctor(
    config: Config = None,
    workspace: WorkspaceOption = None,
    live: Annotated[
        bool,
        typer.Option("--live", help="Call each teacher once and try the Hub; spends at most $0.05 in all."),
    ] = False,
    yes: Yes = False,
) -> None:
    """Check this machine and a configuration: packages, keys, folders. Without --live it sends nothing."""
    from tracemill.cli.doctor import run_doctor_checks
    from tracemill.flows.config.run_settings import load_settings

    settings = load_settings(config, source_options_overrides(workspace))
    raise typer.Exit(run_doctor_checks(settings, live, yes))


app.command("simulate-openrouter")(simulate_openrouter)


def _open_closed_streams() -> None:
    """Opens the null device where stdin, stdout or stderr is closed: the next file would take its number,
    and be written to as a stream."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(opened := os.open(os.devnull, os.O_RDWR), number)
            if opened != number:
                os.close(opened)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 (kept open)


def main() -> None:
    """Entry point of the console script."""
    _open_closed_streams()
    make_files_private()
    # `python -m`, as Prefect starts its server and its runs, would import what lies in the working folder.
    os.environ.setdefault("PYTHONSAFEPATH", "1")
    try:
        with remembered():
            app()
    except TracemillError as error:
        typer.echo(f"tracemill: {error}", err=True)
        sys.exit(2)
    except SystemExit as stop:  # typer ends an interrupted command with 130 and without a word
        if stop.code == EXIT_CODE:
            goes_on = "the same command goes on and pays nothing twice"
            typer.echo(f"tracemill: interrupted; {getattr(stop, 'what', goes_on)}", err=True)
        raise
