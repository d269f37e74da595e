"""OpenHands SDK (V1) traces: conversation folders, event files, evaluation rows with V1 events."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ingesters.instances import base_instance, outcome_of, reported_outcome, repository_of
from ingesters.openhands_v1 import V1History, V1Settings
from ingesters.openhands_v1_text import Event, kind_of, text_field
from ingesters.reading import read_json
from ingesters.wire import usage_of
from records.errors import SourceError
from records.identity import make_trace_id
from records.skip import IngestReport
from records.state import Trace, Usage

_EVENT_FILE = re.compile(r"event-(\d+)(?:-.*)?\.json$")
_DIALECT = "openhands_sdk_v1"
_BASE = "base_state.json"


def trace_of_folder(folder: Path, report: IngestReport) -> Trace | None:
    """The trace of a conversation folder (or of its `events` folder); None where it holds no step."""
    root = folder.parent if folder.name == "events" else folder
    events = list(_event_files(root / "events" if (root / "events").is_dir() else folder, report))
    return trace_of_v1_events(events, base_state(root, report), root.name, report)


def base_state(root: Path, report: IngestReport) -> Mapping[str, Any]:
    """What `base_state.json` holds; empty, and flagged, where there is none that can be read."""
    path = root / _BASE
    if not path.is_file():
        report.flags["no base_state.json"] += 1
        return {}
    try:
        value = read_json(path, report)
    except SourceError:
        value = None
    if not isinstance(value, Mapping):
        report.skipped["base_state.json does not parse"] += 1
        return {}
    return value


def trace_of_v1_events(
    events: list[Any],
    state: Mapping[str, Any],
    origin: str,
    report: IngestReport,
    row: Mapping[str, Any] | None = None,
    dialect: str = _DIALECT,
) -> Trace | None:
    """The trace of V1 events; None, and counted, where they hold no step.

    `state` is the conversation's base state, `row` the evaluation row the events lie in.
    """
    usable = _usable(events, report)
    history = V1History(_settings(state, usable, row or {}), report)
    contexts = history.fold(usable)
    if not contexts:
        report.skipped["session without a step"] += 1
        return None
    instance = (row or {}).get("instance_id")
    instance = instance if isinstance(instance, str) and instance else None
    return Trace(
        trace_id=make_trace_id("openhands", *_native_ids(state, usable, instance)),
        source="openhands",
        dialect=dialect,
        harness="openhands",
        contexts=tuple(contexts),
        harness_version=_version(state),
        repository=repository_of(instance),
        instance_id=base_instance(instance),
        outcome=_outcome(row or {}),
        started_at=next((text_field(e, "timestamp") for e in usable if text_field(e, "timestamp")), None),
        origin=origin,
    )


def _event_files(folder: Path, report: IngestReport) -> Iterator[Any]:
    """The events of a folder in the order of their numbers; a broken file is counted."""
    matches = ((_EVENT_FILE.match(path.name), path) for path in folder.iterdir())
    for _, path in sorted((int(found.group(1)), path) for found, path in matches if found):
        try:
            report.bytes += path.stat().st_size
            yield read_json(path, report)
        except (SourceError, OSError):
            report.skipped["event file does not parse"] += 1


def _usable(events: list[Any], report: IngestReport) -> list[Event]:
    """The events that are objects, counted by kind; a repeated id is counted and left out."""
    found: list[Event] = []
    seen: set[str] = set()
    for event in events:
        if not isinstance(event, Mapping):
            report.skipped["event is no object"] += 1
            continue
        own = text_field(event, "id")
        if own and own in seen:
            report.skipped["repeated event"] += 1
            continue
        seen.add(own)
        report.records[kind_of(event)] += 1
        found.append(event)
    return found


def _settings(state: Mapping[str, Any], events: list[Event], row: Mapping[str, Any]) -> V1Settings:
    stats = [state.get("stats"), *(e.get("value") for e in events if e.get("key") == "stats")]
    model = _at(state, "agent", "llm", "model") or _at(row, "metadata", "llm", "model")
    usages: dict[str, Usage] = {}
    for stat in stats:
        for metrics in _metrics(stat):
            model = model or metrics.get("model_name")
            usages.update(_usages(metrics))
    usages.update(_usages(_mapping(row.get("metrics"))))
    cwd = _at(state, "workspace", "working_dir")
    return V1Settings(
        model if isinstance(model, str) else None, usages, cwd if isinstance(cwd, str) else None
    )


def _metrics(stats: Any) -> Iterator[Mapping[str, Any]]:
    """The metrics of each use of a model, the one the agent acts by first."""
    table = _mapping(_mapping(stats).get("usage_to_metrics") or _mapping(stats).get("service_to_metrics"))
    for name in sorted(table, key=lambda use: ("condenser" in use, use)):
        if isinstance(table[name], Mapping):
            yield table[name]


def _usages(metrics: Mapping[str, Any]) -> Iterator[tuple[str, Usage]]:
    listed = metrics.get("token_usages")
    for item in listed if isinstance(listed, list) else ():
        if isinstance(item, Mapping) and item.get("response_id"):
            yield str(item["response_id"]), usage_of(item)


def _native_ids(state: Mapping[str, Any], events: list[Event], instance: str | None) -> tuple[str, ...]:
    """The conversation's id, else the id of its first event."""
    own = text_field(state, "id")
    first = next((text_field(e, "id") for e in events if text_field(e, "id")), "")
    return ("v1", instance or "", own or first)


def _outcome(row: Mapping[str, Any]) -> Any:
    tested = reported_outcome(row.get("test_result"))
    return tested if tested != "unknown" else outcome_of(row.get("resolved"))


def _version(state: Mapping[str, Any]) -> str | None:
    """The SDK version where a state names it, else the line of versions."""
    for name in ("sdk_version", "version"):
        if text_field(state, name):
            return text_field(state, name)
    return "1"


def _at(value: Any, *path: str) -> Any:
    """The value under nested keys, None where a level is missing."""
    for key in path:
        value = _mapping(value).get(key)
    return value


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
