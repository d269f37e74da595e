"""The reports of `tracemill evaluate`: files, and tables on a terminal."""

import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import orjson

from tracemill.evaluate.evaluate_table import EvaluateOptions, evaluate_table
from tracemill.evaluate.report_output import print_report
from tracemill.evaluate.report_plot import draw_report_plot
from tracemill.flows.runtime.progress import progress_meter
from tracemill.records.storage.atomic_files import write_atomically, write_json

_WIDE = 120
"""Columns of what is no terminal."""


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


def write_evaluate_output(orders: Sequence[EvaluateOptions], out: Path, json: bool) -> None:
    """Evaluate tables one after the other, and write `<table>.json` and `<table>.svg` for each.

    Prints each report, or with `json` all of them as one JSON object. Raises TeacherError and SourceError as
    `evaluate_table` does. The names are those of `evaluate_output_names`.
    """
    from rich.console import Console

    console = Console() if sys.stdout.isatty() else Console(width=_WIDE)
    reports: list[dict[str, Any]] = []
    for order, name in zip(orders, evaluate_output_names([order.table for order in orders]), strict=True):
        with progress_meter(None) as told:
            report = evaluate_table(order, told)
        files = [out / f"{name}.json", out / f"{name}.svg"]
        write_json(files[0], report)
        with write_atomically(files[1]) as file:
            file.write_text(draw_report_plot(report), encoding="utf-8")
        reports.append(report)
        if not json:
            print_report(console, report, files)
    if json:
        sys.stdout.write(orjson.dumps({"tables": reports}, option=orjson.OPT_SORT_KEYS).decode() + "\n")
