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
    if not dry_run:
        from tracemill.cli.commands import replay_command

        replay_command(settings, json, yes, fresh)
        return
    from tracemill.cli.commands import plain_value, say
    from tracemill.cli.estimate_output import estimate_later_text
    from tracemill.flows.estimate.dry_run import write_requests

    record = write_requests(settings)
    rows = [("requests", plain_value(record["requests"])), ("written to", record["path"])]
    if long := {name: count for name, count in record["too_long"].items() if count}:
        rows.insert(1, ("longer than context", plain_value(long)))
    if record["decided_later"]:
        rows.insert(1, ("decided later", estimate_later_text(record["decided_later"])))
    if record["send_nothing"]:
        rows.append(("send nothing", plain_value(record["send_nothing"])))
    if record["not_shown"]:
        rows.append(("not shown", f"{plain_value(record['not_shown'])}: requests in a form of their own"))
    say(rows, "tracemill replay --dry-run", record, json)


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
    from tracemill.cli.commands import say
    from tracemill.cli.estimate_output import estimate_rows
    from tracemill.flows.estimate.estimate_cost import estimate_cost

    asked = run_overrides(workspace, preset, max_usd, None, concurrency, reredact, gate_share=gate_share)
    chosen = select_overrides(project, deny_project, since, until)
    found = estimate_cost(_settings(config, asked, chosen), refresh)
    say(estimate_rows(found), "tracemill estimate", found.to_json(), json)


def _settings(config: Path | None, *overrides: dict[str, Any]) -> "RunSettings":
    """Load the configuration and apply these overrides."""
    from tracemill.flows.config.run_settings import load_settings

    return load_settings(config, {key: value for table in overrides for key, value in table.items()})
