"""OpenHands sessions, rows, events and completion logs as a format of the registry.

| dialect | recognised by |
|---|---|
| `openhands_eval_v0` | rows with `history` and `instance_id`, or `metadata` and a task, result or pairs |
| `openhands_resolver_v0` | rows with `issue` and `history` |
| `openhands_events_v0` | events with `source` and `action` or `observation`; a folder of `events/<id>.json` |
| `openhands_sdk_v1` | events with `source` and `kind`; a folder of `base_state.json`, `events/event-*.json` |
| `openhands_completion_v0`, `_v1` | one object with a prompt, a `response` and its cost |
"""

import os
import re
from pathlib import Path
from typing import Any

from tracemill.ingesters.format import FormatInfo, Record, RowReader, SessionFormat, lazy_function
from tracemill.ingesters.reading.source_file import SourceFile

_MAX_ITEMS = 50
_ROW_KEYS = frozenset(("instance_id", "traj_id", "trajectory_id"))
_RUN_KEYS = frozenset(("instruction", "test_result"))
_EVENT_COLUMNS = frozenset(("id", "source", "action", "observation"))
_V0_EVENT_FILE = re.compile(r"\d+(?:-\d+)?\.json")


def _detect(record: Record) -> str | None:
    if not _ROW_KEYS.isdisjoint(record):
        return "openhands_eval_v0" if "history" in record else None
    if "issue" in record and "history" in record:
        return "openhands_resolver_v0"
    if (
        "history" in record
        and "metadata" in record
        and (not _RUN_KEYS.isdisjoint(record) or _pairs(record["history"]))
    ):
        return "openhands_eval_v0"
    if _is_completion(record):
        is_v1 = "usage_summary" in record or "context_window" in record or "instructions" in record
        return "openhands_completion_v1" if is_v1 else "openhands_completion_v0"
    return _event(record) or _export(record)


def _pairs(value: Any) -> bool:
    """Return whether a history holds pairs [action, observation], each an event."""
    first = value[0] if isinstance(value, list) and value else None
    action = first[0] if isinstance(first, list) and first else None
    return isinstance(action, dict) and _event(action) is not None


def _is_completion(record: Record) -> bool:
    prompt = isinstance(record.get("messages"), list) or "input" in record
    return prompt and isinstance(record.get("response"), dict) and ("cost" in record or "kwargs" in record)


def _event(record: Record) -> str | None:
    """Return the dialect of a single event."""
    if "source" not in record or "id" not in record:
        return None
    if isinstance(record.get("action"), str) or isinstance(record.get("observation"), str):
        return "openhands_events_v0"
    return "openhands_sdk_v1" if isinstance(record.get("kind"), str) else None


def _export(record: Record) -> str | None:
    """Return the dialect of an object that wraps events, or of the state of a V1 conversation."""
    for key in ("trajectory", "history", "events"):
        items = record.get(key)
        for item in items[:_MAX_ITEMS] if isinstance(items, list) else ():
            dialect = _event(item) if isinstance(item, dict) else None
            if dialect:
                return dialect
    return "openhands_sdk_v1" if "agent" in record and "persistence_dir" in record else None


def _detect_columns(record: Record) -> str | None:
    for name in ("trajectory", "history"):
        items = record.get(name)
        if isinstance(items, list) and items[0].keys() >= _EVENT_COLUMNS:
            return "openhands_eval_v0"
    return _detect(record)


def _detect_folder(path: Path) -> str | None:
    """Return the dialect of a conversation folder: V1 with named events, V0 with numbered ones."""
    if (path / "base_state.json").is_file():
        return "openhands_sdk_v1"
    names = _listed(f"{path}/events")
    if any(name.startswith("event-") and name.endswith(".json") for name in names):
        return "openhands_sdk_v1"
    names += _listed(f"{path}/event_cache")
    return "openhands_events_v0" if any(map(_V0_EVENT_FILE.fullmatch, names)) else None


def _listed(folder: str) -> list[str]:
    """Return the names in a folder, none if it does not exist. Raises OSError."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _row_reader(dialect: str) -> RowReader | None:
    if dialect not in ("openhands_eval_v0", "openhands_resolver_v0"):
        return None
    from tracemill.ingesters.openhands.files import read_one_dialect_row

    return lambda row, origin, report, path: read_one_dialect_row(row, dialect, origin, report, path)


def _without_claimed(sources: list[SourceFile]) -> list[SourceFile]:
    """Return the sources without the completion logs that are read with another one of them."""
    if not any((source.dialect or "").startswith("openhands_completion") for source in sources):
        return sources
    from tracemill.ingesters.openhands.prompts.completion_log_files import drop_read_log_files

    return drop_read_log_files(sources)


FORMAT = SessionFormat(
    name="openhands",
    version=4,
    dialects=(
        "openhands_eval_v0",
        "openhands_resolver_v0",
        "openhands_events_v0",
        "openhands_sdk_v1",
        "openhands_completion_v0",
        "openhands_completion_v1",
    ),
    detect=_detect,
    detect_columns=_detect_columns,
    detect_item=_event,
    folder_signs=frozenset({"base_state.json", "events", "event_cache"}),
    detect_folder=_detect_folder,
    read=lazy_function("tracemill.ingesters.openhands.ingest_files:iter_traces"),
    row_reader=_row_reader,
    without_claimed=_without_claimed,
    kinds=lazy_function("tracemill.ingesters.openhands.vocabulary:kinds_of_record"),
    growing=frozenset({"openhands_events_v0", "openhands_sdk_v1"}),
    facts=FormatInfo(
        of="OpenHands V0 and V1: events, exports, evaluation outputs, conversation folders, completion logs",
        recognised="events with source and action, observation or kind; rows with history; folders of events",
        prompt="all of it in completion logs; in events messages, in later ones system prompt and tools",
        page="docs/formats/openhands.md",
        keys=frozenset(
            (
                "id",
                "source",
                "action",
                "observation",
                "history",
                "instance_id",
                "kind",
                "cause",
                "test_result",
            )
        ),
    ),
)
