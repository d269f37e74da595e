"""The reports of `tracemill evaluate`: files, and tables on a terminal."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from flows.evaluation import EvaluateOrder, evaluate
from flows.evaluation_plot import rules_svg
from flows.evaluation_text import print_report
from flows.progress import meter
from records.files import write_json, writing

_WIDE = 120
"""Columns of what is no terminal."""


def evaluate_tables(orders: Sequence[EvaluateOrder], out: Path, json: bool) -> None:
    """Evaluates tables one after the other; writes `<table>.json` and `<table>.svg` for each, and prints it,
    or with `json` all reports as one JSON object. Raises TeacherError and SourceError as `evaluate` does."""
    from rich.console import Console

    console = Console() if sys.stdout.isatty() else Console(width=_WIDE)
    reports: list[dict[str, Any]] = []
    for order in orders:
        with meter(None) as told:
            report = evaluate(order, told)
        name = order.table.name.partition(".")[0]
        files = [out / f"{name}.json", out / f"{name}.svg"]
        write_json(files[0], report)
        with writing(files[1]) as file:
            file.write_text(rules_svg(report), encoding="utf-8")
        reports.append(report)
        if not json:
            print_report(console, report, files)
    if json:
        sys.stdout.write(orjson.dumps({"tables": reports}, option=orjson.OPT_SORT_KEYS).decode() + "\n")
