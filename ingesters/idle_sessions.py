"""Find out whether a session is still being written: the file and its last time stamp are recent.

A file that was copied or checked out is new on the disk and old in its content, so both count. A session
without time stamps is not being written: agents stamp every record.
"""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tracemill.ingesters.discover import walk_files_below
from tracemill.ingesters.reading.source_file import SourceFile
from tracemill.ingesters.registry import format_of

_KEY = b'"timestamp"'
_STAMP = re.compile(_KEY + rb'\s*:\s*"([0-9T:.+Z -]{16,40})"')
_TAIL_BYTES = (1 << 16, 1 << 22)
"""Sizes of the file's end that are searched for a time stamp, tried in order."""


def is_session_not_idle(source: SourceFile, now: datetime, idle: timedelta) -> bool:
    """Return whether a session was written to within `idle`; tables of rows are always finished.

    Raises OSError if the source is gone.
    """
    form = format_of(source.dialect)
    if form is None or source.dialect not in form.growing or source.url or not source.stamp.text:
        return False
    written = datetime.fromtimestamp(int(source.stamp.text.split()[0]) / 1e9, UTC)
    if now - written > idle:
        return False
    latest = find_last_session_activity(source.path)
    return latest is not None and now - latest <= idle


def find_last_session_activity(path: Path) -> datetime | None:
    """Return the last time stamp of a session file, or of the newest file of a session folder.

    Returns None if there is none. Raises OSError if it cannot be read.
    """
    if path.is_dir():
        files = (entry for entry in walk_files_below(str(path)) if entry.name.endswith(".json"))
        newest = max(files, key=lambda entry: entry.stat().st_mtime_ns, default=None)
        path = path if newest is None else Path(newest.path)
    if not path.is_file():
        return None
    size = path.stat().st_size
    with path.open("rb") as stream:
        for tail in _TAIL_BYTES:
            stream.seek(max(0, size - tail))
            if stamp := _last_stamp(stream.read()):
                return _parse_time(stamp)
            if tail >= size:
                break
    return None


def _last_stamp(data: bytes) -> str:
    """Return the last time stamp in the text of a session, "" if there is none; searched from the end."""
    place = data.rfind(_KEY)
    while place >= 0:
        if found := _STAMP.match(data, place):
            return found[1].decode("ascii")
        place = data.rfind(_KEY, 0, place)
    return ""


def _parse_time(text: str) -> datetime | None:
    """Return a time stamp in UTC; one without a zone is in local time, as OpenHands writes it."""
    try:
        return datetime.fromisoformat(text.strip()).astimezone(UTC)
    except ValueError:
        return None
