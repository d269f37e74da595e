"""Calendar versions of a release: `YYYY.MM.DD`, then `YYYY.MM.DD.1` and so on for more on one day.

Within a major version rows and splits only grow. The first bears no number, later ones are `v2-YYYY.MM.DD`.
"""

import re
from datetime import date, datetime
from pathlib import Path

from tracemill.records.errors import ReleaseError

REPO_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
"""A dataset of the Hub."""
_VERSION = re.compile(r"(?:v([2-9]|[1-9]\d+)-)?(\d{4})\.(\d{2})\.(\d{2})(?:\.([1-9]\d*))?")
LATEST = "latest"
"""Stands for the newest version, as no version does."""
Key = tuple[int, int, int, int, int]


def is_reserved(name: str) -> bool:
    """Whether a release of this name could not be told from a version where either may be typed."""
    return name == LATEST or _VERSION.fullmatch(name) is not None


def parse_version_key(version: str) -> Key:
    """What versions are ordered by, the major version first. Raises ReleaseError for a text that is no
    version."""
    match = _VERSION.fullmatch(version)
    if match:
        year, month, day = (int(part) for part in match.groups()[1:4])
        try:
            date(year, month, day)
        except ValueError:
            match = None
        else:
            return int(match[1] or 1), year, month, day, int(match[5] or 0)
    raise ReleaseError(
        f"{version!r} is no version of a release", "YYYY.MM.DD or YYYY.MM.DD.N, a day there is"
    )


def versions_in_folder(folder: Path) -> list[str]:
    """The versions that lie in a folder, oldest first; other names are passed over."""
    if not folder.is_dir():
        return []
    names = [path.name for path in folder.iterdir() if path.is_dir() and _VERSION.fullmatch(path.name)]
    return sorted(names, key=parse_version_key)


def versions_by_release(folder: Path) -> dict[str, list[str]]:
    """The releases below a folder by name, versions oldest first; names without one are left out."""
    found = {each.name: versions_in_folder(each) for each in sorted(folder.glob("*"))}
    return {name: versions for name, versions in found.items() if versions}


def next_version(latest: str | None, created: datetime, major: int = 1) -> str:
    """The version of the day, later than the latest whatever the clock says, of this major version or the
    latest's where that is later."""
    today = f"{_prefix(major)}{created:%Y.%m.%d}"
    if latest is None or parse_version_key(today) > parse_version_key(latest):
        return today
    same, year, month, day, number = parse_version_key(latest)
    of_day = f"{_prefix(same)}{created:%Y.%m.%d}"
    if parse_version_key(of_day) > parse_version_key(latest):
        return of_day
    return f"{_prefix(same)}{year:04}.{month:02}.{day:02}.{number + 1}"


def _prefix(major: int) -> str:
    return f"v{major}-" if major > 1 else ""
