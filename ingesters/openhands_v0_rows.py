"""OpenHands V0 traces: a history with what stands around it, made one Trace.

Rows of evaluation outputs and of the issue resolver, and bare lists of events (GUI exports, event
folders).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ingesters.instances import base_instance, outcome_of, reported_outcome, repository_of
from ingesters.openhands_v0 import V0History, V0Settings
from ingesters.openhands_v0_events import V0Event, v0_events
from ingesters.openhands_v0_text import MAX_MESSAGE_CHARS
from ingesters.wire import usage_of
from records.identity import canonical_json, make_trace_id
from records.skip import IngestReport
from records.state import Outcome, Trace, Usage

_FIRST = 3  # events that tell sessions apart, and stay the same while a session grows


def trace_of_row(row: Mapping[str, Any], dialect: str, origin: str, report: IngestReport) -> Trace | None:
    """The trace of an evaluation or resolver row; None, and counted, where it has no usable history."""
    history = row.get("history")
    if not isinstance(history, list) or not history:
        report.skipped["row without a history"] += 1
        return None
    if row.get("error"):
        report.flags["run ended with an error"] += 1
    return _trace(history, row, dialect, origin, report)


def trace_of_events(events: list[Any], dialect: str, origin: str, report: IngestReport) -> Trace | None:
    """The trace of a bare list of events; None, and counted, where it holds no step."""
    return _trace(events, {}, dialect, origin, report)


def _trace(
    history: list[Any], row: Mapping[str, Any], dialect: str, origin: str, report: IngestReport
) -> Trace | None:
    events = v0_events(history, report)
    folded = V0History(_settings(row, report), report)
    contexts = folded.fold(events)
    if not contexts:
        report.skipped["session without a step"] += 1
        return None
    instance = _instance(row)
    return Trace(
        trace_id=make_trace_id("openhands", *_native_ids(row, instance, events)),
        source="openhands",
        dialect=dialect,
        harness="openhands",
        contexts=tuple(contexts),
        harness_version=folded.version,
        repository=_repository(row, instance),
        instance_id=base_instance(instance),
        outcome=_outcome(row),
        started_at=next((e.timestamp for e in events if e.timestamp), None),
        origin=origin,
    )


def _settings(row: Mapping[str, Any], report: IngestReport) -> V0Settings:
    metadata = _mapping(row.get("metadata"))
    llm = _mapping(metadata.get("llm_config"))
    model, limit = llm.get("model"), llm.get("max_message_chars")
    usages = dict(_usages(_mapping(row.get("metrics")), report))
    # runs of the evaluation harness switch prompt extensions off; those of the product have them on
    shows = _mapping(metadata.get("agent_config")).get("enable_prompt_extensions", not metadata)
    return V0Settings(
        model=model if isinstance(model, str) else None,
        usages=usages,
        max_message_chars=limit if isinstance(limit, int) and limit > 0 else MAX_MESSAGE_CHARS,
        shows_recall=shows is True,
    )


def _usages(metrics: Mapping[str, Any], report: IngestReport) -> Iterator[tuple[str, Usage]]:
    """Usage by response id, as the run's own metrics list it."""
    listed = metrics.get("token_usages")
    for item in listed if isinstance(listed, list) else ():
        if isinstance(item, Mapping) and item.get("response_id"):
            yield str(item["response_id"]), usage_of(item)
        else:
            report.flags["usage without a response id"] += 1


def _instance(row: Mapping[str, Any]) -> str | None:
    """The id of the task: an instance id, or the issue of a resolver row."""
    value = row.get("instance_id")
    if isinstance(value, str) and value:
        return value
    issue = _mapping(row.get("issue"))
    parts = [str(issue.get(key, "")) for key in ("owner", "repo", "number")]
    return f"{parts[0]}__{parts[1]}-{parts[2]}" if all(parts) else None


def _repository(row: Mapping[str, Any], instance: str | None) -> str | None:
    """`owner/repo`, as recorded or read off the instance id."""
    recorded = _mapping(row.get("instance")).get("repo")
    if isinstance(recorded, str) and recorded:
        return recorded
    return repository_of(instance)


def _outcome(row: Mapping[str, Any]) -> Outcome:
    """The verdict of the evaluation, else of the resolver's own judge."""
    tested = reported_outcome(row.get("test_result"))
    if tested != "unknown":
        return tested
    direct = outcome_of(row.get("resolved"))
    return direct if direct != "unknown" else outcome_of(row.get("success"))


def _native_ids(row: Mapping[str, Any], instance: str | None, events: list[V0Event]) -> tuple[str, ...]:
    """What the source itself tells runs apart by: task, run folder, the first events and their times."""
    metadata = _mapping(row.get("metadata"))
    run = str(metadata.get("eval_output_dir") or "")
    first = [[e.id, e.timestamp, e.name, e.content, dict(e.fields)] for e in events[:_FIRST]]
    answers = next((e for e in events if e.is_action and e.source == "agent" and e.name != "system"), None)
    second = [answers.timestamp, dict(answers.fields)] if answers else []
    return ("v0", instance or "", run, canonical_json(first), canonical_json(second))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
