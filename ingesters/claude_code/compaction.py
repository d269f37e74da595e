"""Find the old messages that a compaction keeps behind its summary (2.1.22x).

The boundary names them as a list (`preservedMessages`) or by first and last (`preservedSegment`), and the
record they follow, the anchor: the summary, or the boundary itself.
"""

from typing import Any, NamedTuple

from tracemill.ingesters.claude_code.record_fields import field_strings
from tracemill.ingesters.claude_code.session import SessionEntry


class PreservedMessages(NamedTuple):
    """The anchor, the uuids after it in order, and whether they could not be found."""

    anchor: str
    uuids: list[str]
    broken: bool = False


def read_compaction(entry: SessionEntry, parents: dict[str, str | None]) -> PreservedMessages | None:
    """Return the messages that a compaction keeps, None where its boundary names none.

    The list takes precedence over the segment.
    """
    detail = entry.detail or {}
    listed, segment = detail.get("preservedMessages"), detail.get("preservedSegment")
    if isinstance(listed, dict):
        uuids = listed.get("uuids")
        preserved = field_strings(uuids if isinstance(uuids, list) else listed.get("allUuids"))
        return PreservedMessages(_anchor(listed, entry), preserved)
    if isinstance(segment, dict):
        path = _uuids_between(segment.get("tailUuid"), segment.get("headUuid"), parents)
        return PreservedMessages(_anchor(segment, entry), path or [], path is None)
    return None


def _anchor(preserved: dict[str, Any], entry: SessionEntry) -> str:
    anchor = preserved.get("anchorUuid")
    return anchor if isinstance(anchor, str) else entry.uuid


def _uuids_between(tail: object, head: object, parents: dict[str, str | None]) -> list[str] | None:
    """Return the uuids from head to tail, found from the tail upwards; None if they are not connected."""
    path: list[str] = []
    at = tail if isinstance(tail, str) else None
    while at is not None and len(path) <= len(parents):
        path.append(at)
        if at == head:
            return path[::-1]
        at = parents.get(at)
    return None
