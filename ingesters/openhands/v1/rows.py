"""Build traces of the OpenHands SDK (V1): conversation folders, event files, evaluation rows."""

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
from tracemill.ingesters.common.openai_messages import as_mapping, first_text, parse_openai_usage
from tracemill.ingesters.openhands.prompts.completion_log import LoggedCall
from tracemill.ingesters.openhands.prompts.completion_log_files import (
    find_log_files_below,
    find_log_files_beside,
    read_logs,
    read_logs_in_events,
)
from tracemill.ingesters.openhands.prompts.metrics import cost_note, read_metrics_usage
from tracemill.ingesters.openhands.prompts.recorded_prompts import apply_recorded_prompts
from tracemill.ingesters.openhands.v0.events import UNREAD_EVENT
from tracemill.ingesters.openhands.v1.condensed_view import view_response_key
from tracemill.ingesters.openhands.v1.event_text import (
    KNOWN_KINDS,
    Event,
    event_text_field,
    unread_event,
    v1_event_kind,
)
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
    """The data around events: the base state, their evaluation row, completion logs by time."""

    origin: str
    state: Mapping[str, Any]
    row: Mapping[str, Any]
    calls: Sequence[LoggedCall] = ()
    dialect: str = _DIALECT


def traces_of_v1_folder(folder: Path, report: IngestReport) -> Iterator[Trace | None]:
    """Yield the trace of a conversation folder (or of its `events` folder), then those of its subagents.

    None stands for one without a step. Raises SourceError if the events cannot be listed.
    """
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
    """Return the content of `base_state.json`; empty, and flagged, where it cannot be read."""
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
    """Return the trace of V1 events, None and counted where they hold no step.

    None in `events` stands for an event that could not be read.
    """
    usable = _usable(events, report)
    settings = _settings(source, usable)
    contexts = V1History(settings, report).build_contexts(usable)
    if not contexts:
        report.skipped["session without a step"] += 1
        return None
    calls = [*source.calls, *read_logs_in_events(usable, report)]
    contexts = apply_recorded_prompts(contexts, calls, HARNESS, report)
    instance = first_text(source.row.get("instance_id"))
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
        started_at=first_text(*(e.get("timestamp") for e in usable)),
        origin=source.origin,
        notes=cost_note(_cost_usd(source)),
    )


def _as_subagent(child: Trace, parent: Trace | None) -> Trace:
    """Return a subagent's trace as a side trace, under the call whose arguments hold its first user text."""
    if child.parent_trace_id is not None:  # a subagent's subagent
        return child
    prompt = next((m.content for m in child.contexts[0].messages if m.role == "user"), "")
    calls = (
        (c for context in parent.contexts for m in context.messages for c in m.tool_calls) if parent else ()
    )
    call = next((c.id for c in calls if prompt and prompt in _strings(c.parsed() or {})), None)
    return replace(
        child, kind="side", parent_trace_id=parent.trace_id if parent else None, parent_call_id=call
    )


def _strings(value: Any) -> Iterator[str]:
    """Yield all texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


def _event_files(folder: Path, report: IngestReport) -> Iterator[Any]:
    """Yield the events of a folder in the order of their numbers, None for a missing or broken one."""
    try:
        with os.scandir(folder) as entries:
            matches = [(_EVENT_FILE.match(entry.name), entry) for entry in entries]
    except OSError as error:
        problem, expected = f"{folder} cannot be listed: {error.strerror}", "a folder of event files"
        raise SourceError(problem, expected, "check its permissions") from None
    due: int | None = None
    numbered = [(int(match.group(1)), entry.name, entry) for match, entry in matches if match]
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
    """Return the events that are objects, counted by kind, with a gap where one is missing.

    A repeated id is counted and left out.
    """
    usable: list[Event] = []
    seen: set[str] = set()
    for event in events:
        if not isinstance(event, dict):
            if event is not None:
                report.skipped["event is not an object"] += 1
            usable.append({"kind": GAP})
            continue
        own = event_text_field(event, "id")
        if own and own in seen:
            report.skipped["repeated event"] += 1
            continue
        seen.add(own)
        kind = v1_event_kind(event)
        report.records[record_type(kind)] += 1
        if kind not in KNOWN_KINDS:
            report.unknown[f"event {record_type(kind)}"] += 1
        unread = unread_event(event)
        if unread:
            report.skipped[UNREAD_EVENT] += 1
            report.unknown.update(f"event {record_type(name)}" for name in unread)
        if not (unread and (kind == "ActionEvent" or event.get("source") == "agent")):
            usable.append(event)
        if unread:
            usable.append({"kind": GAP})
    return usable


def _settings(source: V1Source, events: list[Event]) -> V1Settings:
    row = source.row
    updates = [event for event in events if isinstance(event.get("key"), str)]
    states = [source.state, *(as_mapping(e.get("value")) for e in updates if e["key"] == "full_state")]
    stats = [*(s.get("stats") for s in states), *(e.get("value") for e in updates if e["key"] == "stats")]
    named = [*(_at(s, "agent", "llm", "model") for s in states), _at(row, "metadata", "llm", "model")]
    usages: dict[str, Any] = {}
    models: dict[str, str] = {}
    for metrics in (*(m for stat in stats for m in _metrics(stat)), as_mapping(row.get("metrics"))):
        named.append(metrics.get("model_name"))
        for response, item in read_metrics_usage(metrics):
            usages[response] = item
            if isinstance(item.get("model"), str) and item["model"]:
                models[response] = item["model"]
    model = first_text(*named)
    cwd = first_text(*(_at(s, "workspace", "working_dir") for s in states))
    used = {response: parse_openai_usage(item) for response, item in usages.items()}
    return V1Settings(model, used, models, cwd, _merges_users(events))


def _merges_users(events: list[Event]) -> bool:
    """Return whether consecutive user texts were sent as one.

    The SDK does so since June 2026. Its event tree (since July) shows it, else the date.
    """
    first = first_text(*(e.get("timestamp") for e in events)) or ""
    return first >= _MERGES_SINCE or any(e.get("parent_id") for e in events)


def _metrics(stats: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the metrics of each use of a model, the agent's own first."""
    table = as_mapping(
        as_mapping(stats).get("usage_to_metrics") or as_mapping(stats).get("service_to_metrics")
    )
    for name in sorted(table, key=lambda use: ("condenser" in use, use)):
        if isinstance(table[name], dict):
            yield table[name]


def _cost_usd(source: V1Source) -> float:
    """Return the cost of the run by its own metrics, else by its completion logs."""
    tables = [*_metrics(source.state.get("stats")), as_mapping(source.row.get("metrics"))]
    costs = [cost for metrics in tables if isinstance(cost := metrics.get("accumulated_cost"), int | float)]
    return float(sum(costs)) or sum(call.cost_usd for call in source.calls)


def _native_ids(state: Mapping[str, Any], events: list[Event], instance: str | None) -> tuple[str, ...]:
    """Return the conversation's id, else the id of its first message or action, else all events."""
    own = event_text_field(state, "id")
    telling = (event_text_field(e, "id") for e in events if v1_event_kind(e) in _TELLING)
    return ("v1", instance or "", own or next(filter(None, telling), "") or canonical_json(events))


def _outcome(row: Mapping[str, Any]) -> Outcome:
    tested = benchmark_report_outcome(row.get("test_result"))
    return tested if tested != "unknown" else parse_benchmark_outcome(row.get("resolved"))


def _version(source: V1Source) -> str:
    """Return the SDK version where recorded, else "1"."""
    named = _at(source.row, "metadata", "openhands_sdk_version")
    return first_text(source.state.get("sdk_version"), source.state.get("version"), named) or "1"


def _at(value: Any, *path: str) -> Any:
    """Return the value under nested keys, None if a level is missing."""
    for key in path:
        value = as_mapping(value).get(key)
    return value
