"""`tracemill judge` on the command line."""

from pathlib import Path
from typing import Annotated

import typer

from tracemill.cli.options import ConfigOption, Json, MaxUsd, WorkspaceOption, Yes
from tracemill.cli.overrides import run_overrides


def judge(
    tables: Annotated[list[Path], typer.Argument(help="Tables of several models with rewards (JSONL).")],
    config: ConfigOption = None,
    workspace: WorkspaceOption = None,
    max_usd: MaxUsd = None,
    cases: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum disagreements to ask about.")] = 300,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Measure how often the judge of a configuration is right. Without this it makes no pair."""
    from tracemill.cli.commands import judge_command
    from tracemill.flows.config.run_settings import load_settings

    settings = load_settings(config, run_overrides(workspace, None, max_usd))
    judge_command(settings, tables, cases, yes, json)
