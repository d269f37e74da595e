"""Databases and exports of Cursor as a format of the registry."""

from collections.abc import Iterator
from pathlib import Path

from tracemill.ingesters.format import FormatInfo, Record, SessionFormat, lazy_function
from tracemill.ingesters.reading.source_file import SourceFile
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace


def _no_record(record: Record) -> str | None:
    """Return None: conversations are in a database or in Markdown, never in a JSON object."""
    return None


def _detect_database(path: Path) -> str | None:
    """Detect a database by the keys of conversations, also in its write-ahead log."""
    from tracemill.ingesters.cursor.conversations import holds_conversations
    from tracemill.ingesters.reading.sqlite_files import find_in_database

    return "cursor" if find_in_database(path, holds_conversations) else None


def _detect_text(head: bytes) -> str | None:
    """Detect an export by the line under its title."""
    if b"_Exported on " not in head:
        return None
    from tracemill.ingesters.cursor.markdown import begins_export

    return "cursor_markdown" if begins_export(head) else None


def _read(path: Path, report: IngestReport) -> Iterator[Trace]:
    from tracemill.ingesters.cursor import ingest_conversations as ingest

    return (ingest.iter_traces if report.dialect == "cursor" else ingest.iter_export_traces)(path, report)


def _beside(path: Path) -> Iterator[str]:
    """Yield the log of a database, and the file that names the folder of its workspace."""
    from tracemill.ingesters.reading.sqlite_files import write_ahead_log

    if not path.name.endswith(".md"):
        yield str(write_ahead_log(path))
        yield str(path.with_name("workspace.json"))


def _without_claimed(sources: list[SourceFile]) -> list[SourceFile]:
    """Remove the file beside a database that names its folder."""
    folders = {source.path.parent for source in sources if source.dialect == "cursor"}
    return [each for each in sources if each.path.name != "workspace.json" or each.path.parent not in folders]


FORMAT = SessionFormat(
    name="cursor",
    version=4,
    dialects=("cursor", "cursor_markdown"),
    detect=_no_record,
    detect_database=_detect_database,
    detect_text=_detect_text,
    read=_read,
    beside=_beside,
    without_claimed=_without_claimed,
    records=lazy_function("tracemill.ingesters.cursor.vocabulary:read_records"),
    kinds=lazy_function("tracemill.ingesters.cursor.vocabulary:kinds_of_conversation"),
    facts=FormatInfo(
        of="Cursor: the databases of the editor (state.vscdb), and conversations exported as Markdown",
        recognised="SQLite with keys of conversations; Markdown with a line of the export under its title",
        prompt="messages, approximate; no system prompt, tools or attachments; exports are counted only",
        page="docs/formats/cursor.md",
        keys=frozenset(("composerId", "bubbleId", "fullConversationHeadersOnly", "toolFormerData")),
    ),
)
