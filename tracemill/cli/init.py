"""`tracemill init`: a first configuration from at most six questions."""

import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracemill.cli.commands import program_name
from tracemill.cli.options import (
    CONFIGURATION,
    AcceptTerms,
    ClaudeCode,
    Codex,
    HubDataset,
    MaxUsd,
    OpenHands,
    Paths,
    SweGym,
)
from tracemill.cli.overrides import agent_overrides, source_overrides
from tracemill.records.errors import ConfigError

if TYPE_CHECKING:
    from tracemill.flows.config.starter_config import SourceKey, StarterAnswers

_AGENTS: "dict[str, SourceKey]" = {
    "claude-code": "claude_code",
    "codex": "codex",
    "openhands": "openhands",
    "swe-gym": "swe_gym",
    "any": "paths",
}
_PRESETS = ("none", "open", "frontier", "simulated")
_WORKSPACE = "tracemill-workspace"
_CAP_USD = 10.0
"""Cap that is proposed."""
_MOST_USD = 1_000_000


def init(
    config: Annotated[Path, typer.Argument(metavar="FILE", help="Configuration to write.")] = CONFIGURATION,
    claude_code: ClaudeCode = None,
    codex: Codex = None,
    openhands: OpenHands = None,
    swe_gym: SweGym = None,
    path: Paths = None,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Teachers: open, frontier, simulated or none.", show_default="none"
        ),
    ] = None,
    max_usd: MaxUsd = None,
    accept_terms: AcceptTerms = False,
    hub: HubDataset = None,
    workspace: Annotated[
        str | None,
        typer.Option("--workspace", "-w", metavar="DIR", help="Workspace folder.", show_default=_WORKSPACE),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Ask no questions; use defaults for missing options.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE without asking.")] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON schema of configurations; write nothing.")
    ] = False,
) -> None:
    """Write a commented configuration from at most six questions.

    An option answers its question. The JSON schema for editors is written beside the file.
    """
    if schema:
        from tracemill.flows.config.config_schema import config_schema

        typer.echo(json.dumps(config_schema(), indent=1))
        return
    asks = sys.stdin.isatty() and not yes
    _check_may_write(config, asks, yes, force)
    from tracemill.flows.config.starter_config import StarterAnswers, starter_config, write_starter_config

    given = agent_overrides(
        claude_code=claude_code, codex=codex, openhands=openhands, swe_gym=swe_gym
    ) | source_overrides(path, None, None, None)
    sources: dict[SourceKey, list[str]] = {key: given[key] for key in _AGENTS.values() if key in given}
    answers = StarterAnswers(
        sources=sources,
        preset=preset or "",
        max_usd=max_usd,
        accept_terms=accept_terms,
        hub=hub,
        workspace=workspace or "",
    )
    answers = _answer_rest(answers, asks)
    text = starter_config(answers, config.parent)
    written = write_starter_config(text, config)
    typer.echo(f"wrote {config}, and {written.name} for editors")
    _say_next(config, answers)


def _answer_rest(given: "StarterAnswers", asks: bool) -> "StarterAnswers":
    """Return the answers with the missing ones: asked for if `asks`, else the defaults."""
    sources = given.sources or (_ask_sources() if asks else _usual_sources())
    preset = given.preset or (_ask_one_of("Teachers", _PRESETS) if asks else "none")
    max_usd, hub, workspace = given.max_usd, given.hub, given.workspace
    if asks and max_usd is None and preset != "none":
        max_usd = typer.prompt("Hard cap in USD", _CAP_USD, err=True, value_proc=_as_usd)
    if asks and hub is None:
        question = "Dataset of the Hub for releases (OWNER/NAME or none)"
        hub = typer.prompt(question, "none", err=True, value_proc=_as_dataset)
    if not workspace:
        workspace = typer.prompt("Workspace", _WORKSPACE, err=True) if asks else _WORKSPACE
    hub = None if hub == "none" else hub
    return replace(given, sources=sources, preset=preset, max_usd=max_usd, hub=hub, workspace=workspace)


def _say_next(config: Path, answers: "StarterAnswers") -> None:
    """Print the steps before a run, and the command that runs it."""
    if answers.preset == "frontier" and not answers.accept_terms:
        typer.echo("terms of these teachers restrict training: a run needs accept_terms = true")
    if answers.preset in ("open", "frontier"):
        typer.echo("next: export OPENROUTER_API_KEY=...")
    named = "" if config == CONFIGURATION else f" {shlex.quote(str(config))}"
    typer.echo(f"next: {program_name()} doctor{named}")
    typer.echo(f"then: {program_name()} run{named}")


def _check_may_write(config: Path, asks: bool, yes: bool, force: bool) -> None:
    """Raise ConfigError if questions are needed without a terminal, or an existing file is kept."""
    if not asks and not yes:
        raise ConfigError(
            "init asks questions, and there is no terminal",
            "answers as options",
            "pass --yes with --claude-code, --codex, --openhands, --swe-gym or --path, and as needed with "
            "--preset NAME, --max-usd USD, --hub OWNER/NAME, --workspace DIR",
        )
    if not config.exists() or force:
        return
    if not asks or not typer.confirm(f"{config} exists. Overwrite it?", err=True):
        raise ConfigError(f"{config} exists", do="give another FILE, or --force")


def _usual_sources() -> "dict[SourceKey, list[str]]":
    """Return the sessions of Claude Code on this machine. Raises ConfigError if there are none."""
    from tracemill.ingesters.claude_code.retention import config_folder

    if not (folder := config_folder() / "projects").is_dir():
        raise ConfigError(f"no sessions are named, and {folder} is not there", do="pass --path PATH")
    return {"claude_code": [_from_home(folder)]}


def _ask_sources() -> "dict[SourceKey, list[str]]":
    """Ask where the sessions are and which agent wrote them."""
    try:
        usual = _usual_sources()["claude_code"][0]
    except ConfigError:
        usual = None
    place = typer.prompt("File or folder of sessions", usual, err=True, value_proc=_there)
    agent = _ask_one_of("Agent", tuple(_AGENTS), "claude-code" if place == usual else "any")
    return {_AGENTS[agent]: [place]}


def _ask_one_of(question: str, names: tuple[str, ...], default: str | None = None) -> str:
    def known(given: str) -> str:
        if given not in names:
            raise typer.BadParameter(f"expected one of {', '.join(names)}")
        return given

    text = f"{question} ({', '.join(names)})"
    return typer.prompt(text, default or names[0], err=True, value_proc=known)


def _there(given: str) -> str:
    if not Path(given).expanduser().exists():
        raise typer.BadParameter(f"{given} does not exist")
    return given


def _as_usd(given: str) -> float:
    try:
        usd = float(given)
    except ValueError:
        usd = -1.0
    if not 0 <= usd <= _MOST_USD:
        raise typer.BadParameter(f"expected a number of USD, 0 to {_MOST_USD:,}")
    return usd


def _as_dataset(given: str) -> str:
    from tracemill.data_cards.model.versions import REPO_ID

    if given != "none" and not REPO_ID.fullmatch(given):
        raise typer.BadParameter("expected OWNER/NAME or none")
    return given


def _from_home(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
