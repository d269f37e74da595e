"""Which old messages a compaction leaves in the context, behind its summary (2.1.22x).

The boundary names them as a list (`preservedMessages`) or by their ends (`preservedSegment`), and the
record they stand behind, its anchor: the summary, or the boundary itself.
"""

from typing import Any, NamedTuple

from tracemill.ingesters.claude_code.record_fields import field_strings
from tracemill.ingesters.claude_code.session import Entry


class Preserved(NamedTuple):
    """The anchor, the uuids behind it in their order, and whether they could not be told."""

    anchor: str
    uuids: list[str]
    broken: bool = False


def read_compaction(entry: Entry, parents: dict[str, str | None]) -> Preserved | None:
    """What the compaction of a boundary keeps; None where it says nothing. The list wins over the
    segment."""
    detail = entry.detail or {}
    listed, segment = detail.get("preservedMessages"), detail.get("preservedSegment")
    if isinstance(listed, dict):
        uuids = listed.get("uuids")
        known = field_strings(uuids if isinstance(uuids, list) else listed.get("allUuids"))
        return Preserved(_anchor(listed, entry), known)
    if isinstance(segment, dict):
        path = _walk(segment.get("tailUuid"), segment.get("headUuid"), parents)
        return Preserved(_anchor(segment, entry), path or [], path is None)
    return None


def _anchor(given: dict[str, Any], entry: Entry) -> str:
    anchor = given.get("anchorUuid")
    return anchor if isinstance(anchor, str) else entry.uuid


def _walk(tail: object, head: object, parents: dict[str, str | None]) -> list[str] | None:
    """The uuids from head to tail, found from the tail upwards; None where the two do not meet."""
    path: list[str] = []
    at = tail if isinstance(tail, str) else None
    while at is not None and len(path) <= len(parents):
        path.append(at)
        if at == head:
            return path[::-1]
        at = parents.get(at)
    return None
