"""Print a report of `tracemill evaluate` as tables on a terminal."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracemill.evaluate.gate.gate_figures import FEWEST
from tracemill.evaluate.table.model_prices import ASSUMED
from tracemill.evaluate.table.rules import VOTERS
from tracemill.records.printable import printable

if TYPE_CHECKING:
    from rich.console import Console

_SETS = ("stronger teachers", "all draws")
_MODELS = ("model", "family", "answers", "first-step reward", "prices")
_RULES = ("rule", "draws", "pairs", "precision", "p10", "95 %", "useful", "p10", "95 %")
_CELLS = ("chosen", "rejected", "pairs", "good", "tie", "bad", "unscored")
_KINDS = ("pairs", "deciding", "navigation")
_SAVINGS = ("early stopping", "cache", "gate", "calls", "USD", "cheaper", "pairs kept", "correct kept")
_AGREEMENT = ("one", "other", "meetings", "exact", "canonical", "effect", "intent", "class")
_GATE = ("way", "20 %", "30 %", "40 %", "50 %", "60 %", "area", "of gap", "USD at 90 %", "USD at 95 %")
_GATE_AT = (0.2, 0.3, 0.4, 0.5, 0.6)
_MOST_CELLS = 10
_MOST_NAMES = 12
_FEW_PASSES = 10
_LONG = 1e6  # larger figures have an exponent


def print_report(console: "Console", report: dict[str, Any], files: Sequence[Path]) -> None:
    """Print the report as tables. Long tables are cut and say so; the files hold all of it."""
    for line in _about(report):
        console.print(printable(line), soft_wrap=True, markup=False)
    models = [
        [name, model["family"], f"{model['answers']:,}", _figure(model["first_step_reward"]), model["prices"]]
        for name, model in report["table"]["models"].items()
    ]
    _print(console, "models", _MODELS, models, 2, _MOST_NAMES)
    scored = bool(report["table"]["rewarded"])
    for draws in _SETS:
        for voters in VOTERS:
            rows = [_rule(row, draws) for row in report["rules"] if row["voters"] == voters]
            wide = len(_RULES) if scored else 3
            title = f"labels, {draws}, {voters}"
            _print(console, title, _RULES[:wide], [row[:wide] for row in rows if row])
    for voters in VOTERS:
        cells = report["pairs_by_operation"].get(voters, [])
        title = f"pairs by operation, all draws added up, default k=2, {voters}"
        shown = [[_figure(cell[name]) for name in _CELLS] for cell in cells]
        _print(console, title, _CELLS, shown, 2, _MOST_CELLS)
    for voters in VOTERS:
        _print_kinds(console, report["kinds"][voters], voters)
    _print(console, "savings", _SAVINGS, [_saving(row) for row in report["savings"] if row["calls"]], 3)
    for voters in VOTERS:
        _print_gate(console, report, voters)
    rows = [[_figure(row[name]) for name in _AGREEMENT] for row in report["agreement"]]
    _print(console, "the same action, by family", _AGREEMENT, rows, 2, _MOST_NAMES)
    for path in files:
        console.print(printable(f"wrote {path}"), soft_wrap=True, markup=False)


def _about(report: dict[str, Any]) -> list[str]:
    about, draws = report["table"], report["draws"]
    lines = [
        f"{about['name']}: {about['states']:,} states of {about['tasks']:,} tasks ({about['half']}), "
        f"{about['actions']:,} actions of {len(about['models'])} models, {about['rewarded']:,} with a "
        f"reward; harness {', '.join(about['harnesses'])}",
        _drawn(draws, len(about["models"])),
    ]
    if draws["taken"] and not draws["two_families"]:
        known = ", ".join(sorted({model["family"] for model in about["models"].values()}))
        lines.append(
            f"two families needed: a run would ask no teacher here (families: {known}), no savings computed"
        )
    lines += [f"skipped: {count:,} x {why}" for why, count in about["broken"].items()]
    lines += about["broken_examples"]
    lines += [f"no vote: {count:,} x {why}" for why, count in about["no_vote"].items()]
    if assumed := sum(model["prices"] == "assumed" for model in about["models"].values()):
        usd = f"{ASSUMED.prompt_usd} and {ASSUMED.completion_usd} USD per million tokens"
        lines.append(f"prices assumed of {_counted(assumed, 'model')}: {usd}")
    if about["tokens_estimated"]:
        lines.append(f"tokens estimated from bytes of {about['tokens_estimated']:,} actions")
    return lines


def _drawn(draws: dict[str, Any], models: int) -> str:
    if not draws["all"]:
        few = "a draw of a student and three teachers needs four models with actions at the same states"
        named = "no model of --student has three other models of --teacher"
        return f"no draw: {few if models < 4 else named}"
    return (
        f"{draws['taken']:,} of {draws['all']:,} draws of a student and three teachers, "
        f"{draws['stronger']:,} with teachers at least as strong as the student, "
        f"{draws['two_families']:,} with teachers of two families beside the student's"
    )


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _rule(row: dict[str, Any], draws: str) -> list[str]:
    found = row[draws]
    if not found["draws"] or found["pairs"] is None:
        return []
    shown = [row["rule"], f"{found['draws']:,}", f"{found['pairs']:,.1f}".removesuffix(".0")]
    for name in ("precision", "useful"):
        low, high = found[f"{name}_interval"]
        between = "-" if low is None or high is None else f"{low:.2f}-{high:.2f}"
        shown += [_figure(found[name]), _figure(found[f"{name}_p10"]), between]
    return shown


def _saving(row: dict[str, Any]) -> list[str]:
    cheaper = "-" if row["cheaper"] is None else f"{row['cheaper']:.2f}x"
    kept = [_figure(row[name]) for name in ("pairs_kept", "good_kept")]
    cached = "on" if row["cache"] else "off"
    return [row["stop"], cached, row["gate"], f"{row['calls']:,}", f"{row['usd']:,.4f}", cheaper, *kept]


def _print_kinds(console: "Console", found: dict[str, Any], voters: str) -> None:
    """Print the pairs counted as one dataset, by source and by operation of the chosen side."""
    known = [row for part in ("before", "after") for row in found[part].values() if row["pairs"]]
    names = sorted({name for row in known for name in row} - set(_KINDS))
    rows = [
        [source, f"{part} caps", *(_figure(row.get(name, 0.0)) for name in (*_KINDS, *names))]
        for part in ("before", "after")
        for source, row in found[part].items()
        if row["pairs"]
    ]
    title = f"pairs as one dataset, and the share that chooses to, {voters}"
    _print(console, title, ("source", "", *_KINDS, *names), rows, 2)


def _print_gate(console: "Console", report: dict[str, Any], voters: str) -> None:
    """Print the share of pairs that each rule of step selection finds for a share of the USD."""
    gate, draws = report["gate"], report["draws"]
    if not gate or not draws["taken"]:
        return
    found, rest = gate[voters], draws["stronger"] or draws["taken"]
    if not found["draws"]:
        enough = f"{FEWEST} {gate['counted']} on each half of the tasks, at a price"
        few = f"none of {_counted(rest, 'draw')} has {enough}"
        console.print(f"recall by share of USD, {voters}: not computed, {few}", soft_wrap=True, markup=False)
        return
    some = f"{found['draws']:,} of {_counted(rest, 'draw')}"
    title = f"recall of {gate['counted']} by share of USD, {gate['of']}, {voters}, {some}"
    at = [found["shares"].index(share) for share in _GATE_AT]
    rows = [
        [name, *(_figure(way["recall"][place]) for place in at), _figure(way["area"]), _figure(way["of_gap"])]
        + [_figure(usd) for usd in way["usd_at_recall"].values()]
        for name, way in found["ways"].items()
    ]
    _print(console, title, _GATE, rows)
    console.print(_totals(found["totals"]), soft_wrap=True, markup=False)


def _totals(totals: dict[str, Any]) -> str:
    """Return the ratio of estimated to true totals as text; for few passes only its mean."""
    passes = totals["passes"]
    line = (
        "gate: pairs of all steps, estimated from those drawn at random at 30 % of the USD, over the "
        f"truth: {_figure(totals['ratio'])} in the mean of {passes:,} passes"
    )
    if passes < _FEW_PASSES:
        return line
    return (
        f"{line}; eight of ten {_figure(totals['p10'])} to {_figure(totals['p90'])}; "
        f"the 95 % interval holds it in {totals['covered']:.0%}"
    )


def _figure(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) < _LONG else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _print(
    console: "Console",
    title: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    names: int = 1,
    most: int | None = None,
) -> None:
    """Print a table with name columns first, then figures; print nothing if there are no rows.

    At most the first `most` rows are printed.
    """
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    if not rows:
        return
    table = Table(title=title, title_justify="left", box=SIMPLE)
    for at, column in enumerate(head):
        table.add_column(column, justify="left" if at < names else "right", no_wrap=True)
    shown = rows[:most]
    for row in shown:
        table.add_row(*(Text(printable(each)) for each in row))
    console.print(table)
    if left := len(rows) - len(shown):
        console.print(f"  {left:,} more of {title} in the JSON file", soft_wrap=True, markup=False)
