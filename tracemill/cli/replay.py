"""`tracemill replay` and `tracemill estimate` on the command line."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tracemill.cli.options import (
    AcceptTerms,
    AskAgain,
    Config,
    Json,
    MaxUsd,
    NewRun,
    Preset,
    WorkspaceOption,
    Yes,
)
from tracemill.cli.source_options import (
    DenyProject,
    Project,
    Since,
    Until,
    select_asked,
    source_options_overrides,
)

if TYPE_CHECKING:
    from tracemill.flows.config.run_settings import RunSettings

Concurrency = Annotated[int | None, typer.Option(help="Calls in flight at most.")]


def replay(
    config: Config = None,
    workspace: WorkspaceOption = None,
    preset: Preset = None,
    max_usd: MaxUsd = None,
    concurrency: Concurrency = None,
    ask_again: AskAgain = None,
    project: Project = None,
    deny_project: DenyProject = None,
    since: Since = None,
    until: Until = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write the requests to a file; send and spend nothing.")
    ] = False,
    new_run: NewRun = False,
    yes: Yes = False,
    accept_terms: AcceptTerms = False,
    json: Json = False,
) -> None:
    """Ask the teachers at the steps of the workspace's traces, under the cap; nothing is paid twice."""
    asked = source_options_overrides(workspace, preset, max_usd, None, concurrency, ask_again)
    if accept_terms:
        asked["accept_terms"] = True
    settings = _settings(config, asked, select_asked(project, deny_project, since, until))
    if dry_run:
        from tracemill.cli.commands import handle_dry_run_command

        handle_dry_run_command(settings, json)
        return
    from tracemill.cli.commands import replay_only

    replay_only(settings, json, yes, new_run)


def estimate(
    config: Config = None,
    workspace: WorkspaceOption = None,
    preset: Preset = None,
    max_usd: MaxUsd = None,
    concurrency: Concurrency = None,
    ask_again: AskAgain = None,
    project: Project = None,
    deny_project: DenyProject = None,
    since: Since = None,
    until: Until = None,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Read prices from the servers first; sends no text.")
    ] = False,
    json: Json = False,
) -> None:
    """Say what a replay would ask, cost and take, by teacher and in all; spends nothing, works offline."""
    from tracemill.cli.commands import estimate_only

    asked = source_options_overrides(workspace, preset, max_usd, None, concurrency, ask_again)
    chosen = select_asked(project, deny_project, since, until)
    estimate_only(_settings(config, asked, chosen), refresh, json)


def _settings(config: Path | None, *flags: dict[str, Any]) -> "RunSettings":
    """The configuration with the flags over it, a table each."""
    from tracemill.flows.config.run_settings import load_settings

    return load_settings(config, {key: value for table in flags for key, value in table.items()})
