"""Exports of opencode sessions as a format of the registry."""

from tracemill.ingesters.format import Format, FormatFacts, Record, lazy_function


def _detect(record: Record) -> str | None:
    """Detect an export by its `info`, and messages that each have an `info` and `parts`."""
    info, messages = record.get("info"), record.get("messages")
    if not isinstance(info, dict) or not isinstance(info.get("id"), str) or not isinstance(messages, list):
        return None
    first = messages[0] if messages else {"info": None, "parts": None}
    return "opencode" if isinstance(first, dict) and {"info", "parts"} <= first.keys() else None


FORMAT = Format(
    name="opencode",
    version=1,
    dialects=("opencode",),
    detect=_detect,
    read=lazy_function("tracemill.ingesters.opencode.ingest_session:iter_traces"),
    kinds=lazy_function("tracemill.ingesters.opencode.vocabulary:kinds_of_export"),
    facts=FormatFacts(
        of="opencode: a session as `opencode export` writes it, one object",
        recognised="an object with info and messages, each with info and parts",
        prompt="messages; system prompt in versions of 2025; tools are not recorded",
        page="docs/formats/opencode.md",
        keys=frozenset(("info", "messages", "todos", "parts")),
    ),
)
