"""Ingesters for use as a library: one for every format, and one for each of them."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from tracemill.ingesters.discover import UNREADABLE, discover, why_unread
from tracemill.ingesters.read_source import SourceReading
from tracemill.ingesters.reading.source_file import SourceFile
from tracemill.ingesters.registry import source_of
from tracemill.records.errors import SourceError
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace


class SessionIngester:
    """Reader of sessions of every format, recognised by content: one file, or all below a folder.

    `source` is the format that a subclass reads, "" for every one. `reports` holds one IngestReport for
    each source read so far. In a folder, a source that holds no session of the format, or cannot be read,
    sets `error` of its report and stops nothing.
    """

    source: ClassVar[str] = ""

    def __init__(self) -> None:
        self.reports: list[IngestReport] = []

    def ingest(self, path: Path | str) -> Iterator[Trace]:
        """Yield the traces of a file or folder, sources in the order of their paths.

        Raises SourceError if the path does not exist, or is a single file that is not a session of the
        format or cannot be read.
        """
        root = Path(path).expanduser()
        for source in discover([root]):
            began = time.monotonic()
            if refusal := self._refusal(source):
                report = IngestReport(source.name, source.dialect, bytes=source.bytes, error=refusal)
            else:
                reading = SourceReading(source)
                yield from reading
                report = reading.report
            report.seconds = time.monotonic() - began
            self.reports.append(report)
            if report.error and not root.is_dir():
                raise SourceError(report.error)

    def _refusal(self, source: SourceFile) -> str:
        """Return why a source is not read, "" if it is; unreadable files are reported when they are read."""
        found = source_of(source.dialect)
        if found == self.source or source.dialect == UNREADABLE or (found and not self.source):
            return ""
        what = f"of the format {found}" if found else why_unread(source)
        return f"{source.path} is {what}; expected a session of {self.source or 'a known format'}"


class ClaudeCodeIngester(SessionIngester):
    """Reader of sessions of Claude Code: JSONL files below `~/.claude/projects`."""

    source = "claude_code"


class CodexIngester(SessionIngester):
    """Reader of rollouts of Codex CLI: JSONL files below `~/.codex/sessions`."""

    source = "codex"


class PiIngester(SessionIngester):
    """Reader of sessions of Pi: JSONL files that hold a tree of messages."""

    source = "pi"


class GeminiCLIIngester(SessionIngester):
    """Reader of sessions of Gemini CLI: files of chats below `~/.gemini/tmp`."""

    source = "gemini_cli"


class ClineIngester(SessionIngester):
    """Reader of tasks of Cline and Roo Code."""

    source = "cline"


class CursorIngester(SessionIngester):
    """Reader of databases and exports of Cursor."""

    source = "cursor"


class OpencodeIngester(SessionIngester):
    """Reader of exports of opencode: output of `opencode export`, one object for each session."""

    source = "opencode"


class OpenHandsIngester(SessionIngester):
    """Reader of files and session folders of OpenHands."""

    source = "openhands"


class SWEAgentIngester(SessionIngester):
    """Reader of trajectories of SWE-agent: `.traj` files and their folders."""

    source = "swe_agent"


class MiniSWEAgentIngester(SessionIngester):
    """Reader of trajectories of mini-swe-agent: `.traj.json` files and their folders."""

    source = "mini_swe_agent"


class InspectIngester(SessionIngester):
    """Reader of logs of inspect: `.eval` archives or JSON; each sample is a session."""

    source = "inspect_ai"


class ATIFIngester(SessionIngester):
    """Reader of ATIF trajectories: runs of Harbor and Terminal-Bench, with their continuations."""

    source = "atif"


class OTelIngester(SessionIngester):
    """Reader of OpenTelemetry spans of generative AI: OTLP as JSON; each trace is a session."""

    source = "otel"


class STSIngester(SessionIngester):
    """Reader of session traces of the Hub."""

    source = "sts"


class SWEGymIngester(SessionIngester):
    """Reader of tables of runs: rows of SWE-Gym, and chat rows of other shapes."""

    source = "swe_gym"
