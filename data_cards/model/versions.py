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
"""Names the newest version; no version is called so."""
Key = tuple[int, int, int, int, int]


def is_reserved(name: str) -> bool:
    """Return whether a release of this name could be mistaken for a version."""
    return name == LATEST or _VERSION.fullmatch(name) is not None


def parse_version_key(version: str) -> Key:
    """Return the sort key of a version, the major version first.

    Raises ReleaseError if the text is not a version.
    """
    match = _VERSION.fullmatch(version)
    if match:
        year, month, day = (int(number) for number in match.groups()[1:4])
        try:
            date(year, month, day)
        except ValueError:
            match = None
        else:
            return int(match[1] or 1), year, month, day, int(match[5] or 0)
    raise ReleaseError(
        f"{version!r} is not a version of a release", "a valid date as YYYY.MM.DD or YYYY.MM.DD.N"
    )


def versions_in_folder(folder: Path) -> list[str]:
    """Return the versions in a folder, oldest first; other names are ignored."""
    if not folder.is_dir():
        return []
    names = [path.name for path in folder.iterdir() if path.is_dir() and _VERSION.fullmatch(path.name)]
    return sorted(names, key=parse_version_key)


def versions_by_release(folder: Path) -> dict[str, list[str]]:
    """Return the releases below a folder by name, with versions oldest first."""
    versions_of = {each.name: versions_in_folder(each) for each in sorted(folder.glob("*"))}
    return {name: versions for name, versions in versions_of.items() if versions}


def next_version(latest: str | None, created: datetime, major: int = 1) -> str:
    """Return the next version of a day, which is later than the latest one.

    The major version is `major`, or that of the latest version if it is higher.
    """
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
