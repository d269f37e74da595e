"""Session traces of the Hub as a format of the registry."""

from collections.abc import Iterator
from pathlib import Path

from tracemill.ingesters.format import Format, FormatFacts, KindSeen, Record
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace


def _detect(record: Record) -> str | None:
    """Detect the header of a session by its harness and id."""
    named = isinstance(record.get("harness"), str) and isinstance(record.get("id"), str)
    return "sts" if named and record.get("type") == "session" else None


def _read(path: Path, dialect: str, report: IngestReport) -> Iterator[Trace]:
    from tracemill.ingesters.sts.ingest_session import iter_traces

    return iter_traces(path, report)


def _kinds(record: Record) -> Iterator[KindSeen]:
    from tracemill.ingesters.sts.vocabulary import kinds_of_line

    return kinds_of_line(record)


FORMAT = Format(
    name="sts",
    version=1,
    dialects=("sts",),
    detect=_detect,
    read=_read,
    kinds=_kinds,
    facts=FormatFacts(
        of="session traces of the Hub (STS), and what `tracemill export --format sts` writes",
        recognised="a first record of type session with harness and id",
        prompt="messages, approximate; of our own exports tools and fidelity too",
        page="docs/formats/sts.md",
        keys=frozenset(("type", "harness", "id", "message", "name")),
    ),
)
