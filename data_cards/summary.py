"""From counts and specification to the manifest."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from importlib import metadata
from typing import Any, Literal

from data_cards.manifest import DroppedCount, Manifest
from data_cards.spec import ReleaseSpec
from data_cards.tables import Written

UNVERIFIED = (
    "No model or test confirmed these rows: `chosen` is what was agreed on or accepted, not what was proven."
)
VERIFIED = "Every row was confirmed as its column `verified` says."


def build_manifest(spec: ReleaseSpec, version: str, created: datetime, written: Written) -> Manifest:
    """The manifest of a release that was written."""
    tallies = written.tallies
    unverified = tallies.verified["none"]
    return Manifest(
        name=spec.name,
        version=version,
        created=created,
        content_fingerprint=written.fingerprint,
        rows=tallies.rows,
        tables=written.tables,
        **_from_spec(spec),
        **_from_rows(written),
        usd_per_pair=spec.spend_usd / tallies.rows,
        simulated=_simulated(tallies.simulated, tallies.rows),
        simulated_rows=tallies.simulated,
        unverified_rows=unverified,
        statement=_statement(unverified, tallies.rows),
    )


def _from_spec(spec: ReleaseSpec) -> dict[str, Any]:
    names = (
        "recipe",
        "recipe_fingerprint",
        "configuration_fingerprint",
        "losses",
        "funnel",
        "teachers",
        "policy",
        "wording",
        "spend_usd",
        "cap_usd",
        "redaction",
        "redaction_counts",
        "git_commit",
    )
    taken = {name: getattr(spec, name) for name in names}
    return {**taken, "tracemill_version": spec.tracemill_version or _installed()}


def _installed() -> str:
    try:
        return metadata.version("tracemill")
    except metadata.PackageNotFoundError:
        return "not installed"


def _from_rows(written: Written) -> dict[str, Any]:
    tallies = written.tallies
    return {
        "label_sources": _sorted(tallies.label_sources),
        "verified": _sorted(tallies.verified),
        "operations": {f"{old} -> {new}": n for (old, new), n in tallies.operations.most_common()},
        "sources": _nested(tallies.licences),
        "presentation_shares": {k: n / tallies.rows for k, n in _sorted(tallies.presentations).items()},
        "dropped": tuple(
            DroppedCount(operator=operator, reason=reason, rows=n)
            for (operator, reason), n in tallies.dropped.most_common()
        ),
        "votes": _nested(tallies.votes),
        "stated_cost_usd": tallies.stated_cost_usd,
    }


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
