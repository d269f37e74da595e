"""Read a rollout of Codex CLI into the traces of its sessions, as a rule one.

Since September 2025 a line is `{timestamp, type, payload}`; before that, a line about the session and then
the items themselves. Events repeat for the interface what items hold, except tokens, the limits of turns, and
turns that are taken back.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path, PureWindowsPath
from typing import Any

from tracemill.harnesses.agents.registry import harness_for
from tracemill.harnesses.inferred_tools import infer_session_tools
from tracemill.ingesters.codex.history import CodexHistory
from tracemill.ingesters.codex.items import join_tool_name
from tracemill.ingesters.common.openai_messages import (
    as_mapping,
    first_text,
    openai_content_text,
    parse_openai_tools,
)
from tracemill.ingesters.common.report_counts import count_traces_in_report
from tracemill.ingesters.common.run_identity import run_identity_digest
from tracemill.ingesters.reading.json_reading import UnreadLines, iter_json_lines
from tracemill.records.identity import make_trace_id
from tracemill.records.ingest_report import IngestReport, record_type
from tracemill.records.message import ToolSpec
from tracemill.records.trace import Trace

DIALECT = "codex"
NO_PAYLOAD = "record without a payload"
NO_STEP = "session without a step"
NO_START = "session whose beginning is missing"
NOT_SHOWN = frozenset(("event_msg", "turn_context", "world_state", "inter_agent_communication_metadata"))
"""Records that are no part of a prompt."""
_ENDS = frozenset(("task_complete", "turn_complete", "turn_aborted"))
_STARTS = frozenset(("task_started", "turn_started"))
_FOLDER = re.compile(r"<cwd>([^<]+)</cwd>|Current working directory: ([^\n]+)")
_BURST_SECONDS = 2


@dataclass(slots=True)
class _Session:
    """The session by the first line of its file (`first`), and the project folder."""

    first: Mapping[str, Any] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    written_at: str = ""
    cwd: str | None = None
    started_at: str | None = None
    has_turn_ids: bool = False

    @property
    def id(self) -> str | None:
        return first_text(self.meta.get("id"))


def iter_traces(path: Path, report: IngestReport) -> Iterator[Trace]:
    """Yield the trace of each session and fill the report. Raises SourceError if it cannot be read."""
    yield from count_traces_in_report(_traces(path, report), report)


def _traces(path: Path, report: IngestReport) -> Iterator[Trace | None]:
    session, history = _Session(), None
    unread = UnreadLines(report)
    for number, record in iter_json_lines(path, report):
        if _begins_another(record, session, history):
            yield _trace(path, session, history, report)
            session, history = _Session(), None
        kind, payload = record.get("type"), record.get("payload")
        if kind is None and "id" in record and history is None:  # before September 2025
            session.first, session.meta = record, record
            session.started_at = first_text(record.get("timestamp"))
            continue
        if kind is None and "record_type" in record:
            continue
        if payload is None and kind not in ("session_meta", "compacted", *NOT_SHOWN):
            kind, payload = "response_item", record
        torn = unread.passed()
        if kind == "session_meta" and isinstance(payload, dict) and not session.meta:
            session.first, session.meta = record, payload
            session.written_at = str(record.get("timestamp") or "")
            session.cwd = first_text(payload.get("cwd"))
            session.started_at = first_text(payload.get("timestamp"), record.get("timestamp"))
        if history is None:
            history = CodexHistory(_system(session.meta), report)
        if torn or not isinstance(payload, dict):
            history.add_gap()
        if isinstance(payload, dict):
            _add(record, str(kind), payload, number, session, history, report)
        else:
            report.skipped[NO_PAYLOAD] += 1
    if history is None:
        report.skipped["empty file" if not report.bytes else NO_STEP] += 1
    else:
        yield _trace(path, session, history, report)


def _begins_another(record: Mapping[str, Any], session: _Session, history: CodexHistory | None) -> bool:
    """Return whether a record begins another session of the file, or repeats the first line of this one.

    The sessions that a fork copies stand before its own items, and a session may repeat its facts.
    """
    kind, meta = record.get("type"), as_mapping(record.get("payload"))
    if kind is None and "record_type" not in record and "payload" not in record:
        meta = record
    elif kind != "session_meta":
        return False
    named = first_text(meta.get("id"))
    if named is None or history is None or history.copied or history.empty:
        return False
    return record == session.first or named != session.id


def _add(
    record: Mapping[str, Any],
    kind: str,
    payload: Mapping[str, Any],
    number: int,
    session: _Session,
    history: CodexHistory,
    report: IngestReport,
) -> None:
    """Add one record to the history."""
    timestamp = first_text(record.get("timestamp"))
    if kind == "session_meta":
        other = session.id is not None and first_text(payload.get("id")) != session.id
        history.copied = history.copied or other or bool(payload.get("forked_from_id"))
        return
    if history.copied and _is_own(payload, timestamp, session):
        history.close_answer()
        history.copied = False
    if kind == "response_item":
        history.add_item(payload, f"call-{number}", timestamp)
        if session.cwd is None and payload.get("role") == "user":
            found = _FOLDER.search(openai_content_text(payload.get("content")))
            session.cwd = found and (found[1] or found[2])
    elif kind == "turn_context":
        _add_turn(payload, history)
    elif kind == "compacted":
        history.compact(payload)
    elif kind == "event_msg":
        _add_event(payload, history)
    elif kind not in NOT_SHOWN:
        report.unknown[record_type(kind)] += 1


def _is_own(payload: Mapping[str, Any], timestamp: str | None, session: _Session) -> bool:
    """Return whether a record of a fork is its own.

    Ids of sessions and turns are UUIDs that begin with the time: a turn that began before the session is
    copied. Without such ids, copied records are recognised by their time, since they are written at once.
    """
    turn, own = first_text(payload.get("turn_id")), session.id
    if turn is not None and own is not None and len(turn) == len(own) == 36:
        session.has_turn_ids = True
        return turn > own
    if session.has_turn_ids:
        return False
    began, now = _seconds(session.written_at), _seconds(timestamp or "")
    return began is not None and now is not None and now - began > _BURST_SECONDS


def _seconds(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def _add_turn(payload: Mapping[str, Any], history: CodexHistory) -> None:
    """Set the settings of a turn."""
    history.close_answer()
    history.turn.model = first_text(payload.get("model")) or history.turn.model
    history.turn.cwd = first_text(payload.get("cwd")) or history.turn.cwd
    policy = as_mapping(payload.get("truncation_policy"))
    if isinstance(limit := policy.get("limit"), int):
        history.set_limit(limit, in_tokens=policy.get("mode") == "tokens")


def _add_event(payload: Mapping[str, Any], history: CodexHistory) -> None:
    """Add an event that no item repeats; all others are for the interface."""
    event = payload.get("type")
    if event == "token_count":
        history.report_tokens(as_mapping(payload.get("info")))
    elif event in _STARTS:
        history.begin_turn()
    elif event in _ENDS:
        history.close_answer(interrupted=event == "turn_aborted")
    elif event == "user_message":
        history.begin_user_turn()
    elif event == "thread_rolled_back":
        turns = payload.get("num_turns")
        history.roll_back(turns if isinstance(turns, int) else 0)


def _system(meta: Mapping[str, Any]) -> str | None:
    """Return the recorded system prompt."""
    base = meta.get("base_instructions")
    return first_text(as_mapping(base).get("text"), base)


def _trace(path: Path, session: _Session, history: CodexHistory | None, report: IngestReport) -> Trace | None:
    if history is None:
        return None
    contexts = history.finish()
    for name, count in history.unread.items():
        report.unknown[f"part {name}"] += count
    if not contexts:
        report.skipped[NO_STEP] += 1
        return None
    meta = session.meta
    if session.id is None:
        report.flags[NO_START] += 1
    parent = _parent(meta)
    trace = Trace(
        trace_id=make_trace_id(DIALECT, session.id or run_identity_digest(contexts[0].messages)),
        source=DIALECT,
        dialect=DIALECT,
        harness=DIALECT,
        contexts=contexts,
        harness_version=first_text(meta.get("cli_version")),
        kind="side" if _is_subagent(meta) else "main",
        parent_trace_id=make_trace_id(DIALECT, parent) if parent and _is_subagent(meta) else None,
        project=PureWindowsPath(session.cwd).name or None if session.cwd else None,
        started_at=session.started_at or contexts[0].steps[0].timestamp,
        origin=path.name,
    )
    return _with_recorded_tools(trace, _dynamic_tools(meta))


def _is_subagent(meta: Mapping[str, Any]) -> bool:
    source = meta.get("source")
    return (isinstance(source, dict) and "subagent" in source) or meta.get("thread_source") == "subagent"


def _parent(meta: Mapping[str, Any]) -> str | None:
    """Return the id of the session that started a subagent."""
    spawn = as_mapping(as_mapping(as_mapping(meta.get("source")).get("subagent")).get("thread_spawn"))
    return first_text(spawn.get("parent_thread_id"), meta.get("parent_thread_id"))


def _dynamic_tools(meta: Mapping[str, Any]) -> tuple[ToolSpec, ...]:
    """Return the tools of the client that were offered from the start, not those loaded by a search."""
    listed, flat = meta.get("dynamic_tools"), list[dict[str, Any]]()
    for entry in map(as_mapping, listed if isinstance(listed, list) else ()):
        grouped = entry.get("tools")
        space = first_text(entry.get("name" if grouped else "namespace"))
        for tool in map(as_mapping, grouped if isinstance(grouped, list) else (entry,)):
            name = first_text(tool.get("name"))
            if name is not None and not tool.get("deferLoading", tool.get("defer_loading")):
                schema = tool.get("inputSchema") or tool.get("input_schema") or tool.get("parameters")
                full = join_tool_name(space, name)
                flat.append({"name": full, "description": tool.get("description"), "parameters": schema})
    return parse_openai_tools(flat, (), harness_for(DIALECT))


def _with_recorded_tools(trace: Trace, recorded: tuple[ToolSpec, ...]) -> Trace:
    """Return the trace with its recorded tools; those of Codex itself, never recorded, are stand-ins."""
    if not recorded:
        return trace
    names = {tool.name for tool in recorded}
    own = infer_session_tools(trace, harness_for(DIALECT, trace.harness_version))
    tools = (*(tool for tool in own if tool.name not in names), *recorded)
    return replace(trace, contexts=tuple(replace(context, tools=tools) for context in trace.contexts))
