"""Gemini CLI sessions as a format of the registry."""

from collections.abc import Iterator
from pathlib import Path

from tracemill.ingesters.format import Format, FormatFacts, KindSeen, Record
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace


def _detect(record: Record) -> str | None:
    """Detect a session, or the first line of one, by `sessionId` and `projectHash`."""
    return "gemini_cli" if "projectHash" in record and isinstance(record.get("sessionId"), str) else None


def _read(path: Path, dialect: str, report: IngestReport) -> Iterator[Trace]:
    from tracemill.ingesters.gemini_cli.ingest_session import iter_traces

    return iter_traces(path, report)


def _kinds(record: Record) -> Iterator[KindSeen]:
    from tracemill.ingesters.gemini_cli.vocabulary import kinds_of_record

    return kinds_of_record(record)


FORMAT = Format(
    name="gemini_cli",
    version=1,
    dialects=("gemini_cli",),
    detect=_detect,
    read=_read,
    kinds=_kinds,
    growing=frozenset({"gemini_cli"}),
    facts=FormatFacts(
        of="Gemini CLI: sessions in ~/.gemini/tmp/*/chats, one object or lines",
        recognised="an object, or a first line, with sessionId and projectHash",
        prompt="messages; system prompt and tools are not recorded",
        page="docs/formats/gemini_cli.md",
        keys=frozenset(("id", "timestamp", "type", "content", "sessionId", "projectHash", "messages")),
    ),
)
