"""`tracemill privacy` on the command line. Exit codes: 0 clean or told, 1 something private, 2 bad input."""

from pathlib import Path
from typing import Annotated

import typer

privacy_app = typer.Typer(
    help="Look for what is private in any file or folder; changes nothing.", no_args_is_help=True
)
Accept = Annotated[
    list[str] | None, typer.Option(help="Fingerprint of a finding the publish gate lets pass; repeatable.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout instead of the list.")]
AnyFile = Annotated[Path, typer.Argument(help="A file, a folder, a release or a workspace.")]
ListsOf = Annotated[
    Path | None,
    typer.Option("--privacy", help="A run configuration whose [privacy] lists and files hold."),
]
KeyWorkspace = Annotated[
    Path | None,
    typer.Option("--workspace", "-w", help="Workspace whose key and accepted findings hold."),
]


@privacy_app.command()
def scan(
    path: AnyFile,
    workspace: KeyWorkspace = None,
    privacy: ListsOf = None,
    accept: Accept = None,
    json: Json = False,
) -> None:
    """The publish gate's two opinions on anything; exit code 1 where something private is found."""
    from tracemill.flows.privacy_scan import scan_path

    raise typer.Exit(scan_path(path, workspace, accept or [], json, privacy))


@privacy_app.command()
def diff(
    path: AnyFile,
    workspace: KeyWorkspace = None,
    privacy: ListsOf = None,
    show_values: Annotated[
        bool, typer.Option("--show-values", help="Show the values themselves, on a terminal alone.")
    ] = False,
    excerpts: Annotated[int, typer.Option(help="Lines shown of each file at most.")] = 10,
    json: Json = False,
) -> None:
    """What redaction would change: counts by type and lines with values masked; writes nothing."""
    from tracemill.flows.privacy_scan import run_privacy_scan_diff

    run_privacy_scan_diff(path, workspace, show_values, excerpts, json, privacy)
