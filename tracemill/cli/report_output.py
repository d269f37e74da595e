"""The report of a release on a terminal: the same figures as on its page."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tracemill.data_cards.model.audit_sample import Precision
from tracemill.data_cards.model.report_model import ReportFigures
from tracemill.data_cards.report.charts import Matrix, build_charts
from tracemill.data_cards.report.number_format import (
    format_number,
    format_share,
    format_short_number,
    format_usd,
)
from tracemill.records.label_source import source_title
from tracemill.records.plain_words import stage_in_words
from tracemill.records.printable import printable

_BAR = 32
Row = Sequence[object]


def print_figures(console: Console, figures: ReportFigures, precision: Precision | None) -> None:
    """Print every section of the report but the pairs."""
    drawn = build_charts(figures)
    console.print(Text(printable(f"report of {figures.name} {figures.version}"), style="bold"))
    if precision is not None:
        console.print(Text(f"audit: {precision.sentence()}"))
    stages = [
        (
            stage_in_words(stage.name),
            format_number(stage.count),
            _bar(bar),
            f"{_kinds(stage.parts)} {stage.note}".strip(),
        )
        for stage, bar in _widths(figures)
    ]
    _table(console, "from steps to pairs", ("", ">", "", ""), stages)
    _table(
        console, "splits", ("", ">"), [(name, format_number(rows)) for name, rows in figures.splits.items()]
    )
    if figures.labels.sources:
        labels = [
            (
                each.source,
                format_number(each.released),
                f"of {format_number(each.steps)}",
                _parts(each.dropped),
            )
            for each in figures.labels.sources
        ]
        _table(console, "labelled actions", ("", ">", ">", ""), labels)
    for said in figures.labels.warnings:
        console.print(Text(printable(said)))
    if drawn.spend or (figures.run and figures.run.teachers):
        _table(console, "cost", ("", ">", ""), _money(figures, drawn.uncut_usd))
    if figures.agreement.teachers:
        _matrix(console, "agreement of teachers and agent", drawn.teachers)
        _matrix(console, "agreement of families", drawn.families)
        rows = [
            (
                one.operation,
                format_number(one.votes),
                format_share(one.same_class, one.votes),
                format_share(one.same, one.votes),
            )
            for one in figures.agreement.operations
        ]
        heads = ("operation", ">votes", ">same operation", ">same action")
        _table(console, "agreement of teachers by operation", heads, rows)
    _operations(console, drawn.operations)
    _teachers(console, figures)
    dearest = [
        (
            trace.trace_id,
            format_usd(trace.usd),
            _bar(width),
            format_number(trace.steps),
            format_number(trace.pairs),
        )
        for trace, width in drawn.dearest
    ]
    _table(console, "most expensive traces", ("trace", ">USD", "", ">steps", ">pairs"), dearest)
    lost = [one for one in figures.losses if one.dropped or one.errors]
    rows = [
        (one.operator, format_number(one.rows_in), format_number(one.dropped), f"{one.share:.1%}")
        for one in lost
    ]
    _table(console, "dropped", ("operator", ">rows in", ">dropped", ">share"), rows)


def _widths(figures: ReportFigures) -> Iterable[tuple[Any, float]]:
    most = max((stage.count for stage in figures.funnel if stage.unit != "traces"), default=0)
    for stage in figures.funnel:
        yield stage, 0.0 if stage.unit == "traces" or not most else 100 * stage.count / most


def _parts(parts: dict[str, int]) -> str:
    return ", ".join(f"{name} {format_number(count)}" for name, count in parts.items())


def _kinds(parts: dict[str, int]) -> str:
    return _parts({source_title(name): count for name, count in parts.items()})


def _bar(percent: float) -> str:
    return "\u2588" * round(_BAR * percent / 100)


def _money(figures: ReportFigures, uncut_usd: float) -> list[Row]:
    money, run = figures.money, figures.run
    cap = "no cap" if money.cap_usd is None else f"cap {format_usd(money.cap_usd)}"
    rows: list[Row] = [
        ("spent", format_usd(money.spend_usd), cap),
        ("per released pair", format_usd(money.usd_per_pair), ""),
    ]
    if run is None or money.projected_usd is None:
        return rows
    left = f"{format_number(run.left_over)} questions not asked"
    rows.append(("all questions, at most", format_usd(money.projected_usd), left))
    savings = (
        ("prompt caching", run.caching),
        ("early stopping", run.stopping),
        ("step selection", run.gate),
    )
    for name, saved in savings:
        calls = f"{format_share(saved.usd, uncut_usd)}, {format_number(saved.calls)} calls"
        rows.append((f"saved by {name}", format_usd(saved.usd), calls))
    return rows


def _teachers(console: Console, figures: ReportFigures) -> None:
    rows = [
        (
            one.name,
            format_number(one.calls),
            ", ".join(f"{kind} {format_number(n)}" for kind, n in one.failures.items()) or "none",
            f"{one.p50_s:.2f}",
            f"{one.p90_s:.2f}",
            format_short_number(one.prompt_tokens),
            format_share(one.cached_tokens, one.prompt_tokens),
            format_short_number(one.completion_tokens),
            format_usd(one.paid_usd),
        )
        for one in (figures.run.teachers if figures.run else ())
    ]
    heads = ("teacher", ">calls", "failed", ">median s", ">p90 s", ">in", ">cached", ">out", ">paid")
    _table(console, "teachers", heads, rows)


def _matrix(console: Console, title: str, matrix: Matrix) -> None:
    rows = [
        (row, *(f"{format_share(cell[0])} of {cell[2]}" if cell else "" for cell in _cells(matrix, row)))
        for row in matrix.rows
    ]
    _table(console, title, ("", *(f">{name}" for name in matrix.columns)), rows)


def _operations(console: Console, matrix: Matrix) -> None:
    rows = [
        (row, *(format_number(cell[1]) if cell else "" for cell in _cells(matrix, row)))
        for row in matrix.rows
    ]
    heads = ("rejected \\ chosen", *(f">{name}" for name in matrix.columns))
    _table(console, "pairs by operation", heads, rows)


def _cells(matrix: Matrix, row: str) -> list[tuple[float, int, int] | None]:
    return [matrix.cells.get((row, column)) for column in matrix.columns]


def _table(console: Console, title: str, heads: Sequence[str], rows: Sequence[Row]) -> None:
    """Print a table, or nothing without rows. A heading that begins with `>` is of a column of figures."""
    if not rows:
        return
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=SIMPLE,
        show_header=any(head.lstrip(">") for head in heads),
        pad_edge=False,
    )
    for head in heads:
        right = head.startswith(">")
        table.add_column(
            Text(printable(head.lstrip(">"))), justify="right" if right else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(printable(str(cell))) for cell in row))
    console.print(table)
