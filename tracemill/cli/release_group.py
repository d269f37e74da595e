"""`tracemill release`: write, list, compare, publish, judge and retract releases."""

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

release_app = typer.Typer(help="Write, compare, publish and retract releases.", no_args_is_help=True)
Version = Annotated[str, typer.Argument(help="NAME[@VERSION], VERSION or a folder.")]


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
    from tracemill.cli.commands import release_command
    from tracemill.flows.config.run_settings import load_settings

    over = release_overrides(run_overrides(workspace, name=name), allow_finding, rebuild, redact_findings)
    release_command(load_settings(config, over), json, quiet)


@release_app.command("list")
def list_versions(hub: HubDataset = None, workspace: WorkspaceOption = None, json: Json = False) -> None:
    """List the versions in the workspace and, with --hub, on the Hub."""
    from tracemill.cli.commands import list_command

    list_command(workspace, hub, json)


@release_app.command()
def diff(before: Version, after: Version, workspace: WorkspaceOption = None, json: Json = False) -> None:
    """Show which rows and figures changed between two versions."""
    from tracemill.cli.commands import diff_command

    diff_command(workspace, before, after, json)


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
    from tracemill.cli.commands import publish_command
    from tracemill.flows.config.run_settings import load_settings

    over: dict[str, Any] = run_overrides(workspace)
    if hub is not None:
        over["release"] = {"hub": hub}
    settings = load_settings(config, release_overrides(over, allow_finding))
    publish_command(settings, release, public, accept_drift, json)


@release_app.command()
def report(release: Release = None, workspace: WorkspaceOption = None, json: Json = False) -> None:
    """Write a version's report.html and report.json again."""
    from tracemill.flows.release.rewrite_report import write_report_again

    write_report_again(release, workspace, json)


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
    from tracemill.cli.commands import retract_command
    from tracemill.flows.config.run_settings import load_settings

    retract_command(load_settings(config, run_overrides(workspace)), release, hub, yes, json)
