"""Read the history of a task of Cline or Roo Code (`api_conversation_history.json`) into one trace.

It holds neither system prompt nor tools. The files beside it say what the prompts left out.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PureWindowsPath
from typing import Any

from tracemill.ingesters.cline.contexts import TaskContexts
from tracemill.ingesters.cline.messages import blocks_text
from tracemill.ingesters.cline.task_files import TaskFiles, read_task_files, task_id
from tracemill.ingesters.common.openai_messages import first_text
from tracemill.ingesters.common.report_counts import count_traces_in_report
from tracemill.ingesters.common.run_identity import run_identity_digest
from tracemill.ingesters.reading.json_reading import NOT_AN_OBJECT, read_json
from tracemill.records.errors import SourceError
from tracemill.records.identity import make_trace_id
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace

DIALECT = "cline"
NO_STEP = "task without a step"
NO_VIEW = "history without the messages of the view"
GONE = "answers of the view that the history no longer holds"
TOOK_BACK = "requests that the user took back"
_ROO_KEYS = frozenset(("condenseId", "condenseParent", "isSummary", "truncationId", "truncationParent"))
_ROO_TEXTS = ("# Current Mode\n<slug>", "# Current Workspace Directory", "</slug>\n<name>")


def iter_traces(path: Path, report: IngestReport) -> Iterator[Trace]:
    """Yield the trace of a history and fill the report. Raises SourceError if it cannot be read."""
    yield from count_traces_in_report(_traces(path, report), report)


def _traces(path: Path, report: IngestReport) -> Iterator[Trace]:
    listed = read_json(path, report)
    if not isinstance(listed, list):
        raise SourceError(f"{path} is no history of a task", "a list of messages", "leave it out")
    records = [record for record in listed if isinstance(record, dict)]
    if len(records) < len(listed):
        report.skipped[NOT_AN_OBJECT] += len(listed) - len(records)
    files = read_task_files(path, report)
    _flag_files(records, files, report)
    builder = TaskContexts(records, files, report)
    contexts = tuple(builder.run())
    report.flags = +report.flags
    if not contexts:
        report.skipped[NO_STEP] += 1
        return
    item = files.item
    named = task_id(path, item) or run_identity_digest(contexts[-1].messages)
    started = next((step.timestamp for step in contexts[0].steps if step.timestamp), None)
    parent = first_text(item.get("parentTaskId"))
    folder = first_text(item.get("workspace"), builder.cwd)
    notes = Counter(f"contexts_{context.start}" for context in contexts)
    if len(contexts) > 1:
        notes["live_context"] = len(contexts) - 1
    yield Trace(
        trace_id=make_trace_id(DIALECT, named),
        source=DIALECT,
        dialect=DIALECT,
        harness="roo_code" if _is_roo(records) else "cline",
        contexts=contexts,
        kind="side" if parent else "main",
        parent_trace_id=make_trace_id(DIALECT, parent) if parent else None,
        project=PureWindowsPath(folder).name or None if folder else None,
        started_at=started,
        origin=path.name,
        notes=dict(sorted(notes.items())),
    )


def _flag_files(records: list[dict[str, Any]], files: TaskFiles, report: IngestReport) -> None:
    """Flag missing messages that the files beside the history mention."""
    if not files.has_view:
        report.flags[NO_VIEW] += 1
    answers = sum(record.get("role") == "assistant" for record in records)
    if files.answers_in_view() > answers:
        report.flags[GONE] += files.answers_in_view() - answers
        files.has_view = False  # what is left may have been shown behind others
    if files.took_back:
        report.flags[TOOK_BACK] += files.took_back


def _is_roo(records: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether Roo Code wrote a history, by its keys and its text about the environment."""
    if any(not _ROO_KEYS.isdisjoint(record) for record in records):
        return True
    texts = (blocks_text(record.get("content")) for record in records[:4] if record.get("role") == "user")
    return any(sign in text for text in texts for sign in _ROO_TEXTS)
