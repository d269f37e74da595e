"""Whether a session is still being written: it was touched just now, and what it says is as recent.

A file that was only copied or checked out is new on the disk and old in what it records, so both
count. A session without a time stamp is none that is being written: the tools that write them stamp
every record.
"""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tracemill.ingesters.discover import walk_files_below
from tracemill.ingesters.reading.source_file import SourceFile
from tracemill.ingesters.registry import format_of

_STAMP = re.compile(rb'"timestamp"\s*:\s*"([0-9T:.+Z -]{16,40})"')
_TAILS = (1 << 16, 1 << 22)
"""Bytes of the end of a file that are looked at for a time stamp, one after the other."""


def is_session_not_idle(source: SourceFile, now: datetime, idle: timedelta) -> bool:
    """Whether a source is a session that was added to within `idle`. Tables of rows never are: what is
    in them is finished. Raises OSError where the source is gone."""
    form = format_of(source.dialect)
    if form is None or source.dialect not in form.growing or source.url or not source.stamp.text:
        return False
    written = datetime.fromtimestamp(int(source.stamp.text.split()[0]) / 1e9, UTC)
    if now - written > idle:
        return False
    said = find_last_session_activity(source.path)
    return said is not None and now - said <= idle


def find_last_session_activity(path: Path) -> datetime | None:
    """The last time stamp in a session file, or in the newest file of a session folder; None where
    there is none. Raises OSError where it cannot be read."""
    if path.is_dir():
        files = (entry for entry in walk_files_below(str(path)) if entry.name.endswith(".json"))
        newest = max(files, key=lambda entry: entry.stat().st_mtime_ns, default=None)
        path = path if newest is None else Path(newest.path)
    if not path.is_file():
        return None
    size = path.stat().st_size
    with path.open("rb") as stream:
        for tail in _TAILS:
            stream.seek(max(0, size - tail))
            found = _STAMP.findall(stream.read())
            if found:
                return _moment(found[-1].decode("ascii"))
            if tail >= size:
                break
    return None


def _moment(text: str) -> datetime | None:
    """A time stamp in UTC; one without a zone is in the time of this machine, as OpenHands writes it."""
    try:
        return datetime.fromisoformat(text.strip()).astimezone(UTC)
    except ValueError:
        return None
