"""Split a file of Claude Code that holds several sessions: files that somebody joined.

A record that has another session id, and a parent in the file, goes on with its parent's session, as those of
a resumed session do. One without a parent begins a session.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tracemill.ingesters.claude_code.entries import SessionReader
from tracemill.ingesters.claude_code.record_fields import TREE_TYPES, field_text
from tracemill.ingesters.claude_code.session import SessionFile
from tracemill.ingesters.reading.json_reading import iter_json_lines
from tracemill.records.ingest_report import IngestReport

JOINED = "another session in the same file"


def read_sessions(path: Path, report: IngestReport) -> list[SessionFile]:
    """Read all sessions of a file and count them in the report. Raises SourceError if it cannot be read."""
    joined = _JoinedSessions(report)
    for number, record in iter_json_lines(path, report):
        joined.read(number, record)
    return joined.close()


class _JoinedSessions:
    """The readers of a file's sessions, and which of them reads the records of a session id."""

    def __init__(self, report: IngestReport) -> None:
        self._report = report
        self._latest = SessionReader(report)
        self._readers = [self._latest]
        self._latest_id = ""
        self._by_id: dict[str, SessionReader] = {}
        self._undecided: dict[str, list[tuple[int, dict[str, Any]]]] = {}

    def read(self, number: int, record: dict[str, Any]) -> None:
        """Give a record to the reader of its session."""
        named = record.get("sessionId")
        if named == self._latest_id or not isinstance(named, str) or not named:
            self._latest.read(number, record)
            return
        if named not in self._by_id:
            if self._by_id and field_text(record, "type") not in TREE_TYPES:
                self._undecided.setdefault(named, []).append((number, record))
                return
            self._by_id[named] = self._reader_of(record)
        self._latest, self._latest_id = self._by_id[named], named
        for earlier in self._undecided.pop(named, ()):
            self._latest.read(*earlier)
        self._latest.read(number, record)

    def close(self) -> list[SessionFile]:
        """Return the sessions, in the order in which they begin."""
        for waiting in self._undecided.values():
            for number, record in waiting:
                self._latest.read(number, record)
        for reader in self._readers:
            reader.close()
        return [reader.session for reader in self._readers]

    def _reader_of(self, record: Mapping[str, Any]) -> SessionReader:
        """Return the reader of the first record of the tree that has a session id of its own."""
        parent = field_text(record, "parentUuid") or field_text(record, "logicalParentUuid")
        if not self._by_id or record.get("isSidechain") is True:
            return self._latest
        if parent:
            holding = (reader for reader in self._readers if parent in reader.session.parents)
            return next(holding, self._latest)
        self._report.flags[JOINED] += 1
        self._readers.append(SessionReader(self._report))
        return self._readers[-1]
