"""Records of a Claude Code file → entries: what bears on a model's context, in file order.

Records of the uuid tree that no model was shown (progress, most system records) leave only their link
to their parent; everything else that is no tree record is counted and dropped. The counts of the report
are taken here, on the records as they stand in the file (all branches included).
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ingesters.claude_code_fields import count_at, object_at, strings, text_at
from ingesters.claude_code_reminders import added_context, hook_context_text, reminder
from ingesters.claude_code_text import flat_text, said, told, tool_references
from ingesters.reading import iter_json_lines
from records.message import Message, ToolCall
from records.skip import IngestReport
from records.state import Usage

Kind = Literal["assistant", "user", "reminder", "compact", "microcompact", "unshown"]

SYNTHETIC = "<synthetic>"
UNTREED = frozenset(
    (
        "summary",
        "file-history-snapshot",
        "file-history-delta",
        "queue-operation",
        "last-prompt",
        "permission-mode",
        "mode",
        "ai-title",
        "custom-title",
        "agent-name",
        "agent-color",
        "agent-setting",
        "tag",
        "pr-link",
        "bridge-session",
        "artifact-comment-monitor",
    )
)
_TREE = frozenset(("user", "assistant", "system", "progress", "attachment"))


@dataclass(slots=True)
class Entry:
    """One record as far as contexts need it. `order` is its line; `real` False for synthetic texts."""

    order: int
    uuid: str
    parent: str | None
    kind: Kind
    side: bool = False
    agent: str | None = None
    text: str = ""
    meta: bool = False
    summary: bool = False
    results: tuple[Message, ...] = ()
    message_id: str = ""
    calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    model: str | None = None
    usage: Usage | None = None
    cwd: str | None = None
    timestamp: str | None = None
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Session:
    """What one file holds: entries in file order and the links of its whole uuid tree."""

    entries: list[Entry] = field(default_factory=list)
    parents: dict[str, str | None] = field(default_factory=dict)
    side_uuids: set[str] = field(default_factory=set)
    names: dict[str, str] = field(default_factory=dict)
    agent_calls: dict[str, str] = field(default_factory=dict)
    seen_tools: dict[str, None] = field(default_factory=dict)
    native: bool = False
    session_id: str = ""
    first_uuid: str | None = None
    version: str | None = None
    started_at: str | None = None
    cwd: str | None = None


def is_native(record: Mapping[str, Any]) -> bool:
    """Whether an object is a record as Claude Code writes them."""
    kind = text_at(record, "type")
    if kind in _TREE:
        return isinstance(record.get("uuid"), str) or isinstance(record.get("sessionId"), str)
    if not kind:  # usage logs of early versions: no type, no content
        return isinstance(record.get("sessionId"), str) and isinstance(record.get("message"), dict)
    return kind in UNTREED and not record.keys().isdisjoint(("sessionId", "leafUuid", "messageId"))


def read_session(path: Path, report: IngestReport) -> Session:
    """All of a file, counted into the report. Raises SourceError where it cannot be read."""
    reader = _Reader(report)
    for number, record in iter_json_lines(path, report):
        reader.take(number, record)
    reader.close()
    return reader.session


class _Reader:
    """Takes records one by one; keeps what later records need to be understood."""

    def __init__(self, report: IngestReport) -> None:
        self.report = report
        self.session = Session()
        self._main: set[str] = set()
        self._side: set[str] = set()
        self._synthetic: set[str] = set()
        self._children: Counter[str] = Counter()
        self._added: set[str] = set()
        self._pending: list[tuple[Entry, str, str]] = []

    def take(self, number: int, record: dict[str, Any]) -> None:
        """One record."""
        self.session.native = self.session.native or is_native(record)
        kind = text_at(record, "type")
        if kind not in _TREE:
            if kind not in UNTREED:
                self.report.skipped["unknown record type" if kind else "record without type"] += 1
            return
        entry = self._entry(number, record)
        if entry is None:
            return
        if kind == "assistant":
            self._assistant(entry, record)
        elif kind == "user":
            self._user(entry, record)
        elif kind == "attachment":
            self._attachment(entry, record)
        elif kind == "system":
            self._system(entry, record)
        else:
            self._progress(record)

    def close(self) -> None:
        """The counts, and hook outputs that no later attachment repeated."""
        for entry, text, shown in self._pending:
            if text not in self._added:
                entry.text = "\n".join(filter(None, (entry.text, shown)))
        report = self.report
        report.steps_main, report.steps_side = len(self._main), len(self._side)
        report.steps_synthetic = len(self._synthetic)
        report.branches_real = sum(1 for count in self._children.values() if count > 1)

    def _entry(self, number: int, record: dict[str, Any]) -> Entry | None:
        """The common part of a tree record; None, counted, for one whose uuid was there before."""
        session = self.session
        uuid = record.get("uuid")
        if not isinstance(uuid, str):
            uuid = f"line-{number}"
        if uuid in session.parents:
            self.report.skipped["repeated uuid"] += 1
            return None
        parent = record.get("parentUuid")
        parent = parent if isinstance(parent, str) else None
        side = record.get("isSidechain") is True
        session.parents[uuid] = parent
        if side:
            session.side_uuids.add(uuid)
        agent = record.get("agentId")
        entry = Entry(number, uuid, parent, "unshown", side, agent if isinstance(agent, str) else None)
        entry.cwd, entry.timestamp = text_at(record, "cwd") or None, text_at(record, "timestamp") or None
        session.session_id = session.session_id or text_at(record, "sessionId")
        session.version = session.version or text_at(record, "version") or None
        session.started_at = session.started_at or entry.timestamp
        session.cwd = session.cwd or entry.cwd
        if session.first_uuid is None and not side:
            session.first_uuid = uuid
        return entry

    def _assistant(self, entry: Entry, record: dict[str, Any]) -> None:
        message = record.get("message")
        if not isinstance(message, dict):
            self.report.skipped["message without content"] += 1
            return
        entry.message_id = text_at(message, "id") or entry.uuid
        entry.model = text_at(message, "model") or None
        entry.text, entry.reasoning, entry.calls, entry.results = said(message.get("content"))
        entry.usage = _usage(message)
        if not entry.side:
            self.report.tool_calls += len(entry.calls)
        elif entry.calls:
            self.report.flags["tool calls of subagents"] += len(entry.calls)
        (self._side if entry.side else self._main).add(entry.message_id)
        self._branch(entry)
        for call in entry.calls:
            self.session.names[call.id] = call.name
        if entry.model == SYNTHETIC or record.get("isApiErrorMessage") is True:
            if entry.model == SYNTHETIC:
                self._synthetic.add(entry.message_id)
            return
        entry.kind = "assistant"
        self.session.entries.append(entry)

    def _user(self, entry: Entry, record: dict[str, Any]) -> None:
        message = record.get("message")
        content = message.get("content") if isinstance(message, dict) else message
        if not isinstance(content, (str, list)):
            self.report.skipped["message without content"] += 1
            return
        session = self.session
        version = text_at(record, "version")
        entry.text, entry.results = told(content, session.names, version, record.get("toolDenialKind"))
        self.report.tool_errors += sum(1 for result in entry.results if result.is_error)
        if entry.results:
            self._results(entry, record, content)
        else:
            self._branch(entry)
        entry.kind = "user"
        entry.meta = record.get("isMeta") is True
        entry.summary = record.get("isCompactSummary") is True
        session.entries.append(entry)

    def _results(self, entry: Entry, record: dict[str, Any], content: Any) -> None:
        """What a result tells beside its text: the agent it ran, the tools it loaded."""
        twin = record.get("toolUseResult")
        agent = twin.get("agentId") if isinstance(twin, dict) else None
        if isinstance(agent, str) and entry.results[0].tool_call_id:
            self.session.agent_calls.setdefault(agent, entry.results[0].tool_call_id)
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == "tool_result":
                self.session.seen_tools.update(dict.fromkeys(tool_references(block.get("content"))))

    def _attachment(self, entry: Entry, record: dict[str, Any]) -> None:
        attachment = record.get("attachment")
        if not isinstance(attachment, dict):
            self.report.skipped["attachment without content"] += 1
            return
        kind = attachment.get("type")
        text = reminder(attachment)
        if text is None:
            self.report.flags["attachment of unknown kind"] += 1
        if kind == "deferred_tools_delta":
            self.session.seen_tools.update(dict.fromkeys(strings(attachment.get("addedNames"))))
        if kind == "hook_additional_context":
            content = attachment.get("content")
            self._added.update(strings(content) if isinstance(content, list) else [flat_text(content)])
        if kind == "hook_success" and (added := added_context(attachment)):
            self._pending.append((entry, added, hook_context_text(attachment, added)))
        entry.text, entry.meta, entry.kind = text or "", True, "reminder"
        # Prompts typed while the agent worked are the user's; notes of finished tasks are the harness's.
        if kind == "queued_command" and attachment.get("commandMode") == "prompt":
            entry.meta = False
        self.session.entries.append(entry)

    def _system(self, entry: Entry, record: dict[str, Any]) -> None:
        subtype = record.get("subtype")
        if subtype == "compact_boundary":
            self.report.compactions += 1
            entry.kind, entry.detail = "compact", object_at(record, "compactMetadata")
            tools = entry.detail.get("preCompactDiscoveredTools")
            self.session.seen_tools.update(dict.fromkeys(strings(tools)))
            self.session.entries.append(entry)
        elif subtype == "microcompact_boundary":
            entry.kind, entry.detail = "microcompact", object_at(record, "microcompactMetadata")
            self.session.entries.append(entry)

    def _progress(self, record: dict[str, Any]) -> None:
        data = record.get("data")
        if isinstance(data, dict) and data.get("type") == "agent_progress":
            agent, call = data.get("agentId"), record.get("parentToolUseID") or data.get("parentToolUseID")
            if isinstance(agent, str) and isinstance(call, str):
                self.session.agent_calls.setdefault(agent, call)

    def _branch(self, entry: Entry) -> None:
        """A child that is no bare result: two of one parent are a branch."""
        if entry.parent is not None:
            self._children[entry.parent] += 1


def _usage(message: dict[str, Any]) -> Usage | None:
    """Reported tokens. Until a stop reason is there, output_tokens is a placeholder of the stream's start."""
    usage = message.get("usage")
    if not isinstance(usage, dict):
        return None
    cached = count_at(usage, "cache_read_input_tokens")
    parts = (count_at(usage, "input_tokens"), cached, count_at(usage, "cache_creation_input_tokens"))
    known = [part for part in parts if part is not None]
    output = count_at(usage, "output_tokens") if message.get("stop_reason") else None
    return Usage(sum(known) if known else None, output, cached)
