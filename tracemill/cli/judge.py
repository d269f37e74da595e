"""`tracemill judge` on the command line."""

import os
from dataclasses import asdict
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
    from tracemill.cli.commands import say
    from tracemill.flows.config.run_settings import load_settings
    from tracemill.flows.consent.destinations import destination_of
    from tracemill.flows.estimate.measure_judge import judge_and_budget, measure_judge
    from tracemill.flows.labeling.judge_setup import FEWEST_KNOWN, NOT_MEASURED
    from tracemill.flows.runtime.terminal import say_lines

    settings = load_settings(config, run_overrides(workspace, None, max_usd))
    model, _ = judge_and_budget(settings)
    goes_to = destination_of(model, os.environ)
    if goes_to is not None and not yes:
        names = ", ".join(table.name for table in tables)
        say_lines([f"This sends rows of {names}, redacted, to {goes_to.model} at {goes_to.origin}."])
        typer.confirm("Continue?", abort=True, err=True)
    found = measure_judge(settings, tables, cases)
    precision = found.precision
    known = precision.right + precision.wrong
    measured = str(precision)
    if known < FEWEST_KNOWN:
        measured = f"{NOT_MEASURED}\n{known} known cases; {FEWEST_KNOWN} are needed"
    rows = [
        ("judge", model.model),
        ("precision", measured),
        ("disagreements", f"{precision.asked:,} asked about, in both orders where the first says so"),
        (
            "prefers a teacher",
            f"{precision.right} right, {precision.wrong} wrong, {precision.ties} of equal reward",
        ),
        ("calls", f"{found.calls:,} sent, {found.cached:,} cached"),
        ("spent", f"${found.spent_usd:.4f}"),
    ]
    if found.stopped:
        rows.append(("stopped", found.stopped))
    record = asdict(found) | {"judge": model.model, "measured": known >= FEWEST_KNOWN}
    say(rows, "tracemill judge", record, json)
