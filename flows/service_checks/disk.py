"""Check the room on the disk of the workspace."""

import shutil
from pathlib import Path

from tracemill.flows.config.run_settings import RunSettings
from tracemill.flows.live_checks.live_check import LiveCheck

MIN_FREE_BYTES = 500_000_000


def check_disk(settings: RunSettings) -> LiveCheck:
    """Return whether a run has enough disk space: MIN_FREE_BYTES, and twice the largest release.

    A release is written beside the earlier ones before it is renamed.
    """
    root = settings.workspace.expanduser().absolute()
    there = next(path for path in (root, *root.parents) if path.exists())
    free = shutil.disk_usage(there).free
    largest = max(map(_folder_bytes, (root / "releases").glob("*/*/")), default=0)
    needed = max(MIN_FREE_BYTES, 2 * largest)
    said = f"{free / 1e9:,.1f} GB free at {there}"
    if free < needed:
        wanted = f"expected at least {needed / 1e9:,.1f} GB"
        return LiveCheck("disk", "failed", f"{said}; {wanted}; remove old releases or move the workspace")
    return LiveCheck("disk", "ok", said)


def _folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
