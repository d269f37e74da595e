"""Records of a Claude Code file → entries: what bears on a model's context, in file order.

Records of the uuid tree that no model was shown (progress, most system records) leave only their link
to their parent; everything else that is no tree record is counted and dropped. The counts of the report
are taken here, on the records as they stand in the file (all branches included).
"""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from tracemill.ingesters.claude_code.attachments import (
    EXACT,
    attachment_hook_text,
    attachment_reminder,
    read_attachment_context,
    rendered_text,
)
from tracemill.ingesters.claude_code.content_blocks import (
    compact_arguments,
    flatten_content_blocks,
    loaded_tools_in_block,
    parse_assistant_blocks,
    parse_user_blocks,
    started_agent_in_block,
)
from tracemill.ingesters.claude_code.prompt_queue import PromptQueue, restore_absorbed
from tracemill.ingesters.claude_code.prompt_snapshots import read_prompt_snapshot, read_tool_definitions
from tracemill.ingesters.claude_code.record_fields import (
    TREE,
    UNTREED,
    field_object,
    field_objects,
    field_strings,
    field_text,
    is_native,
)
from tracemill.ingesters.claude_code.session import SYNTHETIC, Entry, Kind, Session
from tracemill.ingesters.reading.json_reading import iter_json_lines
from tracemill.records.ingest_report import IngestReport, record_type
from tracemill.records.message import Message, ToolCall
from tracemill.records.trace import Usage

_ASIDE = frozenset(("advisor_message", "compaction"))
"""Requests inside a response that are not of the model that answered."""


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
        self._children: list[str] = []
        self._added: set[str] = set()
        self._pending: list[tuple[Entry, str, str]] = []
        self._withdrawn: set[str] = set()
        self._rendering: set[str] = set()
        self._worded: list[Entry] = []
        self._replaced: dict[str, str] = {}
        self._wire: dict[str, str] = {}
        self._sent: dict[str, str] = {}
        self._queue = PromptQueue()
        self._known = False

    def take(self, number: int, record: dict[str, Any]) -> None:
        """One record."""
        session = self.session
        if not session.native:
            session.native = is_native(record)
        kind = record.get("type")
        if not isinstance(kind, str) or kind not in TREE:
            self._untreed(number, record, kind)
            return
        uuid = self._link(number, record)
        if uuid is None:
            return
        if kind == "assistant":
            self._assistant(number, uuid, record)
        elif kind == "user":
            self._user(number, uuid, record)
        elif kind == "attachment":
            self._attachment(number, uuid, record)
        elif kind == "system":
            self._system(number, uuid, record)
        else:
            self._progress(record)

    def close(self) -> None:
        """The counts, and what later records did not repeat: hook outputs, prompts typed meanwhile."""
        for entry, text, shown in self._pending:
            if text not in self._added:
                entry.text = "\n".join(filter(None, (entry.text, shown)))
        self._say_what_was_shown()
        if self._withdrawn:
            self._withdraw()
        report = self.report
        if restored := restore_absorbed(self.session, self._queue.absorbed):
            report.flags["prompt that only the queue holds"] += restored
        report.steps_main, report.steps_side = len(self._main), len(self._side)
        report.steps_synthetic = len(self._synthetic)
        # A child that is no bare result: two of one parent are a branch.
        report.branches_real = sum(1 for count in Counter(self._children).values() if count > 1)

    def _say_what_was_shown(self) -> None:
        """Settle reminders in our words, and put in what was sent in the place of what is displayed.

        A version that writes `rendered` writes it on all it showed, so that a record without it was shown
        to no model.
        """
        for entry in self._worded:
            if entry.version in self._rendering:
                entry.text, entry.stood_in = "", False
        wired = {
            call: self._wire[call]
            for call, copy in self._sent.items()
            if copy == "wire" and call in self._wire
        }
        if not (self._replaced or wired):
            return
        for entry in self.session.entries:
            if wired and entry.calls:
                entry.calls = tuple(
                    replace(call, arguments=wired.get(call.id, call.arguments)) for call in entry.calls
                )
            if self._replaced and entry.results:
                entry.results = tuple(self._as_replaced(result) for result in entry.results)

    def _as_replaced(self, result: Message) -> Message:
        text = self._replaced.get(result.tool_call_id or "")
        return result if text is None else replace(result, content=text)

    def _withdraw(self) -> None:
        """Takes out what a refusal withdrew: no action, and in no later prompt."""
        session = self.session
        gone = [entry for entry in session.entries if entry.uuid in self._withdrawn]
        calls = {call.id for entry in gone for call in entry.calls}
        responses = {entry.message_id for entry in gone if entry.kind == "assistant"}
        self.report.flags["response that was withdrawn"] += len(responses)
        session.entries = [entry for entry in session.entries if entry.uuid not in self._withdrawn]
        for entry in session.entries if calls else ():
            entry.results = tuple(result for result in entry.results if result.tool_call_id not in calls)

    def _untreed(self, number: int, record: dict[str, Any], kind: object) -> None:
        """A record outside the tree: three kinds tell something, the rest is passed over."""
        if kind == "queue-operation":
            self._queue.take(number, record)
        elif kind == "content-replacement":
            for item in field_objects(record.get("replacements")):
                call, text = field_text(item, "toolUseId"), item.get("replacement")
                if call and isinstance(text, str):
                    self._replaced[call] = text
        elif kind == "last-prompt":
            self.session.leaf = field_text(record, "leafUuid") or self.session.leaf
        elif not isinstance(kind, str) or not kind:
            self.report.skipped["record without type"] += 1
        elif kind not in UNTREED:
            self.report.skipped["unknown record type"] += 1
            self.report.unknown[f"record {record_type(kind)}"] += 1

    def _link(self, number: int, record: dict[str, Any]) -> str | None:
        """Enters a tree record with its parent; None, counted, where its uuid was there before."""
        session = self.session
        uuid = record.get("uuid")
        if not isinstance(uuid, str) or not uuid:
            uuid = f"line-{number}"
        if uuid in session.parents:
            self.report.skipped["repeated uuid"] += 1
            return None
        parent = record.get("parentUuid")
        session.parents[uuid] = parent if isinstance(parent, str) and parent else None
        side = record.get("isSidechain") is True
        if side:
            session.side_uuids.add(uuid)
        if not self._known:
            self._head(record, None if side else uuid)
        return uuid

    def _head(self, record: dict[str, Any], main: str | None) -> None:
        """What the first records that say so tell of the session."""
        session = self.session
        session.first_uuid = session.first_uuid or main
        session.session_id = session.session_id or field_text(record, "sessionId")
        session.version = session.version or field_text(record, "version") or None
        session.started_at = session.started_at or field_text(record, "timestamp") or None
        session.cwd = session.cwd or field_text(record, "cwd") or None
        found = (session.first_uuid, session.session_id, session.version, session.started_at, session.cwd)
        self._known = all(found)

    def _entry(self, number: int, uuid: str, record: dict[str, Any], kind: Kind) -> Entry:
        get = record.get
        agent, cwd, stamp = get("agentId"), get("cwd"), get("timestamp")
        return Entry(
            number,
            uuid,
            self.session.parents[uuid],
            kind,
            get("isSidechain") is True,
            agent if isinstance(agent, str) else None,
            cwd if isinstance(cwd, str) and cwd else None,
            stamp if isinstance(stamp, str) and stamp else None,
            version=get("version"),
        )

    def _assistant(self, number: int, uuid: str, record: dict[str, Any]) -> None:
        message = record.get("message")
        if not isinstance(message, dict):
            self.report.skipped["message without content"] += 1
            return
        entry = self._entry(number, uuid, record, "assistant")
        native, model = message.get("id"), message.get("model")
        entry.message_id = native if isinstance(native, str) and native else uuid
        entry.model = model if isinstance(model, str) and model else None
        entry.text, entry.reasoning, entry.calls, entry.results = parse_assistant_blocks(
            message.get("content")
        )
        if entry.calls:
            entry.calls = self._named(entry.calls, uuid)
            self._calls(entry)
            wire = record.get("wireToolInputs")
            if wire and isinstance(wire, dict):
                self._wire.update((call, compact_arguments(value)) for call, value in wire.items())
        (self._side if entry.side else self._main).add(entry.message_id)
        if entry.parent is not None:
            self._children.append(entry.parent)
        if model == SYNTHETIC or record.get("isApiErrorMessage") is True:
            self._not_of_a_model(entry, record)
            return
        entry.stopped = bool(message.get("stop_reason"))
        entry.cut_off = record.get("isAbortedMidStream") is True
        entry.usage = _usage(record, message, entry.stopped)
        self.session.entries.append(entry)

    def _named(self, calls: tuple[ToolCall, ...], uuid: str) -> tuple[ToolCall, ...]:
        """The calls, one without an id named after its record; no result can be of it."""
        if all(call.id for call in calls):
            return calls
        self.report.flags["call without an id"] += sum(not call.id for call in calls)
        return tuple([call if call.id else replace(call, id=f"{uuid}-{at}") for at, call in enumerate(calls)])

    def _calls(self, entry: Entry) -> None:
        """What the calls of a response are named, and how many there are."""
        report, names = self.report, self.session.names
        if entry.side:
            report.flags["tool calls of subagents"] += len(entry.calls)
        else:
            report.tool_calls += len(entry.calls)
        for call in entry.calls:
            names[call.id] = call.name

    def _not_of_a_model(self, entry: Entry, record: dict[str, Any]) -> None:
        """A message the harness wrote in the model's place: no action, in no prefix."""
        failed = record.get("isApiErrorMessage") is True
        self.report.flags["API error message" if failed else "message that no model wrote"] += 1
        if entry.model == SYNTHETIC:
            self._synthetic.add(entry.message_id)

    def _user(self, number: int, uuid: str, record: dict[str, Any]) -> None:
        message = record.get("message")
        content = message.get("content") if isinstance(message, dict) else message
        if not isinstance(content, (str, list)):
            self.report.skipped["message without content"] += 1
            return
        entry = self._entry(number, uuid, record, "user")
        version = field_text(record, "version")
        entry.text, entry.results = parse_user_blocks(
            content, self.session.names, version, record.get("toolDenialKind")
        )
        entry.summary = record.get("isCompactSummary") is True
        entry.meta = record.get("isMeta") is True
        if record.get("isVisibleInTranscriptOnly") is True and not entry.summary:
            entry.text = ""
        if entry.results:
            self._results(entry, record)
        elif entry.parent is not None:
            self._children.append(entry.parent)
        self.session.entries.append(entry)

    def _results(self, entry: Entry, record: dict[str, Any]) -> None:
        """What a result tells beside its text: the agent it ran, the tools it loaded."""
        session, twin = self.session, record.get("toolUseResult")
        for result in entry.results:
            if result.is_error:
                self.report.tool_errors += 1
            if agent := started_agent_in_block(result, twin):
                session.agent_calls.setdefault(agent, result.tool_call_id or "")
            if tools := loaded_tools_in_block(result):
                session.seen_tools.update(dict.fromkeys(tools))

    def _attachment(self, number: int, uuid: str, record: dict[str, Any]) -> None:
        attachment = record.get("attachment")
        if not isinstance(attachment, dict):
            self.report.skipped["attachment without content"] += 1
            return
        entry = self._entry(number, uuid, record, "reminder")
        kind, shown = attachment.get("type"), rendered_text(record)
        text = attachment_reminder(attachment) if shown is None else shown
        if "rendered" in record:
            self._rendering.add(entry.version or "")
        if text is None:
            self.report.flags["attachment of unknown kind"] += 1
            self.report.unknown[f"attachment {record_type(kind)}"] += 1
        elif kind == "prompt_snapshot":
            entry.kind, entry.snapshot = "snapshot", read_prompt_snapshot(attachment, entry.version)
        elif kind in ("deferred_tools_delta", "deferred_tools_record"):
            self._deferred(attachment)
        elif kind == "hook_additional_context":
            content = attachment.get("content")
            self._added.update(
                field_strings(content) if isinstance(content, list) else [flatten_content_blocks(content)]
            )
        elif kind == "hook_success" and shown is None and (added := read_attachment_context(attachment)):
            self._pending.append((entry, added, attachment_hook_text(attachment, added)))
        if shown is None and text is not None and kind not in EXACT and entry.kind == "reminder":
            entry.stood_in = True
            self._worded.append(entry)
        # Prompts typed while the agent worked are the user's; notes of finished tasks are the harness's.
        typed = kind == "queued_command" and attachment.get("commandMode") == "prompt"
        entry.text, entry.meta = text or "", not typed
        self.session.entries.append(entry)

    def _deferred(self, attachment: dict[str, Any]) -> None:
        """Tools that are loaded by name: their names, their schemas, and which copy of a call was sent."""
        session = self.session
        session.seen_tools.update(dict.fromkeys(field_strings(attachment.get("addedNames"))))
        for tool in read_tool_definitions(attachment.get("entries")):
            session.definitions[tool.name] = tool
        for item in field_objects(attachment.get("toolInputCopies")):
            self._sent[field_text(item, "id")] = field_text(item, "copy")

    def _system(self, number: int, uuid: str, record: dict[str, Any]) -> None:
        subtype = record.get("subtype")
        if subtype == "compact_boundary":
            self.report.compactions += 1
            entry = self._entry(number, uuid, record, "compact")
            entry.detail = field_object(record, "compactMetadata")
            tools = entry.detail.get("preCompactDiscoveredTools")
            self.session.seen_tools.update(dict.fromkeys(field_strings(tools)))
            self.session.entries.append(entry)
        elif subtype == "microcompact_boundary":
            entry = self._entry(number, uuid, record, "microcompact")
            entry.detail = field_object(record, "microcompactMetadata")
            self.session.entries.append(entry)
        elif "retractedMessageUuids" in record:
            self._withdrawn.update(field_strings(record["retractedMessageUuids"]))

    def _progress(self, record: dict[str, Any]) -> None:
        """Progress of a subagent repeats its calls and results, without what it said: only the call that
        started it is news, and that there is such an agent."""
        data = record.get("data")
        if isinstance(data, dict) and data.get("type") == "agent_progress":
            agent, call = data.get("agentId"), record.get("parentToolUseID") or data.get("parentToolUseID")
            if not isinstance(agent, str) or not agent:
                return
            if isinstance(call, str):
                self.session.agent_calls.setdefault(agent, call)
            if data.get("message"):
                self.session.told_agents[agent] = None


def _usage(record: dict[str, Any], message: dict[str, Any], stopped: bool) -> Usage | None:
    """Reported tokens and, from early versions, cost; None where nothing is reported.

    Until a stop reason is there, `output_tokens` is a placeholder of the stream's start. A response that
    took several requests reports each in `iterations`: the last one of the model itself has its prompt.
    """
    usage, cost = message.get("usage"), record.get("costUSD")
    cost_usd = float(cost) if isinstance(cost, (float, int)) and not isinstance(cost, bool) else None
    if not usage or not isinstance(usage, dict):
        return None if cost_usd is None else Usage(cost_usd=cost_usd)
    sent = _last_request(usage) if usage.get("iterations") else usage
    fresh, written = sent.get("input_tokens"), sent.get("cache_creation_input_tokens")
    cached, output = sent.get("cache_read_input_tokens"), usage.get("output_tokens")
    if type(fresh) is int and type(written) is int and type(cached) is int:
        prompt = fresh + written + cached
    else:
        known = [count for count in (fresh, written, cached) if type(count) is int]
        prompt = sum(known) if known else None
    return Usage(
        prompt,
        output if stopped and type(output) is int else None,
        cached if type(cached) is int else None,
        cost_usd,
    )


def _last_request(usage: dict[str, Any]) -> dict[str, Any]:
    """The counts of the last request to the model that answered, else of the whole response."""
    for item in reversed(field_objects(usage.get("iterations"))):
        if item.get("type") not in _ASIDE and type(item.get("input_tokens")) is int:
            return item
    return usage
