"""`tracemill export` on the command line."""

import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

from tracemill.cli.options import ConfigArgument, Json, WorkspaceOption
from tracemill.cli.overrides import run_overrides


def export(
    config: ConfigArgument = None,
    form: Annotated[
        Literal["messages", "atif", "sts"],
        typer.Option("--format", help="Chat rows, ATIF 1.7 or session traces of the Hub."),
    ] = "messages",
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="New or empty folder for the files.")
    ] = Path("exported"),
    workspace: WorkspaceOption = None,
    json: Json = False,
) -> None:
    """Write stored traces as chat rows, ATIF trajectories or session traces of the Hub. Sends nothing."""
    from tracemill.cli.commands import plain_value, program_name, say
    from tracemill.flows.config.run_settings import load_settings
    from tracemill.flows.export.export_run import export_traces

    record = export_traces(load_settings(config, run_overrides(workspace)), form, out)
    rows = [(key.replace("_", " "), plain_value(value)) for key, value in record.items()]
    say(rows, "tracemill export", record, json)
    if not json:
        typer.echo(f"next     {program_name()} privacy scan {shlex.quote(str(out))}")
