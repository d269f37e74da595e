"""Turn records of a Claude Code file into entries: everything that affects a model's context, in file order.

Records of the uuid tree that no model was shown (progress, most system records) leave only their link to
their parent. Records outside the tree are counted and dropped, with a few exceptions. The counts of the
report are taken here, from all branches of the file.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

from tracemill.ingesters.claude_code.attachments import (
    EXACT,
    attachment_hook_text,
    attachment_reminder,
    read_attachment_context,
    rendered_text,
)
from tracemill.ingesters.claude_code.content_blocks import (
    UnreadParts,
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
    OTHER_TYPES,
    QUEUE_OPERATIONS,
    SYSTEM_SUBTYPES,
    TREE_TYPES,
    field_object,
    field_objects,
    field_strings,
    field_text,
    is_native,
)
from tracemill.ingesters.claude_code.session import SYNTHETIC, Kind, SessionEntry, SessionFile
from tracemill.records.ingest_report import IngestReport, record_type
from tracemill.records.message import Message, ToolCall
from tracemill.records.trace import Usage

UNREAD = "content that is not understood"
"""Context behind it is lost; the report's `unknown` names it."""
_OTHER_REQUESTS = frozenset(("advisor_message", "compaction"))
"""Requests inside a response that are not of the model that answered."""


class SessionReader:
    """Reader of the records of one session, one by one; it keeps what later records need to be understood."""

    def __init__(self, report: IngestReport) -> None:
        self.report = report
        self.session = SessionFile()
        self._main: set[str] = set()
        self._side: set[str] = set()
        self._synthetic: set[str] = set()
        self._children: list[str] = []
        self._added: set[str] = set()
        self._pending: list[tuple[SessionEntry, str, str]] = []
        self._withdrawn: set[str] = set()
        self._unread_calls: set[str] = set()
        self._rendering_versions: set[str] = set()
        self._stand_ins: list[SessionEntry] = []
        self._replaced: dict[str, str] = {}
        self._wire: dict[str, str] = {}
        self._sent: dict[str, str] = {}
        self._queue = PromptQueue()
        self._known = False

    def read(self, number: int, record: dict[str, Any]) -> None:
        """Read one record."""
        session = self.session
        if not session.native:
            session.native = is_native(record)
        kind = record.get("type")
        outside_tree = not isinstance(kind, str) or kind not in TREE_TYPES
        if outside_tree:
            self._read_other(number, record, kind)
            if not _has_message(record, kind):
                return
        uuid = self._link_record(number, record)
        if uuid is None:
            return
        if outside_tree:
            entry = self._entry(number, uuid, record, "user")
            entry.unread = entry.meta = True
            self.session.entries.append(entry)
        elif kind == "assistant":
            self._read_assistant(number, uuid, record)
        elif kind == "user":
            self._read_user(number, uuid, record)
        elif kind == "attachment":
            self._read_attachment(number, uuid, record)
        elif kind == "system":
            self._read_system(number, uuid, record)
        else:
            self._read_progress(record)

    def close(self) -> None:
        """Apply what later records did not repeat (hook outputs, queued prompts) and set the counts."""
        for entry, text, reminder in self._pending:
            if text not in self._added:
                entry.text = "\n".join(filter(None, (entry.text, reminder)))
        self._apply_shown()
        if self._withdrawn:
            self._withdraw()
        for entry in self.session.entries if self._unread_calls else ():
            entry.results = tuple(r for r in entry.results if r.tool_call_id not in self._unread_calls)
        report = self.report
        if restored := restore_absorbed(self.session, self._queue.absorbed):
            report.flags["prompt that only the queue holds"] += restored
        report.steps_main += len(self._main)
        report.steps_side += len(self._side)
        report.steps_synthetic += len(self._synthetic)
        # Children that are not just results: two of one parent are a branch.
        report.branches_real += sum(1 for count in Counter(self._children).values() if count > 1)

    def _apply_shown(self) -> None:
        """Apply the recorded prompts: rendered reminders, replaced results and sent arguments.

        A version that writes `rendered` writes it for everything it showed, so a record without it was not
        shown.
        """
        for entry in self._stand_ins:
            if entry.version in self._rendering_versions:
                entry.text, entry.is_stand_in, entry.unread = "", False, False
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
                entry.results = tuple(self._replace_result(result) for result in entry.results)
                entry.unread_results -= self._replaced.keys()

    def _replace_result(self, result: Message) -> Message:
        text = self._replaced.get(result.tool_call_id or "")
        return result if text is None else replace(result, content=text)

    def _withdraw(self) -> None:
        """Remove responses that a refusal withdrew: they are in no later prompt."""
        session = self.session
        withdrawn = [entry for entry in session.entries if entry.uuid in self._withdrawn]
        calls = {call.id for entry in withdrawn for call in entry.calls}
        responses = {entry.message_id for entry in withdrawn if entry.kind == "assistant"}
        self.report.flags["response that was withdrawn"] += len(responses)
        session.entries = [entry for entry in session.entries if entry.uuid not in self._withdrawn]
        for entry in session.entries if calls else ():
            entry.results = tuple(result for result in entry.results if result.tool_call_id not in calls)

    def _read_other(self, number: int, record: dict[str, Any], kind: object) -> None:
        """Read a record outside the tree: three kinds are used, the others are only counted."""
        if kind == "queue-operation":
            self._read_queue(number, record)
        elif kind == "content-replacement":
            for item in field_objects(record.get("replacements")):
                call, text = field_text(item, "toolUseId"), item.get("replacement")
                if call and isinstance(text, str):
                    self._replaced[call] = text
        elif kind == "last-prompt":
            self.session.leaf = field_text(record, "leafUuid") or self.session.leaf
        elif not isinstance(kind, str) or not kind:
            self.report.skipped["record without type"] += 1
        elif kind not in OTHER_TYPES:
            self.report.skipped["unknown record type"] += 1
            self.report.unknown[f"record {record_type(kind)}"] += 1

    def _read_queue(self, number: int, record: dict[str, Any]) -> None:
        """Read a record of the queue; a prompt that is not understood becomes an entry at its place."""
        operation, content = field_text(record, "operation"), record.get("content")
        if operation not in QUEUE_OPERATIONS:
            self.report.unknown[f"queue-operation {record_type(operation)}"] += 1
        if operation == "enqueue" and not isinstance(content, str | None):
            entry = SessionEntry(number, f"queue-{number}", None, "queued", typed=number)
            self._count_unread(entry, UnreadParts(("enqueue.content",)))
            self.session.entries.append(entry)
            return
        self._queue.take(number, record)

    def _count_unread(self, entry: SessionEntry, unread: UnreadParts) -> None:
        """Count the parts of an entry that are not understood, and mark the entry."""
        if not unread.names:
            return
        self.report.skipped[UNREAD] += len(unread.names)
        self.report.unknown.update(f"block {record_type(name)}" for name in unread.names)
        entry.unread = entry.unread or bool(unread.own)
        entry.unread_results = unread.results
        self._unread_calls |= unread.calls

    def _link_record(self, number: int, record: dict[str, Any]) -> str | None:
        """Link a tree record to its parent and return its uuid; None, counted, for a repeated uuid."""
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
            self._set_session_facts(record, None if side else uuid)
        return uuid

    def _set_session_facts(self, record: dict[str, Any], main: str | None) -> None:
        """Set the metadata of the session from the first records that contain it."""
        session = self.session
        session.first_uuid = session.first_uuid or main
        session.session_id = session.session_id or field_text(record, "sessionId")
        session.version = session.version or field_text(record, "version") or None
        session.started_at = session.started_at or field_text(record, "timestamp") or None
        session.cwd = session.cwd or field_text(record, "cwd") or None
        facts = (session.first_uuid, session.session_id, session.version, session.started_at, session.cwd)
        self._known = all(facts)

    def _entry(self, number: int, uuid: str, record: dict[str, Any], kind: Kind) -> SessionEntry:
        get = record.get
        agent, cwd, stamp = get("agentId"), get("cwd"), get("timestamp")
        return SessionEntry(
            number,
            uuid,
            self.session.parents[uuid],
            kind,
            get("isSidechain") is True,
            agent if isinstance(agent, str) else None,
            cwd if isinstance(cwd, str) and cwd else None,
            stamp if isinstance(stamp, str) and stamp else None,
            version=field_text(record, "version") or None,
        )

    def _read_assistant(self, number: int, uuid: str, record: dict[str, Any]) -> None:
        message = record.get("message")
        if message is None:
            self.report.skipped["message without content"] += 1
            return
        entry = self._entry(number, uuid, record, "assistant")
        if not isinstance(message, dict):
            message = {"content": message}
        native, model = message.get("id"), message.get("model")
        entry.message_id = native if isinstance(native, str) and native else uuid
        entry.model = model if isinstance(model, str) and model else None
        entry.text, entry.reasoning, entry.calls, entry.results, unread = parse_assistant_blocks(
            message.get("content")
        )
        self._count_unread(entry, unread)
        if entry.calls:
            entry.calls = self._with_call_ids(entry.calls, uuid)
            self._count_calls(entry)
            wire = record.get("wireToolInputs")
            if wire and isinstance(wire, dict):
                self._wire.update((call, compact_arguments(value)) for call, value in wire.items())
        (self._side if entry.side else self._main).add(entry.message_id)
        if entry.parent is not None:
            self._children.append(entry.parent)
        if model == SYNTHETIC or record.get("isApiErrorMessage") is True:
            self._count_synthetic(entry, record)
            return
        entry.stopped = bool(message.get("stop_reason"))
        entry.cut_off = record.get("isAbortedMidStream") is True
        entry.usage = _usage(record, message, entry.stopped)
        self.session.entries.append(entry)

    def _with_call_ids(self, calls: tuple[ToolCall, ...], uuid: str) -> tuple[ToolCall, ...]:
        """Return the calls; one without an id is named after its record, and no result can refer to it."""
        if all(call.id for call in calls):
            return calls
        self.report.flags["call without an id"] += sum(not call.id for call in calls)
        return tuple([call if call.id else replace(call, id=f"{uuid}-{at}") for at, call in enumerate(calls)])

    def _count_calls(self, entry: SessionEntry) -> None:
        """Count the calls of a response and store their names."""
        report, names = self.report, self.session.names
        if entry.side:
            report.flags["tool calls of subagents"] += len(entry.calls)
        else:
            report.tool_calls += len(entry.calls)
        for call in entry.calls:
            names[call.id] = call.name

    def _count_synthetic(self, entry: SessionEntry, record: dict[str, Any]) -> None:
        """Count a message that the harness wrote in the model's place; it is in no prefix."""
        failed = record.get("isApiErrorMessage") is True
        self.report.flags["API error message" if failed else "message that no model wrote"] += 1
        if entry.model == SYNTHETIC:
            self._synthetic.add(entry.message_id)

    def _read_user(self, number: int, uuid: str, record: dict[str, Any]) -> None:
        message = record.get("message")
        content = message.get("content") if isinstance(message, dict) else message
        if content is None:
            self.report.skipped["message without content"] += 1
            return
        entry = self._entry(number, uuid, record, "user")
        version = field_text(record, "version")
        entry.text, entry.results, unread = parse_user_blocks(
            content, self.session.names, version, record.get("toolDenialKind")
        )
        self._count_unread(entry, unread)
        entry.summary = record.get("isCompactSummary") is True
        entry.meta = record.get("isMeta") is True
        if record.get("isVisibleInTranscriptOnly") is True and not entry.summary:
            entry.text, entry.unread = "", False
        if entry.results:
            self._read_results(entry, record)
        elif entry.parent is not None:
            self._children.append(entry.parent)
        if entry.text and not (entry.results or entry.meta or entry.side):
            self._queue.match_user_text(entry.text.strip())
        self.session.entries.append(entry)

    def _read_results(self, entry: SessionEntry, record: dict[str, Any]) -> None:
        """Read the structured result beside the text: the agent it ran, the tools it loaded."""
        session, structured = self.session, record.get("toolUseResult")
        for result in entry.results:
            if result.is_error:
                self.report.tool_errors += 1
            if agent := started_agent_in_block(result, structured):
                session.agent_calls.setdefault(agent, result.tool_call_id or "")
            if tools := loaded_tools_in_block(result):
                session.seen_tools.update(dict.fromkeys(tools))

    def _read_attachment(self, number: int, uuid: str, record: dict[str, Any]) -> None:
        attachment = record.get("attachment")
        if not isinstance(attachment, dict):
            self.report.skipped["attachment without content"] += 1
            return
        entry = self._entry(number, uuid, record, "reminder")
        unread: list[str] = []
        kind, rendered = attachment.get("type"), rendered_text(record, unread)
        text = attachment_reminder(attachment, unread) if rendered is None else rendered
        if "rendered" in record:
            self._rendering_versions.add(entry.version or "")
        if text is None:
            self.report.flags["attachment of unknown kind"] += 1
            self.report.unknown[f"attachment {record_type(kind)}"] += 1
            entry.unread = True
            self._stand_ins.append(entry)
        elif kind == "prompt_snapshot":
            entry.kind, entry.snapshot = "snapshot", read_prompt_snapshot(attachment, entry.version)
        elif kind in ("deferred_tools_delta", "deferred_tools_record"):
            self._read_deferred_tools(attachment)
        elif kind == "hook_additional_context":
            content = attachment.get("content")
            self._added.update(
                field_strings(content)
                if isinstance(content, list)
                else [flatten_content_blocks(content, unread)]
            )
        elif kind == "hook_success" and rendered is None and (added := read_attachment_context(attachment)):
            self._pending.append((entry, added, attachment_hook_text(attachment, added)))
        if rendered is None and text is not None and kind not in EXACT and entry.kind == "reminder":
            entry.is_stand_in = True
            self._stand_ins.append(entry)
        elif rendered:
            self._set_role(entry, record.get("renderedRole", "user"))
        # Prompts typed while the agent worked are the user's; notices of finished tasks are the harness's.
        typed = kind == "queued_command" and attachment.get("commandMode") == "prompt"
        entry.text, entry.meta = text or "", not typed
        self._count_unread(entry, UnreadParts(tuple(unread)))
        self.session.entries.append(entry)

    def _set_role(self, entry: SessionEntry, role: object) -> None:
        """Set the role of a rendered text as its record names it; an unknown role becomes user."""
        if role == "system":
            entry.role = "system"
        elif role != "user":
            self.report.flags["rendered text of unknown role"] += 1
            entry.is_stand_in = True

    def _read_deferred_tools(self, attachment: dict[str, Any]) -> None:
        """Read tools that are loaded by name: names, schemas, and which copy of the arguments was sent."""
        session = self.session
        session.seen_tools.update(dict.fromkeys(field_strings(attachment.get("addedNames"))))
        for tool in read_tool_definitions(attachment.get("entries")):
            session.definitions[tool.name] = tool
        for item in field_objects(attachment.get("toolInputCopies")):
            self._sent[field_text(item, "id")] = field_text(item, "copy")

    def _read_system(self, number: int, uuid: str, record: dict[str, Any]) -> None:
        subtype = field_text(record, "subtype")
        if subtype not in SYSTEM_SUBTYPES:
            self.report.unknown[f"system {record_type(subtype)}"] += 1
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

    def _read_progress(self, record: dict[str, Any]) -> None:
        """Record a subagent and the call that started it.

        Progress records repeat the calls and results of a subagent, but not its text.
        """
        data = record.get("data")
        if isinstance(data, dict) and data.get("type") == "agent_progress":
            agent, call = data.get("agentId"), record.get("parentToolUseID") or data.get("parentToolUseID")
            if not isinstance(agent, str) or not agent:
                return
            if isinstance(call, str):
                self.session.agent_calls.setdefault(agent, call)
            if data.get("message"):
                self.session.progress_agents[agent] = None


def _has_message(record: dict[str, Any], kind: object) -> bool:
    """Return whether a record of an unknown type has a place in the tree and a message."""
    named = isinstance(kind, str) and bool(kind) and kind not in OTHER_TYPES
    return named and isinstance(record.get("uuid"), str) and record.get("message") is not None


def _usage(record: dict[str, Any], message: dict[str, Any], stopped: bool) -> Usage | None:
    """Return reported tokens and, of early versions, cost; None if nothing is reported.

    `output_tokens` is a placeholder until there is a stop reason. A response of several requests reports each
    in `iterations`; the last one of the model itself has its prompt.
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
        counts = [count for count in (fresh, written, cached) if type(count) is int]
        prompt = sum(counts) if counts else None
    return Usage(
        prompt,
        output if stopped and type(output) is int else None,
        cached if type(cached) is int else None,
        cost_usd,
    )


def _last_request(usage: dict[str, Any]) -> dict[str, Any]:
    """Return the counts of the last request to the model that answered, else of the whole response."""
    for item in reversed(field_objects(usage.get("iterations"))):
        if field_text(item, "type") not in _OTHER_REQUESTS and type(item.get("input_tokens")) is int:
            return item
    return usage
