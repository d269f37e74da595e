"""The command line. Starts fast: what a command needs is imported when it runs.

Exit codes: 0 done, 1 no teacher answered or a training failed, 2 bad input (one line on stderr), 4 the run
had spent its cap before and asked nothing, 130 interrupted.
"""

import atexit
import gc
import os
import sys
from typing import Annotated

import typer

from tracemill.cli.dev_group import dev_app
from tracemill.cli.env_group import env_app
from tracemill.cli.evaluate import evaluate
from tracemill.cli.export import export
from tracemill.cli.formats_group import formats_app
from tracemill.cli.grouped_help import GroupedHelp
from tracemill.cli.ingest import ingest
from tracemill.cli.init import init
from tracemill.cli.judge import judge
from tracemill.cli.options import (
    AcceptTerms,
    AllowFinding,
    ClaudeCode,
    Codex,
    Concurrency,
    ConfigArgument,
    DenyProject,
    Format,
    Fresh,
    GateShare,
    HubSources,
    Json,
    MaxUsd,
    MinAge,
    Name,
    OpenHands,
    Paths,
    Preset,
    Project,
    Quiet,
    QuietStage,
    Rebuild,
    RedactFindings,
    Reredact,
    Sample,
    SampleSeed,
    Since,
    SweGym,
    Until,
    Verbose,
    WorkspaceOption,
    Yes,
)
from tracemill.cli.overrides import (
    agent_overrides,
    release_overrides,
    run_overrides,
    sample_overrides,
    select_overrides,
    source_overrides,
)
from tracemill.cli.privacy_group import privacy_app
from tracemill.cli.release_group import release_app
from tracemill.cli.replay import estimate, replay
from tracemill.cli.train import deploy, eval_model, schedule, train
from tracemill.flows.runtime.interrupts import EXIT_CODE, remember_interrupts
from tracemill.records.errors import TracemillError
from tracemill.records.storage.atomic_files import make_files_private

app = typer.Typer(
    name="tracemill",
    cls=GroupedHelp,
    no_args_is_help=True,
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
    """Turn recorded coding-agent sessions into preference datasets."""


@app.command()
def run(
    config: ConfigArgument = None,
    claude_code: ClaudeCode = None,
    codex: Codex = None,
    openhands: OpenHands = None,
    swe_gym: SweGym = None,
    path: Paths = None,
    hub: HubSources = None,
    form: Format = None,
    min_age: MinAge = None,
    sample: Sample = None,
    seed: SampleSeed = None,
    project: Project = None,
    deny_project: DenyProject = None,
    since: Since = None,
    until: Until = None,
    workspace: WorkspaceOption = None,
    preset: Preset = None,
    max_usd: MaxUsd = None,
    concurrency: Concurrency = None,
    gate_share: GateShare = None,
    accept_terms: AcceptTerms = False,
    reredact: Reredact = False,
    fresh: Fresh = False,
    name: Name = None,
    rebuild: Rebuild = False,
    allow_finding: AllowFinding = None,
    redact_findings: RedactFindings = False,
    yes: Yes = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    json: Json = False,
) -> None:
    """Read sessions, ask teachers, make pairs and write a release.

    Without teachers nothing is sent and nothing is spent.
    """
    from tracemill.cli.commands import run_command
    from tracemill.flows.config.run_settings import load_settings

    over = run_overrides(workspace, preset, max_usd, name, concurrency, reredact, accept_terms, gate_share)
    over |= select_overrides(project, deny_project, since, until) | sample_overrides(sample, seed)
    sources = agent_overrides(claude_code=claude_code, codex=codex, openhands=openhands, swe_gym=swe_gym)
    if sources := sources | source_overrides(path, hub, form, min_age):
        over["sources"] = sources
    settings = load_settings(config, release_overrides(over, allow_finding, rebuild, redact_findings))
    run_command(settings, json, yes, fresh, "quiet" if quiet else "verbose" if verbose else "normal")


app.command()(ingest)
app.command()(replay)


@app.command()
def label(
    config: ConfigArgument = None,
    workspace: WorkspaceOption = None,
    quiet: QuietStage = False,
    json: Json = False,
) -> None:
    """Make pairs from teachers' votes and self-repairs. Costs nothing."""
    from tracemill.cli.commands import say
    from tracemill.flows.config.run_settings import load_settings
    from tracemill.flows.run_state.closing_table import count_lines
    from tracemill.flows.run_state.closing_words import in_plain_words
    from tracemill.flows.workspace_commands import label_workspace

    summary = label_workspace(load_settings(config, run_overrides(workspace)))
    rows = [
        ("votes", count_lines(in_plain_words(summary.verdicts)) or "none"),
        ("self-repairs not used", count_lines(summary.hindsight_skips) or "none"),
        ("pairs made", count_lines(in_plain_words(summary.pairs)) or "none"),
    ]
    if summary.pair_skips:
        rows.insert(2, ("other pairs not made", count_lines(dict(summary.pair_skips))))
    say(rows, "tracemill label", summary.to_json(), json)


app.command()(estimate)


@app.command()
def status(
    workspace: WorkspaceOption = None,
    pairs: Annotated[
        int, typer.Option("--pairs", "-p", metavar="N", min=0, help="Show N pairs instead.")
    ] = 0,
    source: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Show only pairs of this label source, such as teachers."),
    ] = None,
    nights: Annotated[int, typer.Option(metavar="N", min=0, help="Show the last N runs.")] = 7,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show every figure of the last run, and the report.")
    ] = False,
    json: Json = False,
) -> None:
    """Show the last runs and the releases, or some pairs."""
    from tracemill.cli.workspace_status import show_workspace

    show_workspace(workspace, pairs, source, nights, json, verbose)


app.command()(export)
app.command()(init)
app.command()(train)
app.command()(eval_model)
app.command()(evaluate)
app.command()(judge)


@app.command()
def doctor(
    config: ConfigArgument = None,
    workspace: WorkspaceOption = None,
    live: Annotated[
        bool, typer.Option("--live", help="Also call each teacher once and try the Hub ($0.05 at most).")
    ] = False,
    yes: Yes = False,
) -> None:
    """Check this machine, a configuration and the services it names. Sends no text without --live."""
    from tracemill.cli.doctor import run_doctor_checks
    from tracemill.flows.config.run_settings import load_settings

    settings = load_settings(config, run_overrides(workspace))
    raise typer.Exit(run_doctor_checks(settings, live, yes))


@app.command()
def notify(
    config: ConfigArgument = None,
    test: Annotated[bool, typer.Option("--test", help="Also send a test message to each block.")] = False,
) -> None:
    """Have Prefect send the messages of [notifications]."""
    from tracemill.cli.commands import quiet_prefect
    from tracemill.flows.config.run_settings import load_settings

    settings = load_settings(config, {}).notifications
    quiet_prefect()
    from tracemill.flows.notifications import apply_notifications, send_test_message

    for line in apply_notifications(settings) or ["no messages"]:
        typer.echo(line)
    for block in settings.blocks if test else ():
        send_test_message(block)
        typer.echo(f"test message sent: {block}")


app.command()(schedule)
app.command()(deploy)
app.add_typer(release_app, name="release")
app.add_typer(privacy_app, name="privacy")
app.add_typer(formats_app, name="formats")
app.add_typer(env_app, name="env")
app.add_typer(dev_app, name="dev")


def _open_closed_streams() -> None:
    """Open the null device in place of a closed stdin, stdout or stderr.

    Otherwise the next opened file would get its number, and stream output would be written to it.
    """
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
    """Run the console script."""
    _open_closed_streams()
    make_files_private()
    # `python -m`, as Prefect starts its server and its runs, would import what lies in the working folder.
    os.environ.setdefault("PYTHONSAFEPATH", "1")
    atexit.register(gc.freeze)  # else the end of the process searches all modules for garbage: .1 s
    try:
        with remember_interrupts():
            app()
    except TracemillError as error:
        typer.echo(f"tracemill: {error}", err=True)
        sys.exit(2)
    except SystemExit as stop:  # typer ends an interrupted command with 130 and without a word
        if stop.code == EXIT_CODE:
            goes_on = "the same command resumes and pays nothing twice"
            typer.echo(f"tracemill: interrupted; {getattr(stop, 'what', goes_on)}", err=True)
        raise
