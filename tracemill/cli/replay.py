"""`tracemill replay` and `tracemill estimate` on the command line."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tracemill.cli.options import (
    AcceptTerms,
    Concurrency,
    ConfigArgument,
    DenyProject,
    Fresh,
    GateShare,
    Json,
    MaxUsd,
    Preset,
    Project,
    QuietStage,
    Reredact,
    Since,
    Until,
    WorkspaceOption,
    Yes,
)
from tracemill.cli.overrides import run_overrides, select_overrides

if TYPE_CHECKING:
    from tracemill.flows.config.run_settings import RunSettings


def replay(
    config: ConfigArgument = None,
    workspace: WorkspaceOption = None,
    preset: Preset = None,
    max_usd: MaxUsd = None,
    concurrency: Concurrency = None,
    gate_share: GateShare = None,
    project: Project = None,
    deny_project: DenyProject = None,
    since: Since = None,
    until: Until = None,
    accept_terms: AcceptTerms = False,
    reredact: Reredact = False,
    fresh: Fresh = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write the requests to a file; send and spend nothing.")
    ] = False,
    yes: Yes = False,
    quiet: QuietStage = False,
    json: Json = False,
) -> None:
    """Ask teachers at the steps of stored traces.

    The cap holds, and nothing is paid twice.
    """
    asked = run_overrides(workspace, preset, max_usd, None, concurrency, reredact, accept_terms, gate_share)
    settings = _settings(config, asked, select_overrides(project, deny_project, since, until))
    if dry_run:
        from tracemill.cli.commands import dry_run_command

        dry_run_command(settings, json)
        return
    from tracemill.cli.commands import replay_command

    replay_command(settings, json, yes, fresh)


def estimate(
    config: ConfigArgument = None,
    workspace: WorkspaceOption = None,
    preset: Preset = None,
    max_usd: MaxUsd = None,
    concurrency: Concurrency = None,
    gate_share: GateShare = None,
    project: Project = None,
    deny_project: DenyProject = None,
    since: Since = None,
    until: Until = None,
    reredact: Reredact = False,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Read prices from the servers first; sends no text.")
    ] = False,
    json: Json = False,
) -> None:
    """Predict calls, cost and time of a replay. Spends nothing, works offline."""
    from tracemill.cli.commands import estimate_command

    asked = run_overrides(workspace, preset, max_usd, None, concurrency, reredact, gate_share=gate_share)
    chosen = select_overrides(project, deny_project, since, until)
    estimate_command(_settings(config, asked, chosen), refresh, json)


def _settings(config: Path | None, *overrides: dict[str, Any]) -> "RunSettings":
    """Load the configuration and apply these overrides."""
    from tracemill.flows.config.run_settings import load_settings

    return load_settings(config, {key: value for table in overrides for key, value in table.items()})
