"""Read a session file of Claude Code into traces.

One file gives a main trace, where it holds a main chain, and a side trace for each subagent in it. What a
file does not record stays absent: before 2.1.267 the system prompt, tool schemas and memory files. The path
of a file: records → entries (`entries`), chains (`agent_chains`), steps with their results (`steps`), drafts
of contexts (`draft_contexts`), contexts (`build_contexts`), each step compared with its reported tokens
(`token_check`).
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PureWindowsPath
from time import perf_counter

from tracemill.ingesters.claude_code.agent_chains import (
    AgentChain,
    ParentCall,
    agent_chain_trace_id,
    find_agent_chain_parents,
    split_chains,
)
from tracemill.ingesters.claude_code.build_contexts import build_context
from tracemill.ingesters.claude_code.draft_contexts import ContextDraft, draft_contexts, live_draft
from tracemill.ingesters.claude_code.joined_sessions import read_sessions
from tracemill.ingesters.claude_code.session import SessionFile
from tracemill.ingesters.claude_code.steps import assemble_steps
from tracemill.ingesters.claude_code.subagent_parents import (
    SUMMARISER,
    find_subagent_parent,
    has_subagent_file,
)
from tracemill.ingesters.claude_code.token_check import MIN_CORRELATION, PromptCheck
from tracemill.ingesters.reading.json_reading import new_report
from tracemill.records.errors import SourceError
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Context, Trace

DIALECT = "claude_code"
ONLY_PROGRESS = "subagent that only progress records tell of"
"""These records leave out its texts, so that none of its steps is known: it is counted and not rebuilt."""
WITHOUT_PROMPT_NOTE = "steps_behind_no_prompt"
"""Note on a trace: the number of steps behind an answer without a prompt."""


def ingest_file(path: Path) -> tuple[list[Trace], IngestReport]:
    """Return the traces of one file, the main one first, and the report on it.

    Raises SourceError if the file cannot be read or holds no record of Claude Code.
    """
    began = perf_counter()
    report = new_report(path, DIALECT)
    traces = read_traces(path, report)
    report.seconds = perf_counter() - began
    return traces, report


def iter_traces(path: Path, report: IngestReport) -> Iterator[Trace]:
    """Yield the traces of one file, each free once the caller drops it. Raises as `ingest_file`."""
    traces = read_traces(path, report)
    traces.reverse()
    while traces:
        yield traces.pop()


def read_traces(path: Path, report: IngestReport) -> list[Trace]:
    """Return the traces of one file, the main one first, and fill the report. Raises as `ingest_file`."""
    sessions = read_sessions(path, report)
    if not any(session.native for session in sessions):
        raise SourceError(
            f"{path} holds no Claude Code record ({report.records.total()} JSON objects)",
            "a session file of Claude Code",
            "leave it out",
        )
    traces = [trace for session in sessions for trace in _session_traces(path, session, report)]
    report.traces = len(traces)
    report.contexts = sum(len(trace.contexts) for trace in traces)
    report.states = sum(trace.step_count for trace in traces)
    return traces


def _session_traces(path: Path, session: SessionFile, report: IngestReport) -> list[Trace]:
    """Return the traces of one session, the main one first."""
    traces = _traces(path, session, report)
    if session.progress_agents:
        own = {entry.agent for entry in session.entries if entry.agent}
        without_entries = [agent for agent in session.progress_agents if agent not in own]
        report.skipped[ONLY_PROGRESS] += sum(not has_subagent_file(path, agent) for agent in without_entries)
        report.skipped = +report.skipped
    return traces


def _traces(path: Path, session: SessionFile, report: IngestReport) -> list[Trace]:
    chains = split_chains(session)
    assembled = assemble_steps(session.entries, report)
    inside = find_agent_chain_parents(session, chains, assembled)
    traces: list[Trace] = []
    for chain in chains:
        drafts = draft_contexts(chain.entries, session, assembled, report)
        check = PromptCheck()
        contexts, live = _contexts(drafts, check, session, report)
        if not contexts:
            report.flags["chain without steps"] += 1
            continue
        parent = inside.get(chain.key) or ParentCall()
        if chain.key and parent.trace_id is None and session.first_uuid is None:
            parent = find_subagent_parent(path, session, chain)
        notes = _notes(contexts, live, check, chain, report)
        if without_prompt := sum(draft.without_prompt for draft in drafts):
            notes[WITHOUT_PROMPT_NOTE] = without_prompt
        traces.append(_trace(path, session, chain, contexts, parent, notes))
    return traces


def _trace(
    path: Path,
    session: SessionFile,
    chain: AgentChain,
    contexts: tuple[Context, ...],
    parent: ParentCall,
    notes: dict[str, int],
) -> Trace:
    called = {c.name for context in contexts for message in context.messages for c in message.tool_calls}
    return Trace(
        agent_chain_trace_id(session, chain),
        "claude_code",
        DIALECT,
        "claude_code",
        contexts,
        harness_version=session.version,
        kind="side" if chain.key else "main",
        parent_trace_id=parent.trace_id,
        parent_call_id=parent.call_id,
        project=PureWindowsPath(session.cwd).name or None if session.cwd else None,
        started_at=chain.entries[0].timestamp or session.started_at,
        origin=path.name,
        seen_tools=tuple(name for name in session.seen_tools if name and name not in called),
        notes=notes,
    )


def _notes(
    contexts: tuple[Context, ...],
    live: int | None,
    check: PromptCheck,
    chain: AgentChain,
    report: IngestReport,
) -> dict[str, int]:
    """Return counts for the trace, and flag a session whose prefixes and tokens disagree.

    `live_context` is the context the session ended in, where there are several: steps of other contexts that
    do not precede it were abandoned or summarised.
    """
    notes = Counter(f"contexts_{context.start}" for context in contexts)
    r = check.correlation()
    if r is not None:
        notes["prefix_tokens_r_permille"] = round(1000 * r)
        if r < MIN_CORRELATION:
            report.flags["prefix_tokens_mismatch"] += 1
    if live is not None and len(contexts) > 1:
        notes["live_context"] = live
    if chain.agent.startswith(SUMMARISER):
        notes["summariser"] = 1
    return dict(sorted(notes.items()))


def _contexts(
    drafts: list[ContextDraft], check: PromptCheck, session: SessionFile, report: IngestReport
) -> tuple[tuple[Context, ...], int | None]:
    """Return the drafts with steps of their own as contexts, and the number of the live one."""
    contexts: list[Context] = []
    ended = live_draft(drafts, session)
    live: int | None = None
    for draft in drafts:
        context = build_context(draft, len(contexts), check, session.definitions, report)
        if context.steps:
            live = context.index if draft is ended else live
            contexts.append(context)
        elif context.messages:
            report.flags["context without steps"] += 1
    return tuple(contexts), live
