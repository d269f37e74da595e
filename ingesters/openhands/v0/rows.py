"""OpenHands V0 traces: a history with what stands around it, made one Trace, and one for each delegate.

Rows of evaluation outputs and of the issue resolver, and bare lists of events (GUI exports, event
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
from tracemill.ingesters.openhands.prompts.metrics import cost_note, read_metrics_usage
from tracemill.ingesters.openhands.v0.actions import SILENT_ACTIONS
from tracemill.ingesters.openhands.v0.delegates import Delegation, split_off_delegates
from tracemill.ingesters.openhands.v0.events import V0Event, read_v0_events
from tracemill.ingesters.openhands.v0.history import LOST_STEP, V0History
from tracemill.ingesters.openhands.v0.observation_text import MAX_MESSAGE_CHARS, SILENT_OBSERVATIONS
from tracemill.ingesters.openhands.v0.prompt_messages import V0Settings, is_agents
from tracemill.records.identity import canonical_json, make_trace_id
from tracemill.records.ingest_report import IngestReport
from tracemill.records.trace import Context, Outcome, Trace

if TYPE_CHECKING:
    from tracemill.ingesters.openhands.prompts.completion_log import LoggedCall

_RUN_VERSION = re.compile(r"_N_v(\d+\.\d+(?:\.\d+)?)")
_TEXT_CALL_ID = re.compile(r"toolu_\d{1,4}")  # ids OpenHands numbers itself where the model wrote text


@dataclass(frozen=True, slots=True)
class V0Source:
    """What is recorded around a history: the row it lies in, the session's `metadata.json`, completion
    logs in order of time."""

    origin: str
    dialect: str
    row: Mapping[str, Any] = field(default_factory=dict)
    session: Mapping[str, Any] = field(default_factory=dict)
    calls: "Sequence[LoggedCall]" = ()


def traces_of_v0_row(source: V0Source, report: IngestReport) -> Iterator[Trace]:
    """The traces of an evaluation or resolver row; none, and counted, where it has no usable history."""
    history = source.row.get("history")
    if not isinstance(history, list) or not history:
        report.skipped["row without a history"] += 1
        return
    if source.row.get("error"):
        report.flags["run ended with an error"] += 1
    yield from traces_of_v0_events(history, source, report)


def traces_of_v0_events(history: list[Any], source: V0Source, report: IngestReport) -> Iterator[Trace]:
    """The trace of a list of events, None among them for what could not be read, then a side trace for
    each delegate; none, and counted, where it holds no step."""
    row = source.row
    events, lost = read_v0_events(history, report)
    settings = _settings(source, lost)
    own, delegations = split_off_delegates(events)
    folded = V0History(settings, report)
    contexts = folded.fold(own)
    if not contexts:
        report.skipped["session without a step"] += 1
        return
    version = folded.version or _run_version(row)
    inner = _responses(event for delegation in delegations for event in delegation.events)
    calls = [call for call in source.calls if call.response_id not in inner]
    contexts = _exact(contexts, folded, version, calls, report)
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
    _say_what_lacks([c for each in (trace, *sides) for c in each.contexts], settings, row, report)
    yield trace
    yield from sides


def _delegates(
    above: Trace,
    delegations: Iterable[Delegation],
    settings: V0Settings,
    calls: "Sequence[LoggedCall]",
    report: IngestReport,
) -> Iterator[Trace]:
    """The side traces of an agent's delegates, each with those of its own behind it."""
    for number, delegation in enumerate(delegations):
        own, below = split_off_delegates(delegation.events)
        folded = V0History(replace(settings, lost=settings.lost or not delegation.is_rebuilt), report)
        contexts = folded.fold(own)
        if not contexts:
            report.flags["delegate without a step"] += 1
            continue
        made = _responses(own)
        fitting = [call for call in calls if call.response_id in made]
        trace = replace(
            above,
            trace_id=make_trace_id("openhands", above.trace_id, "delegate", str(number)),
            kind="side",
            parent_trace_id=above.trace_id,
            parent_call_id=delegation.call_id,
            contexts=tuple(_exact(contexts, folded, above.harness_version, fitting, report)),
            outcome="unknown",
            started_at=next((e.timestamp for e in own if e.timestamp), None),
            notes={},
        )
        yield trace
        yield from _delegates(trace, below, settings, calls, report)


def _responses(events: Iterable[V0Event]) -> set[str | None]:
    """The ids of the responses behind actions."""
    found = (_mapping(_mapping(event.call).get("model_response")).get("id") for event in events)
    return {native for native in found if isinstance(native, str)}


def _exact(
    contexts: list[Context],
    folded: V0History,
    version: str | None,
    calls: "Sequence[LoggedCall]",
    report: IngestReport,
) -> list[Context]:
    """The contexts under their logged prompts; what stays lost of steps is counted."""
    found = 0
    if calls:
        from tracemill.ingesters.openhands.prompts.recorded_prompts import FOUND, apply_recorded_prompts

        before = report.flags.get(FOUND, 0)
        harness = harness_for("openhands", version)
        contexts = apply_recorded_prompts(contexts, calls, harness, report, folded.lost_steps)
        found = report.flags.get(FOUND, 0) - before
    if folded.lost_steps > found:
        report.skipped[LOST_STEP] += folded.lost_steps - found
    return contexts


def _settings(source: V0Source, lost: bool) -> V0Settings:
    metadata = _mapping(source.row.get("metadata"))
    llm = _mapping(metadata.get("llm_config"))
    model = llm.get("model") or metadata.get("model_name") or source.session.get("llm_model")
    limit = llm.get("max_message_chars")
    items = dict(read_metrics_usage(_mapping(source.row.get("metrics"))))
    named = ((response, item.get("model")) for response, item in items.items())
    # runs of the evaluation harness switch prompt extensions off; those of the product have them on
    shows = _mapping(metadata.get("agent_config")).get("enable_prompt_extensions", not metadata)
    return V0Settings(
        model=model if isinstance(model, str) else None,
        usages=items,
        models={response: name for response, name in named if isinstance(name, str) and name},
        max_message_chars=limit if isinstance(limit, int) and limit > 0 else MAX_MESSAGE_CHARS,
        shows_recall=shows is True,
        lost=lost,
    )


def _say_what_lacks(
    contexts: list[Context], settings: V0Settings, row: Mapping[str, Any], report: IngestReport
) -> None:
    """Flags: responses the metrics know and the events do not; prompts that were text alone."""
    native = {step.native_id for context in contexts for step in context.steps}
    unseen = len(settings.usages.keys() - native)
    if unseen:
        report.flags["response in the metrics without an event"] += unseen
    ids = (c.id for context in contexts for m in context.messages if m.tool_calls for c in m.tool_calls)
    textual = (_TEXT_CALL_ID.fullmatch(call_id) for call_id in ids if call_id.startswith("toolu_"))
    llm = _mapping(_mapping(row.get("metadata")).get("llm_config"))
    if llm.get("native_tool_calling") is False or any(textual):
        report.flags["tools and calls are text in the prompt"] += 1


def _instance(row: Mapping[str, Any]) -> str | None:
    """The id of the task: an instance id, or the issue of a resolver row."""
    for value in (row.get("instance_id"), row.get("id"), _mapping(row.get("instance")).get("instance_id")):
        if isinstance(value, str) and value:
            return value
    issue = _mapping(row.get("issue"))
    parts = [str(issue.get(key, "")) for key in ("owner", "repo", "number")]
    return f"{parts[0]}__{parts[1]}-{parts[2]}" if all(parts) else None


def _repository(source: V0Source, instance: str | None) -> str | None:
    """`owner/repo`, as recorded or read off the instance id."""
    for recorded in (
        _mapping(source.row.get("instance")).get("repo"),
        source.session.get("selected_repository"),
    ):
        if isinstance(recorded, str) and recorded:
            return recorded
    return benchmark_repository(instance)


def _outcome(row: Mapping[str, Any]) -> Outcome:
    """The verdict of the evaluation, else of the resolver's own judge."""
    tested = benchmark_report_outcome(row.get("test_result"))
    result = _mapping(row.get("test_result")).get("result")
    for verdict in (result if isinstance(result, bool) else None, row.get("resolved"), row.get("success")):
        tested = parse_benchmark_outcome(verdict) if tested == "unknown" else tested
    return tested


def _cost_usd(source: V0Source, history: list[Any]) -> float:
    """What the run cost by its metrics, else by those its events carry, else by its completion logs."""
    told = [source.row.get("metrics")]
    told += [raw["llm_metrics"] for raw in history if isinstance(raw, dict) and "llm_metrics" in raw]
    metrics = (each for each in told if isinstance(each, dict))
    costs = (cost for each in metrics if isinstance(cost := each.get("accumulated_cost"), int | float))
    return max(costs, default=0.0) or sum(call.cost_usd for call in source.calls)


def _run_version(row: Mapping[str, Any]) -> str | None:
    """The version that the evaluation harness writes into the name of a run's folder."""
    found = _RUN_VERSION.search(str(_mapping(row.get("metadata")).get("eval_output_dir")))
    return found.group(1) if found else None


def _native_ids(row: Mapping[str, Any], instance: str | None, events: list[V0Event]) -> tuple[str, ...]:
    """What the source itself tells runs apart by, the same while a session grows: task, run folder, and
    what is shown up to the first action, with its times. Where none has a time, all that the agent did, and
    of everything else its kind and length."""
    run = str(_mapping(row.get("metadata")).get("eval_output_dir") or "")
    told = [e for e in events if e.name not in (SILENT_ACTIONS if e.is_action else SILENT_OBSERVATIONS)]
    first = told[: next((place for place, e in enumerate(told, 1) if is_agents(e)), len(told))]
    timed = any(event.timestamp for event in first)
    said = _identity(first) if timed else map(_trait, told)
    return ("v0", instance or "", run, canonical_json(list(said)))


def _identity(events: Sequence[V0Event]) -> Iterator[list[Any]]:
    """What events say, without their numbers: those also count what is never shown."""
    return ([e.timestamp, e.name, e.content, {} if e.name == "system" else e.fields] for e in events)


def _trait(event: V0Event) -> list[Any]:
    """What tells an event without a time from others."""
    if is_agents(event):
        return [event.name, event.content, event.fields]
    return [event.name, len(event.content)]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
