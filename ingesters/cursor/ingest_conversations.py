"""Read a Cursor database into one trace a conversation, and count the answers of exports."""

from collections.abc import Iterator, Mapping
from pathlib import Path, PureWindowsPath
from typing import Any
from urllib.parse import unquote, urlsplit

from tracemill.ingesters.common.openai_messages import as_mapping, first_text
from tracemill.ingesters.common.report_counts import count_traces_in_report, read_rows_counting_faults
from tracemill.ingesters.common.run_identity import run_identity_digest
from tracemill.ingesters.common.times import iso_time
from tracemill.ingesters.cursor.contexts import ConversationContext
from tracemill.ingesters.cursor.conversations import (
    Conversation,
    read_conversations,
    read_parents,
    read_workspace_folder,
)
from tracemill.ingesters.cursor.markdown import read_exports
from tracemill.ingesters.reading.sqlite_files import open_database
from tracemill.records.identity import make_trace_id
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace

SOURCE = "cursor"
NO_STEP = "conversation without a step"
NO_MESSAGE = "conversation without a message"
NO_CALLS = "answer of an export, which leaves out calls and results"


def iter_traces(path: Path, report: IngestReport) -> Iterator[Trace]:
    """Yield the traces of a database and fill the report. Raises SourceError if it cannot be read."""
    with open_database(path) as connection:
        beside = read_workspace_folder(path, report)
        parents = read_parents(connection)
        listed = read_conversations(connection, report)
        read = read_rows_counting_faults(
            listed, lambda each: [_trace(each, parents, beside, path, report)], report
        )
        yield from count_traces_in_report(read, report)
    report.flags = +report.flags


def iter_export_traces(path: Path, report: IngestReport) -> Iterator[Trace]:
    """Yield no trace, and count the answers of exports: exports leave out the agent's calls.

    Such a step cannot be judged: its text alone would look like the end of the work. Raises SourceError if
    the file cannot be read.
    """
    for who, said in read_exports(path, report):
        report.records["user" if who == "User" else "assistant"] += 1
        if who != "User" and said:
            report.skipped[NO_CALLS] += 1
    yield from ()


def _trace(
    conversation: Conversation,
    parents: Mapping[str, str],
    beside: str | None,
    path: Path,
    report: IngestReport,
) -> Trace | None:
    if not conversation.messages:
        report.skipped[NO_MESSAGE] += 1
        return None
    folder = _folder(conversation, beside)
    context = ConversationContext(conversation, report, folder).run()
    if context is None:
        report.skipped[NO_STEP] += 1
        return None
    named = conversation.id or run_identity_digest(context.messages)
    parent = parents.get(named)
    first = next((step.timestamp for step in context.steps if step.timestamp), None)
    return Trace(
        trace_id=make_trace_id(SOURCE, named),
        source=SOURCE,
        dialect=SOURCE,
        harness=SOURCE,
        contexts=(context,),
        kind="side" if parent else "main",
        parent_trace_id=make_trace_id(SOURCE, parent) if parent else None,
        project=PureWindowsPath(folder).name or None if folder else None,
        started_at=iso_time(conversation.metadata.get("createdAt")) or first,
        origin=path.name,
        notes={"contexts_start": 1},
    )


def _folder(conversation: Conversation, beside: str | None) -> str | None:
    """Return the folder of a conversation: its own, that of a message, else that of the database."""
    uri = as_mapping(as_mapping(conversation.metadata.get("workspaceIdentifier")).get("uri"))
    named: list[Any] = [uri.get("fsPath"), uri.get("path"), uri.get("external")]
    for message in conversation.messages:
        if message is not None:
            uris = message.get("workspaceUris")
            named += [message.get("workspaceProjectDir"), *(uris[:1] if isinstance(uris, list) else ())]
    folder = first_text(*named, beside)
    return _path_of(folder) if folder else None


def _path_of(folder: str) -> str:
    """Return the path of a folder that may be given as a URI, without a slash before a drive."""
    path = unquote(urlsplit(folder).path) if "://" in folder else folder
    return path[1:] if path[:1] == "/" and path[2:3] == ":" else path
