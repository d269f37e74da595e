"""Decide whether enough is new for a version of a release."""

from collections.abc import Iterable
from datetime import UTC, datetime

from tracemill.data_cards.model.find_release import LocalRelease
from tracemill.data_cards.model.manifest import read_manifest
from tracemill.data_cards.model.versions import versions_in_folder
from tracemill.flows.config.release_settings import ReleaseSettings
from tracemill.flows.release.split_store import SplitState
from tracemill.records.pair import NormalizedDPOPair
from tracemill.records.storage.workspace import Workspace


def last_version(work: Workspace, name: str) -> LocalRelease | None:
    """Return the newest version of a release of the workspace, None if there is none."""
    folder = work.releases_dir / name
    versions = versions_in_folder(folder)
    if not versions:
        return None
    return LocalRelease(folder / versions[-1], read_manifest(folder / versions[-1]))


def why_not_due(
    work: Workspace, settings: ReleaseSettings, released: SplitState, kept: Iterable[NormalizedDPOPair]
) -> str:
    """Return why no version is due, empty if one is.

    A version is due with `min_new_pairs` pairs that the last version lacks, or once that version is
    `max_age_days` old.
    """
    new = sum(not released.holds(each.pair.pair_id) for each in kept)
    if new >= settings.min_new_pairs:
        return ""
    waiting = f"not due: {new:,} of {settings.min_new_pairs:,} new pairs"
    last = last_version(work, settings.name)
    if last is None:
        return waiting
    days = (datetime.now(UTC) - last.manifest.created).total_seconds() / 86_400
    if settings.max_age_days is not None and days >= settings.max_age_days:
        return ""
    return f"{waiting} since version {last.manifest.version}, {days:.1f} days old"
