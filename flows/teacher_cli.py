"""`tracemill replay` and `tracemill estimate` on the command line."""

from typing import Annotated

import typer

from flows.cli_options import AskAgain, Config, Json, MaxUsd, Preset, WorkspaceOption, Yes
from flows.cli_sources import DenyProject, Project, Since, Until, overrides_asked, select_asked

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
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Ask the teachers at the steps of the workspace's traces, under the cap; nothing is paid twice."""
    from flows.settings import load_settings

    over = overrides_asked(workspace, preset, max_usd, None, concurrency, ask_again)
    over |= select_asked(project, deny_project, since, until)
    settings = load_settings(config, over)
    if dry_run:
        from flows.commands import dry_run_only

        dry_run_only(settings, json)
        return
    from flows.commands import replay_only

    replay_only(settings, json, yes)


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
    from flows.commands import estimate_only
    from flows.settings import load_settings

    over = overrides_asked(workspace, preset, max_usd, None, concurrency, ask_again)
    over |= select_asked(project, deny_project, since, until)
    estimate_only(load_settings(config, over), refresh, json)
