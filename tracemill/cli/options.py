"""Arguments and options that several commands share, each declared once."""

from pathlib import Path
from typing import Annotated, Any

import typer

ConfigArgument = Annotated[
    Path | None, typer.Argument(help="Run configuration (TOML); options override it.", show_default=False)
]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Run configuration (TOML); options override it."),
]


def _workspace(given: str) -> Path:
    from tracemill.flows.config.shared_workspace import place_workspace

    return place_workspace(given)


WorkspaceOption = Annotated[
    Path | None,
    typer.Option(
        "--workspace",
        "-w",
        metavar="DIR",
        help="Workspace folder or URL.",
        show_default="tracemill-workspace",
        parser=_workspace,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation before data is sent.")]
DeleteYes = Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation before data is deleted.")]


def _silence(quiet: bool) -> bool:
    if quiet:
        from tracemill.flows.runtime.progress import hide_progress

        hide_progress()
    return quiet


def _quiet(text: str) -> Any:
    return typer.Option("--quiet", "-q", callback=_silence, help=text)


Quiet = Annotated[bool, _quiet("Print errors and the release's path alone.")]
QuietStage = Annotated[bool, _quiet("Print errors alone.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print every figure of the closing table.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Start fresh instead of resuming an unfinished run.")]

# Sources
Paths = Annotated[
    list[str] | None,
    typer.Option("--path", metavar="PATH", help="Session file, folder or Parquet URL; repeatable."),
]
ClaudeCode = Annotated[
    list[Path] | None, typer.Option(metavar="PATH", help="Claude Code session file or folder; repeatable.")
]
Codex = Annotated[
    list[Path] | None, typer.Option(metavar="PATH", help="Codex session file or folder; repeatable.")
]
OpenHands = Annotated[
    list[Path] | None,
    typer.Option("--openhands", metavar="PATH", help="OpenHands output or folder; repeatable."),
]
SweGym = Annotated[
    list[Path] | None, typer.Option(metavar="PATH", help="SWE-Gym rows or folder; repeatable.")
]
HubSources = Annotated[
    list[str] | None,
    typer.Option(
        "--hub", metavar="DATASET", help="Hub dataset OWNER/NAME[@REV][:[CONFIG/]SPLIT]; repeatable."
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format", metavar="NAME", help="Read all sources as this format.", show_default="by content"
    ),
]
MinAge = Annotated[
    float | None,
    typer.Option(
        "--min-age",
        metavar="MINUTES",
        min=0,
        help="Skip sessions modified in the last N minutes.",
        show_default="15",
    ),
]
Sample = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Read a stratified sample of N sessions.", show_default="all"),
]
SampleSeed = Annotated[
    int | None, typer.Option("--seed", metavar="N", help="Seed of the sample.", show_default="0")
]
Project = Annotated[
    list[str] | None,
    typer.Option(metavar="GLOB", help="Use only these projects; repeatable.", show_default="all"),
]
DenyProject = Annotated[
    list[str] | None, typer.Option(metavar="GLOB", help="Leave out these projects; repeatable.")
]
Since = Annotated[str | None, typer.Option(metavar="DATE", help="First day of sessions, YYYY-MM-DD (UTC).")]
Until = Annotated[str | None, typer.Option(metavar="DATE", help="Last day of sessions, YYYY-MM-DD (UTC).")]
Reredact = Annotated[
    bool,
    typer.Option("--reredact", help="Re-read and re-ask steps whose redaction rules changed."),
]

# Teachers
Preset = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Teachers: open, frontier, simulated or none.", show_default="none"),
]
MaxUsd = Annotated[float | None, typer.Option(metavar="USD", help="Hard cap on what the run spends.")]
Concurrency = Annotated[
    int | None, typer.Option(metavar="N", help="Maximum number of calls in flight.", show_default="32")
]
AcceptTerms = Annotated[
    bool, typer.Option("--accept-terms", help="Allow teachers whose terms restrict training.")
]

# Releases and privacy
Name = Annotated[str | None, typer.Option(metavar="NAME", help="Name of the release.", show_default="traces")]
Rebuild = Annotated[bool, typer.Option("--rebuild", help="Rebuild splits from scratch (new major version).")]
AllowFinding = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-finding", metavar="ID", help="Allow this privacy finding (fingerprint); repeatable."
    ),
]
RedactFindings = Annotated[
    bool,
    typer.Option("--redact-findings", help="Redact what the privacy check finds, and go on."),
]
Release = Annotated[
    str | None,
    typer.Option(
        "--release",
        metavar="RELEASE",
        help="NAME[@VERSION], VERSION or a folder.",
        show_default="the newest",
    ),
]
HubDataset = Annotated[str | None, typer.Option("--hub", metavar="OWNER/NAME", help="Dataset on the Hub.")]
PrivacyConfig = Annotated[
    Path | None,
    typer.Option("--privacy", metavar="FILE", help="Configuration whose [privacy] table applies."),
]
