"""Gemini CLI sessions as a format of the registry."""

from tracemill.ingesters.format import FormatInfo, Record, SessionFormat, lazy_function


def _detect(record: Record) -> str | None:
    """Detect a session, or the first line of one, by `sessionId` and `projectHash`."""
    return "gemini_cli" if "projectHash" in record and isinstance(record.get("sessionId"), str) else None


FORMAT = SessionFormat(
    name="gemini_cli",
    version=4,
    dialects=("gemini_cli",),
    detect=_detect,
    read=lazy_function("tracemill.ingesters.gemini_cli.ingest_session:iter_traces"),
    kinds=lazy_function("tracemill.ingesters.gemini_cli.vocabulary:kinds_of_record"),
    growing=frozenset({"gemini_cli"}),
    facts=FormatInfo(
        of="Gemini CLI: sessions in ~/.gemini/tmp/*/chats, one object or lines",
        recognised="an object, or a first line, with sessionId and projectHash",
        prompt="messages; system prompt and tools are not recorded",
        page="docs/formats/gemini_cli.md",
        keys=frozenset(("id", "timestamp", "type", "content", "sessionId", "projectHash", "messages")),
    ),
)
