"""Options that several commands share beside those that say what is read."""

from pathlib import Path
from typing import Annotated

import typer

Config = Annotated[Path | None, typer.Argument(help="Run configuration (TOML); flags go over it.")]
WorkspaceOption = Annotated[
    Path | None, typer.Option("--workspace", "-w", help="Folder of tables, ledger and releases.")
]
ClaudeCode = Annotated[
    list[Path] | None, typer.Option(help="Claude Code session file or folder; repeatable.")
]
OpenHands = Annotated[list[Path] | None, typer.Option("--openhands", help="OpenHands output or folder.")]
SweGym = Annotated[list[Path] | None, typer.Option(help="SWE-Gym rows (Parquet, JSONL, JSON) or folder.")]
Preset = Annotated[str | None, typer.Option(help="Teachers by name: open, frontier, simulated or none.")]
MaxUsd = Annotated[float | None, typer.Option(help="Hard cap on the spending of this run, in USD.")]
Name = Annotated[str | None, typer.Option(help="Name of the release.")]
Rebuild = Annotated[
    bool, typer.Option("--rebuild", help="Choose rows and splits anew, as a new major version.")
]
Release = Annotated[
    str | None,
    typer.Argument(help="NAME[@VERSION] or VERSION of the workspace, or a folder; else the last."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Accept what would leave this machine.")]
AskAgain = Annotated[
    bool | None,
    typer.Option("--ask-again", help="Read and ask anew what was redacted otherwise than today."),
]
NewRun = Annotated[
    bool, typer.Option("--new-run", help="Take up no unfinished run: a new one, under a cap of its own.")
]
AcceptTerms = Annotated[
    bool, typer.Option("--accept-terms", help="Ask teachers too whose terms restrict training on answers.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout instead of the table.")]
