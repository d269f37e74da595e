"""`tracemill privacy`: scan, redaction diff and forget."""

from pathlib import Path
from typing import Annotated

import typer

from tracemill.cli.options import (
    AllowFinding,
    ConfigArgument,
    DeleteYes,
    Json,
    PrivacyConfig,
    WorkspaceOption,
)
from tracemill.cli.overrides import run_overrides

privacy_app = typer.Typer(
    help="Find private data in any file; remove it from a workspace.", no_args_is_help=True
)
AnyPath = Annotated[Path, typer.Argument(help="File, folder, release or workspace.")]
KeyWorkspace = Annotated[
    Path | None,
    typer.Option("--workspace", "-w", metavar="DIR", help="Workspace whose key and allowed findings apply."),
]


@privacy_app.command()
def scan(
    path: AnyPath,
    workspace: KeyWorkspace = None,
    privacy: PrivacyConfig = None,
    allow_finding: AllowFinding = None,
    json: Json = False,
) -> None:
    """Scan files as the publish gate does; change nothing.

    Exit code 0: nothing found, 1: private data found, 3: something could not be read.
    """
    from tracemill.flows.privacy_scan import scan_path

    raise typer.Exit(scan_path(path, workspace, allow_finding or [], json, privacy))


@privacy_app.command()
def diff(
    path: AnyPath,
    workspace: KeyWorkspace = None,
    privacy: PrivacyConfig = None,
    show_values: Annotated[
        bool, typer.Option("--show-values", help="Show values unmasked; on a terminal only.")
    ] = False,
    excerpts: Annotated[int, typer.Option(metavar="N", help="Maximum number of lines per file.")] = 10,
    json: Json = False,
) -> None:
    """Show what redaction would change in files; write nothing."""
    from tracemill.flows.privacy_scan import run_privacy_scan_diff

    run_privacy_scan_diff(path, workspace, show_values, excerpts, json, privacy)


@privacy_app.command()
def forget(
    target: Annotated[str, typer.Argument(help="Trace id, project or any text; - reads stdin.")],
    config: ConfigArgument = None,
    workspace: WorkspaceOption = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--as", metavar="KIND", help="Take TARGET as trace, project or value.", show_default="first match"
        ),
    ] = None,
    yes: DeleteYes = False,
    everything: Annotated[
        bool, typer.Option("--all", help="With --yes: allow removing more than half of all traces.")
    ] = False,
    json: Json = False,
) -> None:
    """Remove a trace, a project or a text from a workspace.

    A text takes every trace that holds it. Later runs keep it out.
    """
    from tracemill.cli.commands import say
    from tracemill.flows.config.run_settings import load_settings
    from tracemill.flows.forget.forget_output import forget_output_rows
    from tracemill.flows.forget.forget_run import forget_target

    record = forget_target(load_settings(config, run_overrides(workspace)), target, kind, yes, everything)
    say(forget_output_rows(record), "tracemill privacy forget", record, json)
