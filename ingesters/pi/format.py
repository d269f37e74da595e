"""Pi sessions as a format of the registry."""

from tracemill.ingesters.format import FormatInfo, Record, SessionFormat, lazy_function

_ENTRY_TYPES = frozenset(("message", "model_change", "thinking_level_change", "compaction", "branch_summary"))
_OF_OTHERS = frozenset(("sessionId", "uuid", "harness"))


def _detect(record: Record) -> str | None:
    """Detect the header of a session, and an entry of the tree where the header is missing."""
    if not _OF_OTHERS.isdisjoint(record) or not isinstance(record.get("id"), str):
        return None
    kind = record.get("type")
    if not isinstance(kind, str):
        return None
    is_header = kind == "session" and "cwd" in record and "timestamp" in record
    is_entry = kind in _ENTRY_TYPES and "parentId" in record and "timestamp" in record
    return "pi" if is_header or is_entry else None


FORMAT = SessionFormat(
    name="pi",
    version=4,
    dialects=("pi",),
    detect=_detect,
    read=lazy_function("tracemill.ingesters.pi.ingest_session:iter_traces"),
    kinds=lazy_function("tracemill.ingesters.pi.vocabulary:kinds_of_entry"),
    growing=frozenset({"pi"}),
    facts=FormatInfo(
        of="Pi: sessions of version 1 to 3 in ~/.pi/agent/sessions",
        recognised="a first record of type session with cwd and timestamp; entries with id and parentId",
        prompt="messages; system prompt and tools are not recorded",
        page="docs/formats/pi.md",
        keys=frozenset(("type", "id", "parentId", "timestamp", "message")),
    ),
)
