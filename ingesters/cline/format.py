"""Task histories of Cline and Roo Code as a format of the registry."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tracemill.ingesters.format import Format, FormatFacts, Record, lazy_function
from tracemill.ingesters.reading.source_file import SourceFile

_OWN_KEYS = frozenset(("modelInfo", "condenseId", "condenseParent", "isSummary", "truncationParent"))
_TASK = ("<task>", "<user_message>", "<feedback>")
_ENVIRONMENT = "<environment_details>"
_COMPANIONS = frozenset(
    (
        *("ui_messages.json", "context_history.json", "task_metadata.json", "history_item.json"),
        *("settings.json", "_index.json"),
    )
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
    """Return whether an object is of no history: without content, or of a role that none has."""
    if value.get("type") == "reasoning":
        return False
    return value.get("role") in ("system", "developer", "tool", None) or "content" not in value


def _texts(content: Any) -> list[str]:
    blocks = content if isinstance(content, list) else [{"text": content}]
    texts = (block.get("text") for block in blocks if isinstance(block, dict))
    return [text for text in texts if isinstance(text, str)]


def _beside(path: Path) -> Iterator[str]:
    """Yield the files of the task folder that are read with a history."""
    from tracemill.ingesters.cline.task_files import companion_paths

    return companion_paths(path)


def _without_claimed(sources: list[SourceFile]) -> list[SourceFile]:
    """Remove the other files of a task folder, which are read with its history."""
    folders = {source.path.parent for source in sources if source.dialect == "cline"}
    return [
        source
        for source in sources
        if source.path.name not in _COMPANIONS
        or source.dialect is not None
        or source.path.parent not in folders
    ]


def _no_record(record: Record) -> str | None:
    """Detect no single object: a history is a list."""
    return None


FORMAT = Format(
    name="cline",
    version=1,
    dialects=("cline",),
    detect=_no_record,
    detect_list=_detect_list,
    read=lazy_function("tracemill.ingesters.cline.ingest_task:iter_traces"),
    beside=_beside,
    without_claimed=_without_claimed,
    kinds=lazy_function("tracemill.ingesters.cline.vocabulary:kinds_of_record"),
    growing=frozenset({"cline"}),
    facts=FormatFacts(
        of="Cline and Roo Code: api_conversation_history.json of a task, with the files beside it",
        recognised="a list of messages with a block about the environment, or with keys of the two",
        prompt="messages, summaries and truncations; system prompt and tools are not recorded",
        page="docs/formats/cline.md",
        keys=frozenset(("role", "content", "ts", "modelInfo", "metrics", "condenseParent")),
    ),
)
