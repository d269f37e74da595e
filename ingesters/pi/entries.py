"""Read the entries of a Pi session file: the header, and a tree of entries in the order they were written.

Version 1 of the file has neither ids nor parents: its entries follow each other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracemill.ingesters.common.openai_messages import as_mapping, first_text
from tracemill.ingesters.reading.json_reading import UnreadLines, iter_json_lines
from tracemill.records.ingest_report import IngestReport, record_type

SECOND_HEADER = "second header of a session"
SECOND_ENTRY = "second entry of one id"
_UNSHOWN_TEXT = """thinking_level_change model_change active_tools_change custom label session_info leaf
    session_init title mode_change service_tier_change ttsr_injection"""
UNSHOWN = frozenset(_UNSHOWN_TEXT.split())
"""Types of entries that no prompt shows, those of oh-my-pi last."""
SHOWN = frozenset(("message", "compaction", "branch_summary", "custom_message"))


@dataclass(frozen=True, slots=True)
class PiEntry:
    """One entry of the tree. `torn` is True if a line between it and its parent could not be read."""

    id: str
    parent: str | None
    kind: str
    record: Mapping[str, Any]
    torn: bool = False

    @property
    def message(self) -> Mapping[str, Any]:
        """Return the message of the entry, an empty one where it has none."""
        return as_mapping(self.record.get("message"))

    @property
    def time(self) -> str:
        """Return when the entry was written, "" if it does not say."""
        return first_text(self.record.get("timestamp")) or ""


def retained_entries(compaction: PiEntry) -> list[PiEntry] | None:
    """Return the messages that a compaction holds itself, as entries; None where it names kept ones."""
    tail = compaction.record.get("retainedTail")
    if not isinstance(tail, list):
        return None
    return [
        PiEntry(
            f"{compaction.id}/{place}",
            compaction.id,
            "message",
            {"message": message, "timestamp": compaction.time},
        )
        for place, message in enumerate(tail)
    ]


@dataclass(slots=True)
class PiSession:
    """The header of a file and its entries by id, in the order they were written."""

    header: Mapping[str, Any] = field(default_factory=dict)
    entries: dict[str, PiEntry] = field(default_factory=dict)

    def path_to(self, entry_id: str | None) -> tuple[list[PiEntry], bool]:
        """Return the entries from the root to an entry, and whether the root is reached."""
        path: list[PiEntry] = []
        whole, met = True, set[str]()
        while entry_id is not None and whole:
            entry = self.entries.get(entry_id)
            whole = entry is not None and entry_id not in met
            if entry is not None and whole:
                met.add(entry_id)
                path.append(entry)
                whole, entry_id = not entry.torn, entry.parent
        return path[::-1], whole


def read_session(path: Path, report: IngestReport) -> PiSession:
    """Return the session of a file and count its records. Raises SourceError if it cannot be read."""
    session = PiSession()
    before: str | None = None
    unread = UnreadLines(report)
    for place, (_, record) in enumerate(iter_json_lines(path, report, kind=None)):
        kind = _record_kind(record)
        report.records[kind] += 1
        if kind == "session":
            if session.header:
                report.skipped[SECOND_HEADER] += 1
            session.header = session.header or record
            continue
        named, torn = first_text(record.get("id")), bool(unread.passed())
        if named is None or "parentId" not in record:
            parent = before
        else:
            parent, torn = first_text(record.get("parentId")), False
        entry = PiEntry(named or str(place), parent, first_text(record.get("type")) or "", record, torn)
        if entry.id in session.entries:
            report.skipped[SECOND_ENTRY] += 1
            continue
        session.entries[entry.id] = entry
        before = entry.id
    return session


def _record_kind(record: Mapping[str, Any]) -> str:
    """Return the type of a record, with the role of a message."""
    kind = record_type(record.get("type"))
    message = record.get("message")
    return f"{kind} {record_type(message.get('role'))}" if isinstance(message, dict) else kind
