"""Read a session that `opencode export` wrote into one trace.

The file is one object: the session's `info` and its messages, each with `info` and `parts`. It holds neither
system prompt nor tools. A subagent is a session of its own, in a file of its own.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PureWindowsPath

from tracemill.ingesters.common.openai_messages import as_mapping, first_text
from tracemill.ingesters.common.report_counts import count_traces_in_report
from tracemill.ingesters.common.run_identity import run_identity_digest
from tracemill.ingesters.common.times import iso_time
from tracemill.ingesters.opencode.contexts import OpencodeContexts
from tracemill.ingesters.opencode.format import PRINTED
from tracemill.ingesters.opencode.messages import read_messages
from tracemill.ingesters.reading.json_reading import read_json
from tracemill.records.identity import make_trace_id
from tracemill.records.ingest_report import IngestReport, record_type
from tracemill.records.trace import Trace

DIALECT = "opencode"
NO_STEP = "session without a step"
NO_MESSAGES = "session without a list of messages"
TAKEN_BACK = "session with messages that the user took back"
OWN_SYSTEM = "message of the user with a system prompt of its own"


def iter_traces(path: Path, report: IngestReport) -> Iterator[Trace]:
    """Yield the trace of a file and fill the report. Raises SourceError if it cannot be read."""
    yield from count_traces_in_report(_traces(path, report), report)


def _traces(path: Path, report: IngestReport) -> Iterator[Trace]:
    export = as_mapping(read_json(path, report, PRINTED))
    info, listed = as_mapping(export.get("info")), export.get("messages")
    if not isinstance(listed, list):
        report.skipped[NO_MESSAGES] += 1
        return
    messages = read_messages(listed, report)
    report.records.update(record_type(message.info.get("role")) for message in messages)
    report.flags[TAKEN_BACK] += bool(info.get("revert"))
    report.flags[OWN_SYSTEM] += sum(
        message.role == "user" and bool(first_text(message.info.get("system"))) for message in messages
    )
    contexts = tuple(OpencodeContexts(messages, report).run())
    report.flags = +report.flags
    if not contexts:
        report.skipped[NO_STEP] += 1
        return
    named = first_text(info.get("id")) or run_identity_digest(contexts[-1].messages)
    folder, parent = first_text(info.get("directory")), first_text(info.get("parentID"))
    notes = Counter(f"contexts_{context.start}" for context in contexts)
    if len(contexts) > 1:
        notes["live_context"] = len(contexts) - 1
    yield Trace(
        trace_id=make_trace_id(DIALECT, named),
        source=DIALECT,
        dialect=DIALECT,
        harness=DIALECT,
        contexts=contexts,
        harness_version=first_text(info.get("version")),
        kind="side" if parent else "main",
        parent_trace_id=make_trace_id(DIALECT, parent) if parent else None,
        project=PureWindowsPath(folder).name or None if folder else None,
        started_at=iso_time(as_mapping(info.get("time")).get("created")),
        origin=path.name,
        notes=dict(sorted(notes.items())),
    )
