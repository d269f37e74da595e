"""Read a session file of Pi (`~/.pi/agent/sessions`) into one trace.

The file is a tree of entries (versions 2 and 3) or a line of them (version 1). It holds neither system prompt
nor tools. A fork is a file of its own that begins with the entries of the session it was taken from.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PureWindowsPath

from tracemill.ingesters.common.openai_messages import first_text
from tracemill.ingesters.common.report_counts import count_traces_in_report
from tracemill.ingesters.common.run_identity import run_identity_digest
from tracemill.ingesters.pi.contexts import PiContextBuilder
from tracemill.ingesters.pi.entries import PiSession, read_session
from tracemill.records.identity import make_trace_id
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Context, Trace

DIALECT = "pi"
NO_HEADER = "session without a header"
NO_STEP = "session without a step"
OF_ANOTHER_SESSION = "step taken over from the session this one was forked from"


def iter_traces(path: Path, report: IngestReport) -> Iterator[Trace]:
    """Yield the trace of a file and fill the report. Raises SourceError if it cannot be read."""
    yield from count_traces_in_report(_traces(path, report), report)


def _traces(path: Path, report: IngestReport) -> Iterator[Trace]:
    session = read_session(path, report)
    if not session.header:
        report.flags[NO_HEADER] += 1
    contexts = tuple(PiContextBuilder(session, report).run())
    if not contexts:
        report.skipped[NO_STEP] += 1
        return
    _flag_forked(session, contexts, report)
    header = session.header
    folder = first_text(header.get("cwd"))
    named = first_text(header.get("id")) or run_identity_digest(contexts[-1].messages)
    notes = Counter(f"contexts_{context.start}" for context in contexts)
    if len(contexts) > 1:
        notes["live_context"] = len(contexts) - 1
    yield Trace(
        trace_id=make_trace_id(DIALECT, named),
        source=DIALECT,
        dialect=DIALECT,
        harness=DIALECT,
        contexts=contexts,
        project=PureWindowsPath(folder).name or None if folder else None,
        started_at=first_text(
            header.get("timestamp"), *(step.timestamp for context in contexts for step in context.steps)
        ),
        origin=path.name,
        notes=dict(sorted(notes.items())),
    )


def _flag_forked(session: PiSession, contexts: tuple[Context, ...], report: IngestReport) -> None:
    """Count the steps that another file holds too: those older than the header of a fork."""
    header = session.header
    began = first_text(header.get("timestamp"))
    if began and first_text(header.get("parentSession"), header.get("branchedFrom")):
        steps = (step for context in contexts for step in context.steps)
        report.flags[OF_ANOTHER_SESSION] += sum((step.timestamp or began) < began for step in steps)
        report.flags = +report.flags
