"""Build the manifest of a release from its counts and its specification."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from importlib import metadata
from typing import Any, Literal

from tracemill.data_cards.card.tallies import RowCounts
from tracemill.data_cards.model.compare_versions import RowChanges
from tracemill.data_cards.model.manifest import ChangeEntry, DroppedCount, LengthEntry, Manifest
from tracemill.data_cards.model.release_spec import ReleaseSpec
from tracemill.data_cards.model.versions import parse_version_key
from tracemill.data_cards.writing.tables import WrittenTables

LIMITS = (4096, 8192, 16384, 32768)
"""Limits in tokens for the table of rows that fit."""
UNVERIFIED = (
    "No model or test confirmed these rows: `chosen` is what was agreed on or accepted, not what was proven."
)
_NOT_FROM_SPEC = frozenset({"name", "version", "major", "created"})
VERIFIED = "Every row was confirmed as its column `verified` says."


def build_manifest(
    spec: ReleaseSpec,
    version: str,
    created: datetime,
    written: WrittenTables,
    earlier: tuple[ChangeEntry, ...] = (),
    since: RowChanges | None = None,
    labels_since: RowChanges | None = None,
) -> Manifest:
    """Build the manifest of a written release.

    `earlier` are its earlier versions; `since` and `labels_since` are the changes to pairs and labels since
    the last one.
    """
    tallies = written.tallies
    unverified, every = tallies.verified["none"] + tallies.labels, tallies.rows + tallies.labels
    return Manifest(
        name=spec.name,
        version=version,
        major=parse_version_key(version)[0],
        created=created,
        content_fingerprint=written.fingerprint,
        rows=tallies.rows,
        tables=written.tables,
        **_from_spec(spec),
        **_from_rows(written),
        usd_per_pair=spec.spend_usd / tallies.rows if tallies.rows else 0.0,
        simulated=_simulated(tallies.simulated + tallies.simulated_labels, every),
        simulated_rows=tallies.simulated,
        simulated_labels=tallies.simulated_labels,
        unverified_rows=unverified,
        statement=_statement(unverified, every),
        changes=(*earlier, _change(version, created, tallies, since, labels_since)),
    )


def _change(
    version: str,
    created: datetime,
    tallies: RowCounts,
    since: RowChanges | None,
    labels_since: RowChanges | None,
) -> ChangeEntry:
    counts: dict[str, int] = {}
    for prefix, moved in (("", since), ("labels_", labels_since)):
        if moved is not None:
            counts |= {
                f"{prefix}added": len(moved.added),
                f"{prefix}removed": len(moved.removed),
                f"{prefix}changed": len(moved.changed),
            }
    return ChangeEntry(version=version, created=created, rows=tallies.rows, labels=tallies.labels, **counts)


def _from_spec(spec: ReleaseSpec) -> dict[str, Any]:
    shared = ReleaseSpec.model_fields.keys() & Manifest.model_fields.keys() - _NOT_FROM_SPEC
    values = {name: getattr(spec, name) for name in shared}
    return {**values, "tracemill_version": spec.tracemill_version or _installed_version()}


def _installed_version() -> str:
    try:
        return metadata.version("tracemill")
    except metadata.PackageNotFoundError:
        return "not installed"


def _from_rows(written: WrittenTables) -> dict[str, Any]:
    tallies, rows = written.tallies, max(1, written.tallies.rows)
    every = tallies.rows + tallies.labels
    return {
        "label_sources": _sorted(tallies.label_sources),
        "verified": _sorted(tallies.verified),
        "operations": {f"{old} -> {new}": n for (old, new), n in tallies.operations.most_common()},
        "sources": _nested(tallies.licences),
        "presentation_shares": {k: n / every for k, n in _sorted(tallies.presentations).items()},
        "restricted": _sorted(tallies.restricted),
        "dropped": tuple(
            DroppedCount(operator=operator, reason=reason, rows=n)
            for (operator, reason), n in tallies.dropped.most_common()
        ),
        "lengths": _lengths(tallies),
        "cuts": _sorted(tallies.cuts),
        "votes": _nested(tallies.votes),
        "stated_cost_usd": tallies.stated_cost_usd,
        "chosen_chars": tallies.chosen_chars / rows,
        "rejected_chars": tallies.rejected_chars / rows,
        "style": tallies.style.figures(),
    }


def _lengths(tallies: RowCounts) -> tuple[LengthEntry, ...]:
    if not tallies.lengths:
        return ()
    return tuple(
        LengthEntry(
            max_tokens=limit,
            whole=sum(whole <= limit for whole, _ in tallies.lengths),
            cut=sum(least <= limit < whole for whole, least in tallies.lengths),
        )
        for limit in LIMITS
    )


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))


def _nested(counts: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    nested: dict[str, dict[str, int]] = {}
    for (outer, inner), n in sorted(counts.items()):
        nested.setdefault(outer, {})[inner] = n
    return nested


def _simulated(simulated: int, rows: int) -> Literal["none", "some", "all"]:
    if simulated == rows:
        return "all"
    return "some" if simulated else "none"


def _statement(unverified: int, rows: int) -> str:
    if not unverified:
        return VERIFIED
    return f"{unverified} of {rows} rows are unverified. {UNVERIFIED}"
