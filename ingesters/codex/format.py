"""Rollouts of Codex CLI as a format of the registry."""

from tracemill.ingesters.format import FormatInfo, Record, SessionFormat, lazy_function

_RECORDS = frozenset(("session_meta", "turn_context", "response_item", "event_msg", "compacted"))
_FIRST_LINE = frozenset(("id", "timestamp", "instructions"))


def _detect(record: Record) -> str | None:
    """Detect a record with a payload, or the first line of a file from before September 2025."""
    kind = record.get("type")
    if isinstance(kind, str) and kind in _RECORDS:
        return "codex" if isinstance(record.get("payload"), dict) else None
    return "codex" if kind is None and record.keys() >= _FIRST_LINE and "messages" not in record else None


FORMAT = SessionFormat(
    name="codex",
    version=4,
    dialects=("codex",),
    detect=_detect,
    read=lazy_function("tracemill.ingesters.codex.ingest_session:iter_traces"),
    growing=frozenset({"codex"}),
    origin_names_session=True,
    kinds=lazy_function("tracemill.ingesters.codex.vocabulary:kinds_of_record"),
    facts=FormatInfo(
        of="Codex CLI: rollouts in ~/.codex/sessions, also those from before September 2025",
        recognised="records with timestamp, type and payload; a first line with id, timestamp, instructions",
        prompt="instructions and items as they were sent; tools where they are dynamic",
        page="docs/formats/codex.md",
        keys=frozenset(("timestamp", "type", "payload")),
    ),
)
