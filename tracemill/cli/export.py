"""`tracemill export` on the command line."""

from pathlib import Path
from typing import Annotated

import typer

from tracemill.cli.options import ConfigArgument, Json, WorkspaceOption
from tracemill.cli.overrides import run_overrides


def export(
    config: ConfigArgument = None,
    form: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="messages, atif or sts.")
    ] = "messages",
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="New or empty folder for the files.")
    ] = Path("exported"),
    workspace: WorkspaceOption = None,
    json: Json = False,
) -> None:
    """Write stored traces as chat rows, ATIF trajectories or session traces of the Hub. Sends nothing."""
    from tracemill.cli.commands import export_command
    from tracemill.flows.config.run_settings import load_settings

    export_command(load_settings(config, run_overrides(workspace)), form, out, json)
