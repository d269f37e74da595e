"""Calendar versions of a release: `YYYY.MM.DD`, then `YYYY.MM.DD.1` and so on for more on one day."""

import re
from datetime import date, datetime
from pathlib import Path

from records.errors import ReleaseError

_VERSION = re.compile(r"(\d{4})\.(\d{2})\.(\d{2})(?:\.([1-9]\d*))?")
Key = tuple[int, int, int, int]


def version_key(version: str) -> Key:
    """What versions are ordered by. Raises ReleaseError for a text that is no version."""
    match = _VERSION.fullmatch(version)
    if match:
        year, month, day = (int(part) for part in match.groups()[:3])
        try:
            date(year, month, day)
        except ValueError:
            match = None
        else:
            return year, month, day, int(match[4] or 0)
    raise ReleaseError(
        f"{version!r} is no version of a release", "YYYY.MM.DD or YYYY.MM.DD.N, a day there is"
    )


def versions_in(folder: Path) -> list[str]:
    """The versions that lie in a folder, oldest first; other names are passed over."""
    if not folder.is_dir():
        return []
    names = [path.name for path in folder.iterdir() if path.is_dir() and _VERSION.fullmatch(path.name)]
    return sorted(names, key=version_key)


def next_version(latest: str | None, created: datetime) -> str:
    """The version of the day, later than the latest whatever the clock says."""
    today = f"{created:%Y.%m.%d}"
    if latest is None or version_key(today) > version_key(latest):
        return today
    year, month, day, number = version_key(latest)
    return f"{year:04}.{month:02}.{day:02}.{number + 1}"
