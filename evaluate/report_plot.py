"""Draw a report of `tracemill evaluate` as one SVG.

Every rule is shown by useful share and precision; below are the gate's curves, recall by share of the USD.
"""

from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape

from tracemill.evaluate.table.rules import VOTERS

_WIDE, _HIGH, _EDGE, _PLOT = 960, 520, 60, 380
_GATE_HIGH = 500
_WAYS = {
    "random": "#999999",
    "gate, cold": "#d55e00",
    "gate, trained offline": "#0072b2",
    "oracle": "#000000",
}
_COLOURS = {
    "folded": "#999999",
    "exact": "#e69f00",
    "canonical": "#56b4e9",
    "effect": "#009e73",
    "default": "#d55e00",
    "strict": "#0072b2",
}
"""The colour-blind safe palette of Okabe and Ito."""


def draw_report_plot(report: dict[str, Any]) -> str:
    """Return an SVG document with a plot for each kind of voters.

    Points are medians over draws: useful share to the right, precision without ties upwards. Draws with
    stronger teachers are used if there are any.
    """
    strong = any(row["stronger teachers"]["draws"] for row in report["rules"])
    draws = "stronger teachers" if strong else "all draws"
    gate = report["gate"]
    high = _HIGH + (_GATE_HIGH if gate else 0)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDE}" height="{high}" '
        f'viewBox="0 0 {_WIDE} {high}" font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        _text(_EDGE, 24, f"{report['table']['name']} ({report['table']['half']}), {draws}", size=14),
    ]
    for at, voters in enumerate(VOTERS):
        points = [row for row in report["rules"] if row["voters"] == voters]
        left = _EDGE + at * (_PLOT + 70)
        parts += _panel(left, voters, points, draws)
        parts += _curves(left, gate, voters) if gate else []
    return "\n".join([*parts, "</svg>", ""])


def _panel(left: int, voters: str, rows: Sequence[dict[str, Any]], draws: str) -> list[str]:
    top = _EDGE
    parts = _frame(left, top, voters, "useful share", "up: precision without ties; the number is k")
    for row in rows:
        found = row[draws]
        if found["draws"] and found["precision"] is not None and found["useful"] is not None:
            parts += _point(left, top, row["rule"], found)
    return parts


def _curves(left: int, gate: dict[str, Any], voters: str) -> list[str]:
    """Return SVG lines of the recall of each rule of step selection, by share of the USD."""
    top, found = _HIGH + 20, gate[voters]
    counted = f"up: recall of {gate['counted']}, {found['draws']} draws, {gate['of']}"
    parts = _frame(left, top, voters, "share of the USD of tiered asking", counted)
    for place, (name, way) in enumerate((n, w) for n, w in found["ways"].items() if n in _WAYS):
        points = [(0.0, 0.0), *zip(found["shares"], way["recall"], strict=True), (1.0, 1.0)]
        line = " ".join(f"{left + x * _PLOT:.1f},{top + (1 - y) * _PLOT:.1f}" for x, y in points)
        colour = _WAYS[name]
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(_text(left + _PLOT - 120, top + _PLOT - 12 - 14 * place, name, colour))
    return parts


def _frame(left: int, top: int, title: str, across: str, up: str) -> list[str]:
    """Return a square with ticks from 0 to 1 on both sides."""
    parts = [
        f'<rect x="{left}" y="{top}" width="{_PLOT}" height="{_PLOT}" fill="none" stroke="#444444"/>',
        _text(left, top - 8, title),
        _text(left + _PLOT // 2 - 30, top + _PLOT + 34, across),
        _text(left, top + _PLOT + 52, up),
    ]
    for tick in range(0, 11, 2):
        away = tick * _PLOT // 10
        parts.append(_text(left + away - 6, top + _PLOT + 16, f".{tick}" if tick < 10 else "1"))
        parts.append(_text(left - 22, top + _PLOT - away + 4, f".{tick}" if tick < 10 else "1"))
    return parts


def _point(left: int, top: int, rule: str, found: dict[str, Any]) -> list[str]:
    name, _, k = rule.partition(" k=")
    x, y = left + found["useful"] * _PLOT, top + (1 - found["precision"]) * _PLOT
    colour = _COLOURS.get(name, "#444444")
    short = k if name in ("exact", "canonical", "effect") else f"{name} {k}"
    tooltip = f"{rule}: precision {found['precision']}, useful {found['useful']}, {found['pairs']:g} pairs"
    return [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"><title>{escape(tooltip)}</title></circle>',
        _text(round(x) + 7, round(y) + 4, short, colour),
    ]


def _text(x: int, y: int, text: str, colour: str = "#222222", size: int = 11) -> str:
    return f'<text x="{x}" y="{y}" fill="{colour}" font-size="{size}">{escape(text.strip())}</text>'
