"""`tracemill evaluate` on the command line."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Annotated, Literal

import typer

from tracemill.cli.options import Json

Models = list[str] | None
_WIDE = 120
"""Columns of what is no terminal."""


def evaluate(
    tables: Annotated[list[Path], typer.Argument(help="Tables of several models (JSONL, also gzipped).")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for a report and a plot of each table.")
    ] = Path("evaluation"),
    half: Annotated[
        Literal["all", "tune", "test"], typer.Option(help="Half of the tasks, by a hash of their names.")
    ] = "all",
    harness: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Harness of the tables' sessions.", show_default="detected"),
    ] = None,
    student: Annotated[
        Models,
        typer.Option(metavar="MODEL", help="Model to use as student; repeatable.", show_default="all"),
    ] = None,
    teacher: Annotated[
        Models,
        typer.Option(metavar="MODEL", help="Model to use as teacher; repeatable.", show_default="all"),
    ] = None,
    draws: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum draws of a student and three teachers.")
    ] = 200,
    samples: Annotated[int, typer.Option(metavar="N", min=10, help="Bootstrap samples per interval.")] = 200,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of draws and samples.")] = 0,
    prices: Annotated[
        str | None, typer.Option(metavar="FILE", help="Prices (TOML), or 'spread' for list prices.")
    ] = None,
    rule: Annotated[
        Models, typer.Option(metavar="RULE", help="Rule to compare; repeatable.", show_default="all")
    ] = None,
    gate_seeds: Annotated[
        int, typer.Option(metavar="N", min=0, help="Passes of each step selection per draw; 0 skips it.")
    ] = 1,
    runs: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Whole runs (JSONL), to make pairs without teachers.")
    ] = None,
    json: Json = False,
) -> None:
    """Measure label quality and cost on tables of several models.

    Sends nothing and spends nothing.
    """
    import orjson
    from rich.console import Console

    from tracemill.evaluate.evaluate_table import EvaluateOptions, evaluate_table
    from tracemill.evaluate.report_output import print_report
    from tracemill.evaluate.report_plot import draw_report_plot
    from tracemill.evaluate.table.model_prices import SPREAD, read_model_prices
    from tracemill.flows.runtime.progress import progress_meter
    from tracemill.records.storage.atomic_files import write_atomically, write_json

    spread = prices == SPREAD
    order = EvaluateOptions(
        tables[0],
        half,
        harness,
        student or (),
        teacher or (),
        draws,
        samples,
        seed,
        {} if spread else read_model_prices(Path(prices) if prices else None),
        spread,
        rule or (),
        gate_seeds,
        runs,
    )
    console = Console(width=None if sys.stdout.isatty() else _WIDE)
    reports = []
    for table, name in zip(tables, evaluate_output_names(tables), strict=True):
        with progress_meter(None) as meter:
            report = evaluate_table(replace(order, table=table), meter)
        files = [out / f"{name}.json", out / f"{name}.svg"]
        write_json(files[0], report)
        with write_atomically(files[1]) as file:
            file.write_text(draw_report_plot(report), encoding="utf-8")
        reports.append(report)
        if not json:
            print_report(console, report, files)
    if json:
        typer.echo(orjson.dumps({"tables": reports}, option=orjson.OPT_SORT_KEYS))


def evaluate_output_names(tables: Sequence[Path]) -> list[str]:
    """Return the name of each report's files: that of its table up to the first dot.

    Tables of equal names, whatever their case, get `-2`, `-3` and so on from the second one on.
    """
    plain = [table.name.partition(".")[0] or "table" for table in tables]
    taken, seen, found = {name.casefold() for name in plain}, set[str](), list[str]()
    for name in plain:
        fold, free = name.casefold(), name
        if fold in seen:
            free = next(f"{name}-{number}" for number in count(2) if f"{fold}-{number}" not in taken)
        taken.add(free.casefold())
        seen.add(fold)
        found.append(free)
    return found
