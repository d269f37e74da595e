"""A report of `tracemill evaluate` as one SVG: every rule by useful share and precision."""

from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape

from flows.evaluation_rules import VOTERS

_WIDE, _HIGH, _EDGE, _PLOT = 960, 520, 60, 380
_COLOURS = {
    "folded": "#999999",
    "exact": "#e69f00",
    "canonical": "#56b4e9",
    "effect": "#009e73",
    "default": "#d55e00",
    "strict": "#0072b2",
    "lenient": "#cc79a7",
    "weighted": "#000000",
}
"""After the palette of Okabe and Ito, which colour-blind people can tell apart."""


def rules_svg(report: dict[str, Any]) -> str:
    """An SVG document: for either kind of voters a plot of the medians over draws, useful share to the right
    and precision without ties upwards. Stronger teachers where there are such draws, else all draws."""
    strong = any(row["stronger teachers"]["draws"] for row in report["rules"])
    draws = "stronger teachers" if strong else "all draws"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDE}" height="{_HIGH}" '
        f'viewBox="0 0 {_WIDE} {_HIGH}" font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        _text(_EDGE, 24, f"{report['table']['name']} ({report['table']['half']}), {draws}", size=14),
    ]
    for at, voters in enumerate(VOTERS):
        points = [row for row in report["rules"] if row["voters"] == voters]
        parts += _panel(_EDGE + at * (_PLOT + 70), voters, points, draws)
    return "\n".join([*parts, "</svg>", ""])


def _panel(left: int, voters: str, rows: Sequence[dict[str, Any]], draws: str) -> list[str]:
    top = _EDGE
    parts = [
        f'<rect x="{left}" y="{top}" width="{_PLOT}" height="{_PLOT}" fill="none" stroke="#444444"/>',
        _text(left, top - 8, voters),
        _text(left + _PLOT // 2 - 30, top + _PLOT + 34, "useful share"),
        _text(left, top + _PLOT + 52, "up: precision without ties; the number is k"),
    ]
    for tick in range(0, 11, 2):
        away = tick * _PLOT // 10
        parts.append(_text(left + away - 6, top + _PLOT + 16, f".{tick}" if tick < 10 else "1"))
        parts.append(_text(left - 22, top + _PLOT - away + 4, f".{tick}" if tick < 10 else "1"))
    for row in rows:
        found = row[draws]
        if found["draws"] and found["precision"] is not None and found["useful"] is not None:
            parts += _point(left, top, row["rule"], found)
    return parts


def _point(left: int, top: int, rule: str, found: dict[str, Any]) -> list[str]:
    name, _, k = rule.partition(" k=")
    x, y = left + found["useful"] * _PLOT, top + (1 - found["precision"]) * _PLOT
    colour = _COLOURS.get(name, "#444444")
    short = k if name in ("exact", "canonical", "effect") else f"{name} {k}"
    told = f"{rule}: precision {found['precision']}, useful {found['useful']}, {found['pairs']:.0f} pairs"
    return [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"><title>{escape(told)}</title></circle>',
        _text(round(x) + 7, round(y) + 4, short, colour),
    ]


def _text(x: int, y: int, text: str, colour: str = "#222222", size: int = 11) -> str:
    return f'<text x="{x}" y="{y}" fill="{colour}" font-size="{size}">{escape(text.strip())}</text>'
