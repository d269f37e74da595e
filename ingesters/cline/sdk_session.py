"""Read a session of Cline 4 (`~/.cline/data/sessions/ID/ID.messages.json`) into one trace.

After the published contract of the file, version 1. The manifest `ID.json` beside it names folder and start,
`ID.compaction.json` what replaced earlier messages last. Subagents lie in the same folder.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PureWindowsPath
from typing import Any

from tracemill.ingesters.cline.messages import (
    answer_message,
    blocks_of,
    blocks_text,
    result_failure,
    unread_block,
    unread_blocks,
)
from tracemill.ingesters.common.flags import NO_ACTION
from tracemill.ingesters.common.growing_context import GrowingContext, StepMetadata
from tracemill.ingesters.common.openai_messages import as_mapping, first_text, openai_argument_text
from tracemill.ingesters.common.report_counts import count_traces_in_report
from tracemill.ingesters.common.run_identity import run_identity_digest
from tracemill.ingesters.common.times import iso_time
from tracemill.ingesters.reading.json_reading import read_json
from tracemill.records.errors import SourceError
from tracemill.records.identity import make_trace_id
from tracemill.records.ingest_report import IngestReport, record_type
from tracemill.records.message import Message
from tracemill.records.trace import Context, Fidelity, Trace, Usage

DIALECT = "cline_session"
AGENTS = ("lead", "subagent", "teammate")
SUFFIX = ".messages.json"
NO_STEP = "session without a step"
DISPLAYED = "message that was displayed and not sent"
LATER_CONTRACT = "session of a later version of the contract"
DAMAGED = "file beside the session that cannot be read"
_VERSION = 1


def is_session(record: Mapping[str, Any]) -> bool:
    """Return whether an object is a session, by the fields that its contract requires."""
    named = isinstance(record.get("sessionId"), str) and record.get("agent") in AGENTS
    return named and isinstance(record.get("version"), int) and isinstance(record.get("messages"), list)


def companion_paths(path: Path) -> Iterator[str]:
    """Yield the paths of the manifest and of the compaction, which are read with a session."""
    name = path.name.removesuffix(SUFFIX)
    yield from (str(path.with_name(f"{name}{suffix}")) for suffix in (".json", ".compaction.json"))


def iter_traces(path: Path, report: IngestReport) -> Iterator[Trace]:
    """Yield the trace of a session and fill the report. Raises SourceError if it cannot be read."""
    yield from count_traces_in_report(_traces(path, report), report)
    report.flags = +report.flags


def _traces(path: Path, report: IngestReport) -> Iterator[Trace]:
    session = as_mapping(read_json(path, report))
    report.flags[LATER_CONTRACT] += session.get("version") != _VERSION
    manifest, compaction = (_companion(Path(each), report) for each in companion_paths(path))
    listed = session.get("messages")
    kept = [each for each in listed if not _is_displayed(each)] if isinstance(listed, list) else []
    report.flags[DISPLAYED] += len(listed) - len(kept) if isinstance(listed, list) else 0
    contexts = _contexts(kept, session, compaction, first_text(manifest.get("cwd")), report)
    if not contexts:
        report.skipped[NO_STEP] += 1
        return
    folder = first_text(manifest.get("cwd"), manifest.get("workspace_root"))
    named = first_text(session.get("sessionId")) or run_identity_digest(contexts[-1].messages)
    agent = session.get("agent")
    own = path.name.removesuffix(SUFFIX)
    side = agent in AGENTS[1:]
    root = path.absolute().parent.name
    yield Trace(
        trace_id=make_trace_id("cline", named, *([own] if side else [])),
        source="cline",
        dialect=DIALECT,
        harness="cline_sdk",
        contexts=tuple(contexts),
        kind="side" if side else "main",
        parent_trace_id=make_trace_id("cline", root) if side else None,
        project=PureWindowsPath(folder).name or None if folder else None,
        started_at=first_text(
            manifest.get("started_at"), *(step.timestamp for context in contexts for step in context.steps)
        ),
        origin=path.name,
        notes={"live_context": len(contexts) - 1} if len(contexts) > 1 else {},
    )


def _companion(path: Path, report: IngestReport) -> Mapping[str, Any]:
    if not path.is_file():
        return {}
    try:
        return as_mapping(read_json(path))
    except SourceError:
        report.flags[DAMAGED] += 1
        return {}


def _is_displayed(message: Any) -> bool:
    return as_mapping(as_mapping(message).get("metadata")).get("displayOnly") is True


def _contexts(
    messages: Sequence[Any],
    session: Mapping[str, Any],
    compaction: Mapping[str, Any],
    cwd: str | None,
    report: IngestReport,
) -> list[Context]:
    """Return the context of the session, and the one after its last compaction, if any."""
    count, summary = compaction.get("source_message_count"), compaction.get("messages")
    split = count if isinstance(count, int) and isinstance(summary, list) and count > 0 else None
    builders = [_SessionContext(session, cwd, report)]
    for message in messages[:split]:
        builders[0].add(message)
    if split is not None and isinstance(summary, list):
        report.compactions += 1
        builders.append(_SessionContext(session, cwd, report, "compaction"))
        for message in summary:
            builders[1].add(message, copied=True)
        for message in messages[split:]:
            builders[1].add(message)
    built: list[Context] = []
    for builder in builders:
        if builder.growing.steps:
            built.append(builder.finish(len(built)))
    return built


class _SessionContext:
    """One context of a session under construction, message by message."""

    def __init__(
        self, session: Mapping[str, Any], cwd: str | None, report: IngestReport, start: Any = "start"
    ) -> None:
        prompt = first_text(session.get("system_prompt"))
        self.growing = GrowingContext(start, messages=[Message("system", prompt)] if prompt else ())
        self.report, self.cwd = report, cwd
        self.place = 0
        self.lost = False
        self.lost_from: int | None = None

    def add(self, record: Any, copied: bool = False) -> None:
        """Add a message; one that a compaction kept (`copied`) is shown and is not a step."""
        message = as_mapping(record)
        self.place += 1
        role = message.get("role")
        unread = [f"block {record_type(name)}" for name in unread_parts(message)]
        unread += [] if role in ("user", "assistant") else [f"message {record_type(role)}"]
        if not copied:
            self.report.records[record_type(role)] += 1
            if unread:
                self.report.unknown.update(unread)
        self.lost |= bool(unread)
        if role == "assistant":
            self._add_answer(message, copied or bool(unread))
        elif role == "user":
            self._add_user(message, copied)

    def _add_answer(self, message: Mapping[str, Any], copied: bool) -> None:
        answer = answer_message(message, blocks_of(message.get("content")), self.place)
        if not answer.content.strip() and not answer.tool_calls:
            self.report.flags[NO_ACTION] += not copied
            return
        metadata = None
        if not copied:
            self.growing.close_calls()
            if self.lost and self.lost_from is None:
                self.lost_from = len(self.growing.steps)
            metadata = StepMetadata(
                model=first_text(as_mapping(message.get("modelInfo")).get("id")),
                native_id=first_text(message.get("id")),
                usage=_usage(as_mapping(message.get("metrics"))),
                cwd=self.cwd,
                timestamp=iso_time(message.get("ts")),
            )
        self.growing.add_action(answer, metadata)

    def _add_user(self, message: Mapping[str, Any], copied: bool) -> None:
        """Add the results in a message of the user, then the user's text."""
        said: list[Any] = []
        for block in blocks_of(message.get("content")):
            if as_mapping(block).get("type") != "tool_result":
                said.append(block)
            else:
                result = _result(block)
                reason = self.growing.add_result(result)
                if reason and not copied:
                    self.report.skipped[reason] += 1
                self.report.tool_errors += not copied and not reason and result.is_error is True
        if text := blocks_text(said):
            self.growing.add_message(Message("user", text))

    def finish(self, index: int) -> Context:
        """Return the context."""
        made = self.growing.finish(index, ())
        lost = self.lost_from is not None or made.fidelity.context == "lost"
        fidelity = Fidelity(made.fidelity.system, context="lost" if lost else "approximate")
        first = (self.lost_from or 0) if lost else 0
        return Context(index, made.messages, made.steps, made.start, (), fidelity, first, 0)


def unread_parts(message: Mapping[str, Any]) -> list[str]:
    """Return the names of the blocks of a message that are not read; a result may hold any value."""
    content = message.get("content")
    if not isinstance(content, list):
        return unread_blocks(content)
    return [name for block in content if (name := _unread_part(block))]


def _unread_part(block: Any) -> str:
    if as_mapping(block).get("type") != "tool_result":
        return unread_block(block)
    return "" if first_text(block.get("tool_use_id")) else "tool_result"


def _result(block: Mapping[str, Any]) -> Message:
    """Return a result: its blocks as text, any other value as JSON."""
    content = block.get("content")
    plain = content is None or not unread_blocks(content)
    text = blocks_text(content) if plain else openai_argument_text(content)
    flag = block.get("is_error")
    failed, kind = result_failure(text, flag if isinstance(flag, bool) else None)
    call_id = first_text(block.get("tool_use_id")) or ""
    return Message("tool", text, tool_call_id=call_id, is_error=failed, error_kind=kind)


def _usage(metrics: Mapping[str, Any]) -> Usage:
    """Return tokens and cost of an answer; its input tokens hold those of the cache."""
    counts = (metrics.get(key) for key in ("inputTokens", "outputTokens", "cacheReadTokens"))
    whole = [each if isinstance(each, int) and not isinstance(each, bool) else None for each in counts]
    cost = metrics.get("cost")
    paid = float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) else None
    return Usage(whole[0], whole[1], whole[2], paid)
