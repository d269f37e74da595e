"""Drift between two releases: figures that moved, and whether beyond their bounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tracemill.data_cards.model.drift_bounds import DriftBounds
from tracemill.data_cards.model.manifest import PublishedManifest


@dataclass(frozen=True, slots=True)
class DriftFigures:
    """Figures that are compared between releases.

    They are the shares of (rejected, chosen) operations, the share of counted votes that agree, USD per pair,
    and the length of chosen by rejected sides in characters; None if unknown.
    """

    rows: int
    operations: dict[str, float]
    agreement: float | None
    usd_per_pair: float
    length_ratio: float | None

    @classmethod
    def of(cls, manifest: PublishedManifest) -> "DriftFigures":
        """Compute the figures of a manifest."""
        agreeing = sum(votes.get("agreeing", 0) for votes in manifest.votes.values())
        counted = agreeing + sum(votes.get("other", 0) for votes in manifest.votes.values())
        rows = sum(manifest.operations.values())
        return cls(
            manifest.rows,
            {name: n / rows for name, n in manifest.operations.items()} if rows else {},
            agreeing / counted if counted else None,
            manifest.usd_per_pair,
            manifest.chosen_chars / manifest.rejected_chars if manifest.rejected_chars else None,
        )


def find_drift(old: DriftFigures, new: DriftFigures, bounds: DriftBounds) -> list[str]:
    """Return a line for each figure that moved beyond its bound."""
    names = old.operations.keys() | new.operations.keys()
    moved = sum(abs(old.operations.get(n, 0.0) - new.operations.get(n, 0.0)) for n in names) / 2
    lines = []
    if moved > bounds.operations:
        lines.append(f"operations: {moved:.0%} of the rows are of others (at most {bounds.operations:.0%})")
    before, after = old.agreement, new.agreement
    if before is not None and after is not None and abs(before - after) > bounds.agreement:
        lines.append(f"agreement: {before:.2f} to {after:.2f} (at most {bounds.agreement} apart)")
    if _ratio(old.usd_per_pair, new.usd_per_pair) > bounds.usd_per_pair:
        lines.append(
            f"USD a pair: {old.usd_per_pair:.4f} to {new.usd_per_pair:.4f}"
            f" (at most {bounds.usd_per_pair} times)"
        )
    if _ratio(old.length_ratio, new.length_ratio) > bounds.length_ratio:
        lines.append(
            f"length of chosen by rejected: {old.length_ratio:.2f} to {new.length_ratio:.2f}"
            f" (at most {bounds.length_ratio} times)"
        )
    return lines


def _ratio(old: float | None, new: float | None) -> float:
    """Return the ratio of two figures, at least 1; 1 if either is unknown or 0."""
    return max(old / new, new / old) if old and new else 1.0


def compare_drift_figures(old: DriftFigures, new: DriftFigures) -> Sequence[tuple[str, str, str]]:
    """Return (name, before, after) of the figures that differ."""
    pairs: list[tuple[str, Any, Any, str]] = [
        ("rows", old.rows, new.rows, ","),
        ("agreement", old.agreement, new.agreement, ".3f"),
        ("USD a pair", old.usd_per_pair, new.usd_per_pair, ".4f"),
        ("length of chosen by rejected", old.length_ratio, new.length_ratio, ".3f"),
    ]
    for name in sorted(old.operations.keys() | new.operations.keys()):
        pairs.append(
            (f"share of {name}", old.operations.get(name, 0.0), new.operations.get(name, 0.0), ".1%")
        )
    formatted = ((name, _format(before, form), _format(after, form)) for name, before, after, form in pairs)
    return [line for line in formatted if line[1] != line[2]]


def _format(value: float | None, form: str) -> str:
    return "not known" if value is None else format(value, form)
