"""Build traces from V0 histories and their surroundings, with a side trace for each delegate.

Sources are rows of evaluation outputs and of the issue resolver, and bare lists of events (GUI exports, event
folders).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tracemill.harnesses.agents.registry import harness_for
from tracemill.ingesters.common.benchmark_ids import (
    base_benchmark_id,
    benchmark_report_outcome,
    benchmark_repository,
    parse_benchmark_outcome,
)
from tracemill.ingesters.common.openai_messages import as_mapping, first_text
from tracemill.ingesters.openhands.prompts.metrics import cost_note, read_metrics_usage
from tracemill.ingesters.openhands.v0.actions import KNOWN_ACTIONS, SILENT_ACTIONS
from tracemill.ingesters.openhands.v0.delegates import Delegation, split_off_delegates
from tracemill.ingesters.openhands.v0.events import V0Event, read_v0_events
from tracemill.ingesters.openhands.v0.history import LOST_STEP, V0History
from tracemill.ingesters.openhands.v0.observation_text import (
    KNOWN_OBSERVATIONS,
    MAX_MESSAGE_CHARS,
    SILENT_OBSERVATIONS,
)
from tracemill.ingesters.openhands.v0.prompt_messages import V0Settings, is_agent_action
from tracemill.records.identity import canonical_json, make_trace_id
from tracemill.records.ingest_report import IngestReport, record_type
from tracemill.records.trace import Context, Outcome, Trace

if TYPE_CHECKING:
    from tracemill.ingesters.openhands.prompts.completion_log import LoggedCall

_RUN_VERSION = re.compile(r"_N_v(\d+\.\d+(?:\.\d+)?)")
_TEXT_CALL_ID = re.compile(r"toolu_\d{1,4}")  # ids that OpenHands gives to calls written as text


@dataclass(frozen=True, slots=True)
class V0Source:
    """The data around a history: its row, the session's `metadata.json`, completion logs by time."""

    origin: str
    dialect: str
    row: Mapping[str, Any] = field(default_factory=dict)
    session: Mapping[str, Any] = field(default_factory=dict)
    calls: "Sequence[LoggedCall]" = ()


def traces_of_v0_row(source: V0Source, report: IngestReport) -> Iterator[Trace]:
    """Yield the traces of an evaluation or resolver row; a row without a history is counted."""
    history = source.row.get("history")
    if not isinstance(history, list) or not history:
        report.skipped["row without a history"] += 1
        return
    if source.row.get("error"):
        report.flags["run ended with an error"] += 1
    yield from traces_of_v0_events(history, source, report)


def traces_of_v0_events(history: list[Any], source: V0Source, report: IngestReport) -> Iterator[Trace]:
    """Yield the trace of a list of events, then a side trace for each delegate.

    None in `history` stands for an event that could not be read. A list without a step is counted.
    """
    row = source.row
    events, lost = read_v0_events(history, report)
    _count_unknown(events, report)
    settings = _settings(source, lost)
    own, delegations = split_off_delegates(events)
    builder = V0History(settings, report)
    contexts = builder.build_contexts(own)
    if not contexts:
        report.skipped["session without a step"] += 1
        return
    version = builder.version or _run_version(row)
    inner = _responses(event for delegation in delegations for event in delegation.events)
    calls = [call for call in source.calls if call.response_id not in inner]
    contexts = _apply_logs(contexts, builder, version, calls, report)
    instance = _instance(row)
    trace = Trace(
        trace_id=make_trace_id("openhands", *_native_ids(row, instance, events)),
        source="openhands",
        dialect=source.dialect,
        harness="openhands",
        contexts=tuple(contexts),
        harness_version=version,
        repository=_repository(source, instance),
        instance_id=base_benchmark_id(instance),
        outcome=_outcome(row),
        started_at=next((e.timestamp for e in events if e.timestamp), None),
        origin=source.origin,
        notes=cost_note(_cost_usd(source, history)),
    )
    sides = list(_delegates(trace, delegations, settings, source.calls, report))
    _flag_gaps([c for each in (trace, *sides) for c in each.contexts], settings, row, report)
    yield trace
    yield from sides


def _count_unknown(events: Iterable[V0Event], report: IngestReport) -> None:
    """Count unknown kinds of events, which are read by the general rules."""
    for event in events:
        if event.is_action and event.name not in KNOWN_ACTIONS:
            report.unknown[f"action {record_type(event.name)}"] += 1
        elif not event.is_action and event.name not in KNOWN_OBSERVATIONS:
            report.unknown[f"observation {record_type(event.name)}"] += 1


def _delegates(
    above: Trace,
    delegations: Iterable[Delegation],
    settings: V0Settings,
    calls: "Sequence[LoggedCall]",
    report: IngestReport,
) -> Iterator[Trace]:
    """Yield the side traces of an agent's delegates, each followed by those of its own delegates."""
    for number, delegation in enumerate(delegations):
        own, below = split_off_delegates(delegation.events)
        builder = V0History(replace(settings, lost=settings.lost or not delegation.is_rebuilt), report)
        contexts = builder.build_contexts(own)
        if not contexts:
            report.flags["delegate without a step"] += 1
            continue
        own_responses = _responses(own)
        fitting = [call for call in calls if call.response_id in own_responses]
        trace = replace(
            above,
            trace_id=make_trace_id("openhands", above.trace_id, "delegate", str(number)),
            kind="side",
            parent_trace_id=above.trace_id,
            parent_call_id=delegation.call_id,
            contexts=tuple(_apply_logs(contexts, builder, above.harness_version, fitting, report)),
            outcome="unknown",
            started_at=next((e.timestamp for e in own if e.timestamp), None),
            notes={},
        )
        yield trace
        yield from _delegates(trace, below, settings, calls, report)


def _responses(events: Iterable[V0Event]) -> set[str | None]:
    """Return the ids of the responses that actions belong to."""
    ids = (as_mapping(as_mapping(event.call).get("model_response")).get("id") for event in events)
    return {native for native in ids if isinstance(native, str)}


def _apply_logs(
    contexts: list[Context],
    builder: V0History,
    version: str | None,
    calls: "Sequence[LoggedCall]",
    report: IngestReport,
) -> list[Context]:
    """Return the contexts under their logged prompts, and count the steps that stay lost."""
    found_steps = 0
    if calls:
        from tracemill.ingesters.openhands.prompts.recorded_prompts import FOUND, apply_recorded_prompts

        before = report.flags.get(FOUND, 0)
        harness = harness_for("openhands", version)
        contexts = apply_recorded_prompts(contexts, calls, harness, report, builder.lost_steps)
        found_steps = report.flags.get(FOUND, 0) - before
    if builder.lost_steps > found_steps:
        report.skipped[LOST_STEP] += builder.lost_steps - found_steps
    return contexts


def _settings(source: V0Source, lost: bool) -> V0Settings:
    metadata = as_mapping(source.row.get("metadata"))
    llm = as_mapping(metadata.get("llm_config"))
    model = llm.get("model") or metadata.get("model_name") or source.session.get("llm_model")
    limit = llm.get("max_message_chars")
    items = dict(read_metrics_usage(as_mapping(source.row.get("metrics"))))
    named = ((response, item.get("model")) for response, item in items.items())
    # Runs of the evaluation harness switch prompt extensions off; runs of the product have them on.
    shows = as_mapping(metadata.get("agent_config")).get("enable_prompt_extensions", not metadata)
    return V0Settings(
        model=model if isinstance(model, str) else None,
        usages=items,
        models={response: name for response, name in named if isinstance(name, str) and name},
        max_message_chars=limit if isinstance(limit, int) and limit > 0 else MAX_MESSAGE_CHARS,
        shows_recall=shows is True,
        lost=lost,
    )


def _flag_gaps(
    contexts: list[Context], settings: V0Settings, row: Mapping[str, Any], report: IngestReport
) -> None:
    """Flag responses in the metrics without events, and prompts that were text alone."""
    native = {step.native_id for context in contexts for step in context.steps}
    unseen = len(settings.usages.keys() - native)
    if unseen:
        report.flags["response in the metrics without an event"] += unseen
    ids = (c.id for context in contexts for m in context.messages if m.tool_calls for c in m.tool_calls)
    textual = (_TEXT_CALL_ID.fullmatch(call_id) for call_id in ids if call_id.startswith("toolu_"))
    llm = as_mapping(as_mapping(row.get("metadata")).get("llm_config"))
    if llm.get("native_tool_calling") is False or any(textual):
        report.flags["tools and calls are text in the prompt"] += 1


def _instance(row: Mapping[str, Any]) -> str | None:
    """Return the id of the task: an instance id, or the issue of a resolver row."""
    inner = as_mapping(row.get("instance")).get("instance_id")
    if named := first_text(row.get("instance_id"), row.get("id"), inner):
        return named
    issue = as_mapping(row.get("issue"))
    parts = [str(issue.get(key, "")) for key in ("owner", "repo", "number")]
    return f"{parts[0]}__{parts[1]}-{parts[2]}" if all(parts) else None


def _repository(source: V0Source, instance: str | None) -> str | None:
    """Return `owner/repo`, as recorded or from the instance id."""
    recorded = as_mapping(source.row.get("instance")).get("repo")
    selected = source.session.get("selected_repository")
    return first_text(recorded, selected) or benchmark_repository(instance)


def _outcome(row: Mapping[str, Any]) -> Outcome:
    """Return the verdict of the evaluation, else of the resolver's own judge."""
    tested = benchmark_report_outcome(row.get("test_result"))
    result = as_mapping(row.get("test_result")).get("result")
    for verdict in (result if isinstance(result, bool) else None, row.get("resolved"), row.get("success")):
        tested = parse_benchmark_outcome(verdict) if tested == "unknown" else tested
    return tested


def _cost_usd(source: V0Source, history: list[Any]) -> float:
    """Return the cost of the run by its metrics, else those of its events, else its completion logs."""
    found = [source.row.get("metrics")]
    found += [raw["llm_metrics"] for raw in history if isinstance(raw, dict) and "llm_metrics" in raw]
    metrics = (each for each in found if isinstance(each, dict))
    costs = (cost for each in metrics if isinstance(cost := each.get("accumulated_cost"), int | float))
    return max(costs, default=0.0) or sum(call.cost_usd for call in source.calls)


def _run_version(row: Mapping[str, Any]) -> str | None:
    """Return the version that the evaluation harness writes into the name of a run's folder."""
    match = _RUN_VERSION.search(str(as_mapping(row.get("metadata")).get("eval_output_dir")))
    return match.group(1) if match else None


def _native_ids(row: Mapping[str, Any], instance: str | None, events: list[V0Event]) -> tuple[str, ...]:
    """Return the parts that identify a run and stay the same while the session grows.

    They are the task, the run folder, and the shown events up to the first action with their times. Without
    times they are all of the agent's actions, and kind and length of every other event.
    """
    run = str(as_mapping(row.get("metadata")).get("eval_output_dir") or "")
    shown = [e for e in events if e.name not in (SILENT_ACTIONS if e.is_action else SILENT_OBSERVATIONS)]
    first = shown[: next((place for place, e in enumerate(shown, 1) if is_agent_action(e)), len(shown))]
    parts: list[list[Any]]
    if any(event.timestamp for event in first):  # event ids also count events that are not shown
        parts = [[e.timestamp, e.name, e.content, {} if e.name == "system" else e.fields] for e in first]
    else:
        parts = [
            [e.name, e.content, e.fields] if is_agent_action(e) else [e.name, len(e.content)] for e in shown
        ]
    return ("v0", instance or "", run, canonical_json(parts))
