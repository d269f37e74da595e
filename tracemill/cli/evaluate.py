"""`tracemill evaluate` on the command line."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from tracemill.cli.options import Json

Models = list[str] | None


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
    from tracemill.cli.evaluate_output import write_evaluate_output
    from tracemill.evaluate.evaluate_table import EvaluateOptions
    from tracemill.evaluate.table.model_prices import SPREAD, read_model_prices

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
    orders = [replace(order, table=path) for path in tables]
    write_evaluate_output(orders, out, json)
