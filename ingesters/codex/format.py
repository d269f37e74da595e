"""Rollouts of Codex CLI as a format of the registry."""

from collections.abc import Iterator
from pathlib import Path

from tracemill.ingesters.format import Format, FormatFacts, KindSeen, Record
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace

_RECORDS = frozenset(("session_meta", "turn_context", "response_item", "event_msg", "compacted"))
_FIRST_LINE = frozenset(("id", "timestamp", "instructions"))


def _detect(record: Record) -> str | None:
    """Detect a record with a payload, or the first line of a file from before September 2025."""
    kind = record.get("type")
    if isinstance(kind, str) and kind in _RECORDS:
        return "codex" if isinstance(record.get("payload"), dict) else None
    return "codex" if kind is None and record.keys() >= _FIRST_LINE and "messages" not in record else None


def _read(path: Path, dialect: str, report: IngestReport) -> Iterator[Trace]:
    from tracemill.ingesters.codex.ingest_session import iter_traces

    return iter_traces(path, report)


def _kinds(record: Record) -> Iterator[KindSeen]:
    from tracemill.ingesters.codex.vocabulary import kinds_of_record

    return kinds_of_record(record)


FORMAT = Format(
    name="codex",
    version=1,
    dialects=("codex",),
    detect=_detect,
    read=_read,
    growing=frozenset({"codex"}),
    origin_names_session=True,
    kinds=_kinds,
    facts=FormatFacts(
        of="Codex CLI: rollouts in ~/.codex/sessions, also those from before September 2025",
        recognised="records with timestamp, type and payload; a first line with id, timestamp, instructions",
        prompt="instructions and items as they were sent; tools where they are dynamic",
        page="docs/formats/codex.md",
        keys=frozenset(("timestamp", "type", "payload")),
    ),
)
