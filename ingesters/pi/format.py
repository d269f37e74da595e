"""Pi sessions as a format of the registry."""

from collections.abc import Iterator
from pathlib import Path

from tracemill.ingesters.format import Format, FormatFacts, KindSeen, Record
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace

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


def _read(path: Path, dialect: str, report: IngestReport) -> Iterator[Trace]:
    from tracemill.ingesters.pi.ingest_session import iter_traces

    return iter_traces(path, report)


def _kinds(record: Record) -> Iterator[KindSeen]:
    from tracemill.ingesters.pi.vocabulary import kinds_of_entry

    return kinds_of_entry(record)


FORMAT = Format(
    name="pi",
    version=1,
    dialects=("pi",),
    detect=_detect,
    read=_read,
    kinds=_kinds,
    growing=frozenset({"pi"}),
    facts=FormatFacts(
        of="Pi: sessions of version 1 to 3 in ~/.pi/agent/sessions",
        recognised="a first record of type session with cwd and timestamp; entries with id and parentId",
        prompt="messages; system prompt and tools are not recorded",
        page="docs/formats/pi.md",
        keys=frozenset(("type", "id", "parentId", "timestamp", "message")),
    ),
)
