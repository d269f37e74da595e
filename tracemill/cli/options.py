"""Arguments and options that several commands share, each declared once."""

from pathlib import Path
from typing import Annotated, Any

import typer

from tracemill.records.errors import ConfigError

CONFIGURATION = Path("tracemill.toml")
"""The configuration that `tracemill init` writes, and that commands find in the folder they are called in."""
_SOURCES = ("claude_code", "codex", "openhands", "swe_gym", "path", "hub")


def _say(line: str) -> None:
    from tracemill.flows.runtime.progress import is_progress_hidden

    if not is_progress_hidden():
        typer.echo(f"tracemill: {line}", err=True)


def _find_configuration(context: typer.Context, given: Path | None) -> Path | None:
    """Return the configuration of this folder if none is named, and print its name.

    It is not used if options name sources, so that sessions are never mixed silently.
    """
    if given is not None or context.resilient_parsing or not CONFIGURATION.is_file():
        return given
    given_sources = ((name, context.params.get(name)) for name in _SOURCES)
    named = [name for name, value in given_sources if isinstance(value, list | tuple) and value]
    if named:
        option = f"--{named[0].replace('_', '-')}"
        _say(f"{CONFIGURATION} is not used, as {option} names the sessions; name it to use both")
        return None
    _say(f"using {CONFIGURATION} of this folder")
    return CONFIGURATION


ConfigArgument = Annotated[
    Path | None,
    typer.Argument(
        help="Run configuration (TOML); options override it.",
        show_default=f"{CONFIGURATION} if there",
        callback=_find_configuration,
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Run configuration (TOML); options override it.",
        show_default=f"{CONFIGURATION} if there",
        callback=_find_configuration,
    ),
]


def required_configuration(config: Path | None) -> Path:
    """Return the configuration of a command that needs one. Raises ConfigError if there is none."""
    if config is None:
        raise ConfigError(
            "no configuration is named, and this folder has none",
            f"a file, or {CONFIGURATION}",
            "write one with `tracemill init`",
        )
    return config


def _workspace(given: str) -> Path:
    from tracemill.flows.config.shared_workspace import place_workspace

    return place_workspace(given)


def _find_workspace(context: typer.Context, given: Path | None) -> Path | None:
    """Return the workspace of this folder's configuration, for commands without a configuration."""
    apart = context.command.name == "ingest" or any(each.name == "config" for each in context.command.params)
    if given is not None or context.resilient_parsing or apart or not CONFIGURATION.is_file():
        return given
    from tracemill.flows.config.run_settings import load_settings
    from tracemill.flows.run_state.run_records import DEFAULT_WORKSPACE

    workspace = load_settings(CONFIGURATION, {}).workspace
    if workspace != DEFAULT_WORKSPACE.resolve():
        _say(f"using the workspace of {CONFIGURATION}: {workspace}")
    return workspace


WorkspaceOption = Annotated[
    Path | None,
    typer.Option(
        "--workspace",
        "-w",
        metavar="DIR",
        help="Workspace folder or URL.",
        show_default="tracemill-workspace",
        parser=_workspace,
        callback=_find_workspace,
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
    list[str] | None, typer.Option(metavar="PATH", help="Claude Code session file or folder; repeatable.")
]
Codex = Annotated[
    list[str] | None, typer.Option(metavar="PATH", help="Codex session file or folder; repeatable.")
]
OpenHands = Annotated[
    list[str] | None,
    typer.Option("--openhands", metavar="PATH", help="OpenHands output or folder; repeatable."),
]
SweGym = Annotated[list[str] | None, typer.Option(metavar="PATH", help="SWE-Gym rows or folder; repeatable.")]
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
GateShare = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        min=0,
        max=1,
        help="Ask where pairs are likeliest, for this share of the full cost.",
        show_default="1",
    ),
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
