"""`tracemill release`: write, list, compare, publish, judge and retract releases."""

from dataclasses import asdict
from json import dumps as to_json
from pathlib import Path
from typing import Annotated, Any

import typer

from tracemill.cli.options import (
    AllowFinding,
    ConfigArgument,
    DeleteYes,
    HubDataset,
    Json,
    Name,
    Quiet,
    Rebuild,
    RedactFindings,
    Release,
    WorkspaceOption,
)
from tracemill.cli.overrides import release_overrides, run_overrides
from tracemill.records.errors import ConfigError

release_app = typer.Typer(help="Write, compare, publish and retract releases.", no_args_is_help=True)
Version = Annotated[str, typer.Argument(help="NAME[@VERSION], VERSION or a folder.")]
_WRITTEN = {
    "dropped",
    "pairs released",
    "deciding pairs",
    "labels released",
    "labels not released",
    "label warnings",
    "terms",
    "splits",
    "stale answers",
    "privacy check",
    "release",
}
"""Rows of the closing table that `write` prints."""


@release_app.command()
def write(
    config: ConfigArgument = None,
    workspace: WorkspaceOption = None,
    name: Name = None,
    rebuild: Rebuild = False,
    allow_finding: AllowFinding = None,
    redact_findings: RedactFindings = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Normalise pairs and write a new version with its card.

    The publish gate refuses a release that holds private data.
    """
    from tracemill.cli.commands import say, say_path
    from tracemill.flows.config.run_settings import load_settings
    from tracemill.flows.run_state.closing_table import closing_table_rows
    from tracemill.flows.run_state.run_summary import Summary
    from tracemill.flows.workspace_commands import release_workspace

    over = release_overrides(run_overrides(workspace, name=name), allow_finding, rebuild, redact_findings)
    outcome = release_workspace(load_settings(config, over))
    if quiet and not json:
        say_path(outcome.path)
        return
    rows = closing_table_rows(Summary(), None, [], outcome)
    say([row for row in rows if row[0] in _WRITTEN], "tracemill release write", asdict(outcome), json)


@release_app.command("list")
def list_versions(hub: HubDataset = None, workspace: WorkspaceOption = None, json: Json = False) -> None:
    """List the versions in the workspace and, with --hub, on the Hub."""
    from tracemill.cli.commands import say
    from tracemill.flows.publish.list_versions import list_releases, release_rows
    from tracemill.flows.run_state.run_records import read_workspace

    lines = list_releases(read_workspace(workspace), hub)
    say(release_rows(lines), "tracemill release list", {"releases": lines}, json)


@release_app.command()
def diff(before: Version, after: Version, workspace: WorkspaceOption = None, json: Json = False) -> None:
    """Show which rows and figures changed between two versions."""
    from tracemill.cli.commands import say
    from tracemill.flows.publish.list_versions import diff_listed_versions, listed_version_diff_rows
    from tracemill.flows.run_state.run_records import read_workspace

    record = diff_listed_versions(read_workspace(workspace), before, after)
    title = f"tracemill release diff {record['before']} {record['after']}"
    say(listed_version_diff_rows(record), title, record, json)


@release_app.command()
def publish(
    config: ConfigArgument = None,
    release: Release = None,
    hub: HubDataset = None,
    public: Annotated[
        bool, typer.Option("--public", help="Create a new dataset as public instead of private.")
    ] = False,
    accept_drift: Annotated[
        bool, typer.Option("--accept-drift", help="Publish although figures moved beyond [release.drift].")
    ] = False,
    allow_finding: AllowFinding = None,
    workspace: WorkspaceOption = None,
    json: Json = False,
) -> None:
    """Push a version to the Hub as one commit and one tag.

    The publish gate checks it again before anything is uploaded.
    """
    from tracemill.cli.commands import say
    from tracemill.flows.config.run_settings import load_settings
    from tracemill.flows.publish.publish_run import PublishOptions, publish_release

    over: dict[str, Any] = run_overrides(workspace)
    if hub is not None:
        over["release"] = {"hub": hub}
    settings = load_settings(config, release_overrides(over, allow_finding))
    if settings.release.hub is None:
        raise ConfigError("no dataset of the Hub is named", do="give --hub OWNER/NAME or set release.hub")
    done = publish_release(settings, release, PublishOptions(settings.release.hub, public, accept_drift))
    record = {**asdict(done.pushed), "said": done.said, "gate": done.gate, "audit_commit": done.audit_commit}
    rows = [("hub", done.line()), ("privacy check", done.gate), ("notes", "\n".join(done.said))]
    say([row for row in rows if row[1]], "tracemill release publish", record, json)


@release_app.command()
def report(release: Release = None, workspace: WorkspaceOption = None, json: Json = False) -> None:
    """Write a version's report.html and report.json again."""
    from tracemill.data_cards.model.find_release import find_release
    from tracemill.data_cards.model.report_model import REPORT_PAGE
    from tracemill.data_cards.report.write_report import write_report_from_folder
    from tracemill.flows.run_state.run_records import releases_beside_run_records

    folder = find_release(release, releases_beside_run_records(workspace)).folder
    figures = write_report_from_folder(folder)
    typer.echo(to_json(figures.model_dump(mode="json")) if json else folder / REPORT_PAGE)


@release_app.command()
def audit(
    release: Release = None,
    workspace: WorkspaceOption = None,
    answers: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Read the keys a, r, u, q from a file; - is stdin."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Seed of the sample.", show_default="random")
    ] = None,
    json: Json = False,
) -> None:
    """Judge 50 random pairs of a version by hand, one key each.

    The precision goes on its card and report. The same command continues an audit.
    """
    from tracemill.flows.release.audit_run import run_audit

    run_audit(release, workspace, answers, seed, json)


@release_app.command()
def retract(
    release: Annotated[
        str, typer.Option("--release", metavar="RELEASE", help="NAME@VERSION or VERSION.", show_default=False)
    ],
    config: ConfigArgument = None,
    hub: HubDataset = None,
    yes: DeleteYes = False,
    workspace: WorkspaceOption = None,
    json: Json = False,
) -> None:
    """Retract a published version from the Hub. This cannot be undone."""
    from tracemill.cli.commands import say
    from tracemill.flows.config.run_settings import load_settings
    from tracemill.flows.publish.retract_run import RetractOptions, retract_release, retraction_rows

    settings = load_settings(config, run_overrides(workspace))
    done = retract_release(settings, RetractOptions(release, hub, yes))
    record = {"retracted": [each._asdict() for each in done]}
    say(retraction_rows(done), "tracemill release retract", record, json)
