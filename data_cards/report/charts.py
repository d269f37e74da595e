"""Geometry of the report's charts in percent of a width; the template draws them as SVG."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tracemill.data_cards.model.release_spec import TeacherFigures
from tracemill.data_cards.model.report_model import FunnelStage, PairAgreement, ReportFigures, TraceCost
from tracemill.data_cards.report.agreement_matrix import STUDENT

SHADES = 6
"""Number of colours for teachers."""
_AGENT = "the agent"
_CAPTION = 0.45
"""Share of the cost bar that a caption takes on a narrow page."""


@dataclass(frozen=True, slots=True)
class BarPart:
    """A segment of a bar: its start `x` and `width` in percent; `kind` names its colour."""

    name: str
    kind: str
    value: float
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class FunnelBar:
    """A stage of the funnel: the segments and width of its bar, and the width of the next bar, in percent."""

    stage: FunnelStage
    parts: tuple[BarPart, ...]
    width: float
    following: float


@dataclass(frozen=True, slots=True)
class Matrix:
    """A table of names, with a cell for each pair: share (0 to 1), count, and total."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[str, str], tuple[float, int, int]]


@dataclass(frozen=True, slots=True)
class Charts:
    """All charts of the page."""

    funnel: tuple[FunnelBar, ...]
    spend: tuple[BarPart, ...]
    cap_at: float | None
    projected_at: float | None
    apart: bool
    """True if the captions of cap and projection fit on one line."""
    saved: tuple[BarPart, ...]
    uncut_usd: float
    teachers: Matrix
    families: Matrix
    operations: Matrix
    operation_totals: tuple[Mapping[str, int], Mapping[str, int]]
    dearest: tuple[tuple[TraceCost, float], ...]
    latency: tuple[tuple[TeacherFigures, float, float, float], ...]
    slowest_s: float
    tried_again: bool
    shade: Mapping[str, int] = field(default_factory=dict)


def build_charts(figures: ReportFigures) -> Charts:
    """Compute the geometry of all charts of a report."""
    money, shade = figures.money, {name: place % SHADES for place, name in enumerate(figures.money.paid_usd)}
    reach = max(money.cap_usd or 0.0, money.projected_usd or 0.0, money.spend_usd)
    saved, uncut = _saved(figures)
    timed = [one for one in figures.run.teachers if one.answered] if figures.run else []
    slowest = max((one.p90_s for one in timed), default=0.0)

    def at(seconds: float) -> float:
        return chart_percent(seconds, slowest) or 0.0

    most = max((trace.usd for trace in figures.dearest), default=0.0)
    return Charts(
        funnel=tuple(_funnel(figures)),
        spend=stack_chart_parts(_by_teacher(figures, shade), reach),
        cap_at=chart_percent(money.cap_usd, reach),
        projected_at=chart_percent(money.projected_usd, reach),
        apart=abs((money.projected_usd or 0.0) - (money.cap_usd or 0.0)) > _CAPTION * reach,
        saved=saved,
        uncut_usd=uncut,
        teachers=_agreement_matrix(figures.agreement.teachers),
        families=_agreement_matrix(figures.agreement.families),
        operations=_operation_matrix(figures),
        operation_totals=_operation_totals(figures),
        dearest=tuple((trace, chart_percent(trace.usd, most) or 0.0) for trace in figures.dearest),
        latency=tuple((one, at(one.p10_s), at(one.p50_s), at(one.p90_s)) for one in timed),
        slowest_s=slowest,
        tried_again=any(one.again for one in timed),
        shade=shade,
    )


def chart_percent(part: float | None, whole: float) -> float | None:
    """Return `part` of `whole` in percent, to three digits; None if `part` is None or `whole` is 0."""
    return None if part is None or not whole else round(100 * part / whole, 3)


def stack_chart_parts(parts: Iterable[tuple[str, str, float]], whole: float) -> tuple[BarPart, ...]:
    """Place segments (name, kind, value) side by side on a bar of length `whole`."""
    stacked: list[BarPart] = []
    at = 0.0
    for name, kind, value in parts:
        if value > 0 and (width := chart_percent(value, whole)):
            stacked.append(BarPart(name, kind, value, round(at, 3), width))
            at += width
    return tuple(stacked)


def _by_teacher(figures: ReportFigures, shade: Mapping[str, int]) -> list[tuple[str, str, float]]:
    """Split the run's cost by teacher, in the proportions of all answers of the release."""
    paid, spent = figures.money.paid_usd, figures.money.spend_usd
    total = sum(paid.values())
    if not total:
        return [("spent", "shade0", spent)]
    return [(name, f"shade{shade[name]}", spent * value / total) for name, value in paid.items()]


def _funnel(figures: ReportFigures) -> Iterable[FunnelBar]:
    stages = [stage for stage in figures.funnel if stage.unit != "traces"]
    most = max((stage.count for stage in stages), default=0)
    widths = [chart_percent(stage.count, most) or 0.0 for stage in stages]
    for at, stage in enumerate(stages):
        named = stage.parts or {"": stage.count}
        parts = stack_chart_parts(((name, name or "plain", count) for name, count in named.items()), most)
        yield FunnelBar(stage, parts, widths[at], widths[at + 1] if at + 1 < len(widths) else widths[at])


def _saved(figures: ReportFigures) -> tuple[tuple[BarPart, ...], float]:
    """Return the bar of paid and saved costs, and their sum in USD."""
    if figures.run is None:
        return (), 0.0
    run, paid = figures.run, sum(figures.money.paid_usd.values())
    parts = [
        ("paid", "paid", paid),
        ("prompt caches", "caching", run.caching.usd),
        ("stopping early", "stopping", run.stopping.usd),
        ("the gate", "gate", run.gate.usd),
    ]
    uncut = sum(max(0.0, value) for _, _, value in parts)
    return stack_chart_parts(parts, uncut), uncut


def _agreement_matrix(pairs: Sequence[PairAgreement]) -> Matrix:
    """Build both halves of the symmetric matrix; the agent is last."""
    cells: dict[tuple[str, str], tuple[float, int, int]] = {}
    for pair in pairs:
        one, other = (_AGENT if name == STUDENT else name for name in (pair.one, pair.other))
        cell = (pair.same / pair.steps if pair.steps else 0.0, pair.same, pair.steps)
        cells[one, other] = cells[other, one] = cell
    names = tuple(sorted({name for pair in cells for name in pair}, key=lambda name: (name == _AGENT, name)))
    return Matrix(names, names, cells)


def _operation_matrix(figures: ReportFigures) -> Matrix:
    """Build the table of rejected (rows) and chosen (columns) operations, by frequency.

    Shares are relative to the largest cell.
    """
    down, across = _operation_totals(figures)
    most = max((cell.rows for cell in figures.operations), default=0)
    cells = {
        (cell.rejected, cell.chosen): (cell.rows / most, cell.rows, figures.rows)
        for cell in figures.operations
    }
    return Matrix(tuple(down), tuple(across), cells)


def _operation_totals(figures: ReportFigures) -> tuple[dict[str, int], dict[str, int]]:
    down, across = Counter[str](), Counter[str]()
    for cell in figures.operations:
        down[cell.rejected] += cell.rows
        across[cell.chosen] += cell.rows
    return dict(down.most_common()), dict(across.most_common())
