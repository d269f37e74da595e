"""Session traces of the Hub as a format of the registry."""

from tracemill.ingesters.format import FormatInfo, Record, SessionFormat, lazy_function


def _detect(record: Record) -> str | None:
    """Detect the header of a session by its harness and id."""
    named = isinstance(record.get("harness"), str) and isinstance(record.get("id"), str)
    return "sts" if named and record.get("type") == "session" else None


FORMAT = SessionFormat(
    name="sts",
    version=10,
    dialects=("sts",),
    detect=_detect,
    read=lazy_function("tracemill.ingesters.sts.ingest_session:iter_traces"),
    kinds=lazy_function("tracemill.ingesters.sts.vocabulary:kinds_of_line"),
    facts=FormatInfo(
        of="session traces of the Hub (STS), and what `tracemill export --format sts` writes",
        recognised="a first record of type session with harness and id",
        prompt="messages, approximate; of our own exports tools and fidelity too",
        page="docs/formats/sts.md",
        keys=frozenset(("type", "harness", "id", "message", "name")),
    ),
)
