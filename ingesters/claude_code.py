"""Claude Code session JSONL → Traces.

One file gives one main trace, where it holds a main chain, and one side trace for each subagent in it.
What the format never records stays absent: system prompt, tool schemas, the user's memory files. The
way of a file: records → entries (`_entries`), chains (`_chains`), steps with their results (`_steps`),
contexts (`_contexts`), and a check of the outcome against the tokens reported (`_check`).
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PureWindowsPath
from time import perf_counter

from ingesters.claude_code_chains import (
    Chain,
    Parent,
    chain_trace_id,
    parent_outside,
    parents_inside,
    split_chains,
)
from ingesters.claude_code_check import MIN_CORRELATION, prefix_correlation
from ingesters.claude_code_contexts import Draft, draft_contexts
from ingesters.claude_code_entries import Session, read_session
from ingesters.claude_code_steps import StepUnit, TextUnit, assemble
from ingesters.reading import new_report
from ingesters.sources import UNREADABLE, SourceFile, discover, ingest_source
from records.errors import SourceError
from records.families import family_of
from records.message import Message
from records.skip import IngestReport
from records.state import Context, Fidelity, Step, Trace, Usage

DIALECT = "claude_code"
_CLEARED = "[Old tool result content cleared]"


class ClaudeCodeIngester:
    """Reads a session file, or every session file below a folder.

    `reports` holds one IngestReport for each file read so far, with `error` set for a file that is no
    Claude Code session or cannot be read: in a folder it stops nothing.
    """

    def __init__(self) -> None:
        self.reports: list[IngestReport] = []

    def ingest(self, path: Path | str) -> Iterator[Trace]:
        """The traces of a file or folder, files in the order of their paths.

        Raises SourceError where the path does not exist, or is a single file that is no session.
        """
        root = Path(path).expanduser()
        if root.is_dir():
            for source in discover([root]):
                yield from self._ingest(source)
        else:
            traces, report = ingest_file(root)
            self.reports.append(report)
            yield from traces

    def _ingest(self, source: SourceFile) -> list[Trace]:
        """One file of a folder; what is no session is a report."""
        if source.dialect in (DIALECT, UNREADABLE):
            traces, report = ingest_source(source)
        else:
            what = source.dialect or "of no known format"
            error = f"{source.path} is {what}; wanted a session file of Claude Code"
            traces, report = (
                [],
                IngestReport(str(source.path), source.dialect, bytes=source.bytes, error=error),
            )
        self.reports.append(report)
        return traces


def ingest_file(path: Path) -> tuple[list[Trace], IngestReport]:
    """The traces of one file, the main one first, and the report on it.

    Raises SourceError where the file cannot be read or holds no record of Claude Code.
    """
    began = perf_counter()
    report = new_report(path, DIALECT)
    session = read_session(path, report)
    if not session.native:
        raise SourceError(
            f"{path} holds no Claude Code record ({report.records.total()} JSON objects)",
            "a session file of Claude Code",
            "give the format it has, or leave it out",
        )
    traces = _traces(path, session, report)
    report.traces = len(traces)
    report.contexts = sum(len(trace.contexts) for trace in traces)
    report.states = sum(trace.step_count for trace in traces)
    report.seconds = perf_counter() - began
    return traces, report


def _traces(path: Path, session: Session, report: IngestReport) -> list[Trace]:
    chains = split_chains(session)
    assembled = assemble(session.entries, report)
    inside = parents_inside(session, chains, assembled)
    traces: list[Trace] = []
    for chain in chains:
        drafts = draft_contexts(chain.entries, session, assembled, report)
        contexts = _contexts(drafts, report)
        if not contexts:
            report.flags["chain without steps"] += 1
            continue
        parent = inside.get(chain.key) or Parent()
        if chain.key and parent.trace_id is None and session.first_uuid is None:
            parent = parent_outside(path, session, chain.agent)
        traces.append(_trace(path, session, chain, contexts, parent, report))
    return traces


def _trace(
    path: Path,
    session: Session,
    chain: Chain,
    contexts: tuple[Context, ...],
    parent: Parent,
    report: IngestReport,
) -> Trace:
    called = {c.name for context in contexts for message in context.messages for c in message.tool_calls}
    return Trace(
        chain_trace_id(session, chain),
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
        notes=_notes(contexts, chain, report),
    )


def _notes(contexts: tuple[Context, ...], chain: Chain, report: IngestReport) -> dict[str, int]:
    """Counts worth keeping on the trace; flags a session whose prefixes and tokens part."""
    notes = Counter(f"contexts_{context.start}" for context in contexts)
    r = prefix_correlation(contexts)
    if r is not None:
        notes["prefix_tokens_r_percent"] = round(100 * r)
        if r < MIN_CORRELATION:
            report.flags["prefix_tokens_mismatch"] += 1
    if chain.agent.startswith("acompact"):
        notes["summariser"] = 1
    return dict(sorted(notes.items()))


def _contexts(drafts: list[Draft], report: IngestReport) -> tuple[Context, ...]:
    """Drafts that hold steps of their own, as contexts numbered from 0."""
    contexts: list[Context] = []
    for draft in drafts:
        context = _context(draft, len(contexts), report)
        if context.steps:
            contexts.append(context)
        elif context.messages:
            report.flags["context without steps"] += 1
    return tuple(contexts)


def _context(draft: Draft, index: int, report: IngestReport) -> Context:
    messages: list[Message] = []
    steps: list[Step] = []
    latest = 0
    for unit in draft.units:
        if isinstance(unit, TextUnit):
            messages.append(unit.content)
        elif unit is not None and unit.acts:
            own = unit.home == draft.number
            if own:
                steps.append(_step(unit, len(steps), len(messages)))
                if latest > unit.order:
                    report.flags["late tool result"] += 1
            messages.append(unit.message())
            messages.extend(_results(unit, draft.cleared))
            latest = max(latest, unit.last_result)
        elif unit is not None and unit.home == draft.number:
            report.flags["step without action"] += 1
    fidelity = Fidelity(context="lost" if draft.lost else "complete")
    return Context(index, tuple(messages), tuple(steps), draft.start, (), fidelity)


def _step(unit: StepUnit, index: int, cut: int) -> Step:
    return Step(
        index,
        cut,
        unit.model,
        family_of(unit.model),
        unit.message_id,
        unit.usage or Usage(),
        unit.cwd,
        unit.timestamp,
    )


def _results(unit: StepUnit, cleared: frozenset[str]) -> Iterator[Message]:
    """The results of a step in the order they came, those that were cleared as placeholders."""
    for call_id, result in unit.results.items():
        yield replace(result, content=_CLEARED) if call_id in cleared else result
