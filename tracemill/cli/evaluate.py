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
        Path, typer.Option("--out", "-o", help="Folder for a report (JSON) and a plot (SVG) of each table.")
    ] = Path("evaluation"),
    half: Annotated[
        Literal["all", "tune", "test"], typer.Option(help="Tasks of one half, by a hash of their names.")
    ] = "all",
    harness: Annotated[str | None, typer.Option(help="Harness of the table; else found from it.")] = None,
    student: Annotated[Models, typer.Option(help="Model that may be the student; repeatable.")] = None,
    teacher: Annotated[Models, typer.Option(help="Model that may be a teacher; repeatable.")] = None,
    draws: Annotated[int, typer.Option(min=1, help="Most draws of student and three teachers.")] = 200,
    samples: Annotated[int, typer.Option(min=10, help="Samples of tasks behind each interval.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Seed of draws and samples.")] = 0,
    prices: Annotated[
        str | None, typer.Option(help="Prices of models (TOML), or 'spread': today's, cheap to dear.")
    ] = None,
    rule: Annotated[Models, typer.Option(help="Rule that is compared; repeatable; else every rule.")] = None,
    gate_seeds: Annotated[
        int, typer.Option(min=0, help="Passes of each gate over a draw; 0 leaves the gate out.")
    ] = 1,
    runs: Annotated[
        Path | None, typer.Option(help="File of whole runs (JSONL), for pairs that need no teacher.")
    ] = None,
    json: Json = False,
) -> None:
    """Say what labels from a table of several models are worth, and what asking for them would cost.

    Sends nothing and spends nothing.
    """
    from tracemill.cli.evaluate_output import write_evaluate_output
    from tracemill.evaluate.evaluate_table import EvaluateOrder
    from tracemill.evaluate.table.model_prices import SPREAD, read_model_prices

    spread = prices == SPREAD
    order = EvaluateOrder(
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
