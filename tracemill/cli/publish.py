"""`tracemill publish`, `tracemill retract`, `tracemill releases` and `tracemill diff` on the command line."""

from pathlib import Path
from typing import Annotated, Any

import typer

from tracemill.cli.options import Json, WorkspaceOption
from tracemill.cli.privacy import Accept

ToPublish = Annotated[
    str | None,
    typer.Argument(
        help="NAME[@VERSION] or VERSION of the workspace, or a folder; else that of the only name."
    ),
]
HubRepoOption = Annotated[str | None, typer.Option("--hub", help="Dataset of the Hub, OWNER/NAME.")]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="Run configuration (TOML) whose [release] and [privacy] hold.")
]
Version = Annotated[str, typer.Argument(help="NAME[@VERSION] or VERSION of the workspace, or a folder.")]


def publish(
    release: ToPublish = None,
    hub: HubRepoOption = None,
    public: Annotated[
        bool, typer.Option("--public", help="Make a new repository public; else private.")
    ] = False,
    accept_drift: Annotated[
        bool, typer.Option("--accept-drift", help="Publish a release that is far from the last one.")
    ] = False,
    accept: Accept = None,
    config: ConfigOption = None,
    workspace: WorkspaceOption = None,
    json: Json = False,
) -> None:
    """Push a release to the Hub: one commit with everything in it, and the version as its tag.

    The same content is never pushed twice. The publish gate judges it again before anything is uploaded.
    """
    from tracemill.cli.commands import publish_only
    from tracemill.cli.source_options import accepted_options, source_options_overrides
    from tracemill.flows.config.run_settings import load_settings

    over: dict[str, Any] = source_options_overrides(workspace)
    if hub is not None:
        over["release"] = {"hub": hub}
    publish_only(load_settings(config, accepted_options(over, accept)), release, public, accept_drift, json)


def retract(
    release: Annotated[
        str, typer.Argument(help="NAME@VERSION or VERSION; it may be gone from the workspace.")
    ],
    hub: HubRepoOption = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete it: it cannot be undone.")] = False,
    config: ConfigOption = None,
    workspace: WorkspaceOption = None,
    json: Json = False,
) -> None:
    """Take a published version back: its files, its tag and the history of main. Says what remains."""
    from tracemill.cli.commands import handle_retract_command
    from tracemill.cli.source_options import source_options_overrides
    from tracemill.flows.config.run_settings import load_settings

    settings = load_settings(config, source_options_overrides(workspace))
    handle_retract_command(settings, release, hub, yes, json)


def releases(
    hub: HubRepoOption = None,
    workspace: WorkspaceOption = None,
    json: Json = False,
) -> None:
    """List the versions of the workspace's releases, and with --hub those of a dataset there."""
    from tracemill.cli.commands import handle_releases_command

    handle_releases_command(workspace, hub, json)


def diff(
    before: Version,
    after: Version,
    workspace: WorkspaceOption = None,
    json: Json = False,
) -> None:
    """Say what changed from one version to another: rows added, removed and changed, and figures."""
    from tracemill.cli.commands import handle_diff_command

    handle_diff_command(workspace, before, after, json)
