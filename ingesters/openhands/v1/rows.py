"""OpenHands SDK (V1) traces: conversation folders, event files, evaluation rows with V1 events."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path, PurePath
from typing import Any

from tracemill.ingesters.common.benchmark_ids import (
    base_benchmark_id,
    benchmark_report_outcome,
    benchmark_repository,
    parse_benchmark_outcome,
)
from tracemill.ingesters.common.openai_messages import parse_openai_usage
from tracemill.ingesters.openhands.prompts.completion_log import LoggedCall
from tracemill.ingesters.openhands.prompts.completion_log_files import (
    find_log_files_below,
    find_log_files_beside,
    read_logs,
    read_logs_in_events,
)
from tracemill.ingesters.openhands.prompts.metrics import cost_note, read_metrics_usage
from tracemill.ingesters.openhands.prompts.recorded_prompts import apply_recorded_prompts
from tracemill.ingesters.openhands.v1.condensed_view import view_response_key
from tracemill.ingesters.openhands.v1.event_text import Event, event_text_field, v1_event_kind
from tracemill.ingesters.openhands.v1.history import GAP, HARNESS, V1History, V1Settings
from tracemill.ingesters.reading.json_reading import read_json
from tracemill.records.errors import SourceError
from tracemill.records.identity import canonical_json, make_trace_id
from tracemill.records.ingest_report import IngestReport, record_type
from tracemill.records.trace import Outcome, Trace

_EVENT_FILE = re.compile(r"event-(\d+)(?:-.*)?\.json$")
_DIALECT = "openhands_sdk_v1"
_BASE = "base_state.json"
_MERGES_SINCE = "2026-06-04"
_TELLING = frozenset({"MessageEvent", "ActionEvent"})


@dataclass(frozen=True, slots=True)
class V1Source:
    """What is recorded around the events: the base state, the evaluation row they lie in, completion
    logs in order of time."""

    origin: str
    state: Mapping[str, Any]
    row: Mapping[str, Any]
    calls: Sequence[LoggedCall] = ()
    dialect: str = _DIALECT


def traces_of_v1_folder(folder: Path, report: IngestReport) -> Iterator[Trace | None]:
    """The trace of a conversation folder (or of its `events` folder), then those of its subagents; None
    for one that holds no step. Raises SourceError where the events cannot be listed."""
    root = folder.parent if folder.name == "events" else folder
    events = list(_event_files(root / "events" if (root / "events").is_dir() else folder, report))
    responses: set[str | None] = {view_response_key(e) for e in events if isinstance(e, dict)}
    logs = find_log_files_below(root, report) or find_log_files_beside(root, responses)
    source = V1Source(root.name, read_v1_base_state(root, report), {}, read_logs(logs, report))
    trace = trace_of_v1_events(events, source, report)
    yield trace
    for below in sorted((root / "subagents").glob("*/events")):
        for child in traces_of_v1_folder(below, report):
            yield _as_subagent(child, trace) if child is not None else None


def read_v1_base_state(root: Path, report: IngestReport) -> Mapping[str, Any]:
    """What `base_state.json` holds; empty, and flagged, where there is none that can be read."""
    path = root / _BASE
    if not path.is_file():
        report.flags["no base_state.json"] += 1
        return {}
    try:
        value = read_json(path, report)
    except SourceError:
        value = None
    if not isinstance(value, dict):
        report.skipped["base_state.json does not parse"] += 1
        return {}
    return value


def trace_of_v1_events(events: list[Any], source: V1Source, report: IngestReport) -> Trace | None:
    """The trace of V1 events, None among them for what could not be read; None, and counted, where they
    hold no step."""
    usable = _usable(events, report)
    settings = _settings(source, usable)
    contexts = V1History(settings, report).fold(usable)
    if not contexts:
        report.skipped["session without a step"] += 1
        return None
    calls = [*source.calls, *read_logs_in_events(usable, report)]
    contexts = apply_recorded_prompts(contexts, calls, HARNESS, report)
    instance = source.row.get("instance_id")
    instance = instance if isinstance(instance, str) and instance else None
    if _at(source.state, "agent", "llm", "native_tool_calling") is False:
        report.flags["tools and calls are text in the prompt"] += 1
    return Trace(
        trace_id=make_trace_id("openhands", *_native_ids(source.state, usable, instance)),
        source="openhands",
        dialect=source.dialect,
        harness="openhands",
        contexts=tuple(contexts),
        harness_version=_version(source),
        project=PurePath(settings.cwd).name or None if settings.cwd else None,
        repository=benchmark_repository(instance),
        instance_id=base_benchmark_id(instance),
        outcome=_outcome(source.row),
        started_at=next(
            (event_text_field(e, "timestamp") for e in usable if event_text_field(e, "timestamp")), None
        ),
        origin=source.origin,
        notes=cost_note(_cost_usd(source)),
    )


def _as_subagent(child: Trace, parent: Trace | None) -> Trace:
    """A subagent's trace: side, under the call whose arguments hold its first user text."""
    if child.parent_trace_id is not None:  # a subagent's subagent
        return child
    told = next((m.content for m in child.contexts[0].messages if m.role == "user"), "")
    calls = (
        (c for context in parent.contexts for m in context.messages for c in m.tool_calls) if parent else ()
    )
    call = next((c.id for c in calls if told and told in _strings(c.parsed() or {})), None)
    return replace(
        child, kind="side", parent_trace_id=parent.trace_id if parent else None, parent_call_id=call
    )


def _strings(value: Any) -> Iterator[str]:
    """All texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


def _event_files(folder: Path, report: IngestReport) -> Iterator[Any]:
    """The events of a folder in the order of their numbers, None for one that is missing or broken."""
    try:
        with os.scandir(folder) as entries:
            matches = [(_EVENT_FILE.match(entry.name), entry) for entry in entries]
    except OSError as error:
        found, wanted = f"{folder} cannot be listed: {error.strerror}", "a folder of event files"
        raise SourceError(found, wanted, "check its permissions") from None
    due: int | None = None
    numbered = [(int(found.group(1)), entry.name, entry) for found, entry in matches if found]
    for number, _, entry in sorted(numbered, key=itemgetter(0, 1)):
        if due is not None and number > due:
            report.flags["gap in the numbers of events"] += 1
            yield None
        due = number + 1
        try:
            event = read_json(entry.path, report)
            report.bytes += entry.stat().st_size
            yield event
        except (SourceError, OSError):
            report.skipped["event file does not parse"] += 1
            yield None


def _usable(events: list[Any], report: IngestReport) -> list[Event]:
    """The events that are objects, counted by kind, with a gap where one is missing; a repeated id is
    counted and left out."""
    found: list[Event] = []
    seen: set[str] = set()
    for event in events:
        if not isinstance(event, dict):
            if event is not None:
                report.skipped["event is no object"] += 1
            found.append({"kind": GAP})
            continue
        own = event_text_field(event, "id")
        if own and own in seen:
            report.skipped["repeated event"] += 1
            continue
        seen.add(own)
        report.records[record_type(v1_event_kind(event))] += 1
        found.append(event)
    return found


def _settings(source: V1Source, events: list[Event]) -> V1Settings:
    row = source.row
    told = [event for event in events if isinstance(event.get("key"), str)]
    states = [source.state, *(_mapping(e.get("value")) for e in told if e["key"] == "full_state")]
    stats = [*(s.get("stats") for s in states), *(e.get("value") for e in told if e["key"] == "stats")]
    named = [*(_at(s, "agent", "llm", "model") for s in states), _at(row, "metadata", "llm", "model")]
    usages: dict[str, Any] = {}
    models: dict[str, str] = {}
    for metrics in (*(m for stat in stats for m in _metrics(stat)), _mapping(row.get("metrics"))):
        named.append(metrics.get("model_name"))
        for response, item in read_metrics_usage(metrics):
            usages[response] = item
            if isinstance(item.get("model"), str) and item["model"]:
                models[response] = item["model"]
    model = next((name for name in named if isinstance(name, str) and name), None)
    folders = (_at(s, "workspace", "working_dir") for s in states)
    cwd = next((folder for folder in folders if isinstance(folder, str) and folder), None)
    used = {response: parse_openai_usage(item) for response, item in usages.items()}
    return V1Settings(model, used, models, cwd, _merges_users(events))


def _merges_users(events: list[Event]) -> bool:
    """Whether user texts in a row were sent as one: the SDK does since June 2026, which it says itself
    by its event tree (July) or else by the day."""
    first = next((event_text_field(e, "timestamp") for e in events if event_text_field(e, "timestamp")), "")
    return first >= _MERGES_SINCE or any(e.get("parent_id") for e in events)


def _metrics(stats: Any) -> Iterator[Mapping[str, Any]]:
    """The metrics of each use of a model, the one the agent acts by first."""
    table = _mapping(_mapping(stats).get("usage_to_metrics") or _mapping(stats).get("service_to_metrics"))
    for name in sorted(table, key=lambda use: ("condenser" in use, use)):
        if isinstance(table[name], dict):
            yield table[name]


def _cost_usd(source: V1Source) -> float:
    """What the run cost by its own metrics, else by its completion logs."""
    tables = [*_metrics(source.state.get("stats")), _mapping(source.row.get("metrics"))]
    costs = [cost for metrics in tables if isinstance(cost := metrics.get("accumulated_cost"), int | float)]
    return float(sum(costs)) or sum(call.cost_usd for call in source.calls)


def _native_ids(state: Mapping[str, Any], events: list[Event], instance: str | None) -> tuple[str, ...]:
    """The conversation's id, else the id of the first event that says or does something, else all events."""
    own = event_text_field(state, "id")
    telling = (event_text_field(e, "id") for e in events if v1_event_kind(e) in _TELLING)
    return ("v1", instance or "", own or next(filter(None, telling), "") or canonical_json(events))


def _outcome(row: Mapping[str, Any]) -> Outcome:
    tested = benchmark_report_outcome(row.get("test_result"))
    return tested if tested != "unknown" else parse_benchmark_outcome(row.get("resolved"))


def _version(source: V1Source) -> str:
    """The SDK version where it is named, else the line of versions."""
    named = _at(source.row, "metadata", "openhands_sdk_version")
    for value in (source.state.get("sdk_version"), source.state.get("version"), named):
        if isinstance(value, str) and value:
            return value
    return "1"


def _at(value: Any, *path: str) -> Any:
    """The value under nested keys, None where a level is missing."""
    for key in path:
        value = _mapping(value).get(key)
    return value


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
