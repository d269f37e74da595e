"""Task histories of Cline and Roo Code as a format of the registry."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tracemill.ingesters.format import FormatInfo, Record, SessionFormat, lazy_function
from tracemill.ingesters.reading.source_file import SourceFile
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Trace

_OWN_KEYS = frozenset(("modelInfo", "condenseId", "condenseParent", "isSummary", "truncationParent"))
_TASK = ("<task>", "<user_message>", "<feedback>")
_ENVIRONMENT = "<environment_details>"
_COMPANIONS = frozenset(
    (
        *("ui_messages.json", "context_history.json", "task_metadata.json", "history_item.json"),
        *("settings.json", "_index.json"),
    )
)

_SESSION_HEAD = re.compile(
    rb'\{\s*"version":\s*\d+,\s*"updated_at":\s*"[^"]*",\s*"agent":\s*"(?:lead|subagent|teammate)",\s*"sessionId":'
)


def _detect_list(values: Sequence[Record]) -> str | None:
    """Detect messages of the two roles, with a block about the environment or keys of their own."""
    if not values or values[0].get("role") != "user" or any(map(_is_foreign, values)):
        return None
    texts = [text for value in values if value.get("role") == "user" for text in _texts(value["content"])]
    own = any(not _OWN_KEYS.isdisjoint(value) or isinstance(value.get("ts"), int) for value in values)
    tasked = bool(texts) and texts[0].lstrip().startswith(_TASK)
    return (
        "cline" if any(text.lstrip().startswith(_ENVIRONMENT) for text in texts) or (own and tasked) else None
    )


def _is_foreign(value: Record) -> bool:
    """Return whether an object cannot be a history record: no content, or an unknown role."""
    if value.get("type") == "reasoning":
        return False
    return value.get("role") in ("system", "developer", "tool", None) or "content" not in value


def _texts(content: Any) -> list[str]:
    blocks = content if isinstance(content, list) else [{"text": content}]
    texts = (block.get("text") for block in blocks if isinstance(block, dict))
    return [text for text in texts if isinstance(text, str)]


def _detect_head(head: bytes) -> str | None:
    return "cline_session" if _SESSION_HEAD.match(head) else None


def _read(path: Path, report: IngestReport) -> Iterator[Trace]:
    from tracemill.ingesters.cline import ingest_task, sdk_session

    return (sdk_session if report.dialect == "cline_session" else ingest_task).iter_traces(path, report)


def _beside(path: Path) -> Iterator[str]:
    """Yield the files of the folder that are read with a task or a session."""
    from tracemill.ingesters.cline import sdk_session, task_files

    of_session = path.name.endswith(sdk_session.SUFFIX)
    return (sdk_session if of_session else task_files).companion_paths(path)


def _without_claimed(sources: list[SourceFile]) -> list[SourceFile]:
    """Remove the other files of a task or a session, which are read with it."""
    folders = {source.path.parent for source in sources if source.dialect == "cline"}
    sessions = [source.path for source in sources if source.dialect == "cline_session"]
    claimed = {beside for path in sessions for beside in _beside(path)}
    return [
        source
        for source in sources
        if str(source.path) not in claimed
        and (
            source.path.name not in _COMPANIONS
            or source.dialect is not None
            or source.path.parent not in folders
        )
    ]


def _detect(record: Record) -> str | None:
    """Detect a session of Cline 4; a history of earlier versions is a list."""
    if "sessionId" not in record or "agent" not in record:
        return None
    from tracemill.ingesters.cline.sdk_session import is_session

    return "cline_session" if is_session(record) else None


FORMAT = SessionFormat(
    name="cline",
    version=2,
    dialects=("cline", "cline_session"),
    detect=_detect,
    detect_list=_detect_list,
    detect_opening=_detect_list,
    detect_head=_detect_head,
    read=_read,
    beside=_beside,
    without_claimed=_without_claimed,
    kinds=lazy_function("tracemill.ingesters.cline.vocabulary:kinds_of_record"),
    growing=frozenset({"cline"}),
    facts=FormatInfo(
        of="Cline and Roo Code: tasks with the files beside them, sessions of Cline 4",
        recognised="a list of messages about the environment; an object with sessionId, agent and messages",
        prompt="messages, summaries and truncations; system prompt and tools are not recorded",
        page="docs/formats/cline.md",
        keys=frozenset(
            ("role", "content", "ts", "modelInfo", "metrics", "condenseParent", "sessionId", "agent")
        ),
    ),
)
