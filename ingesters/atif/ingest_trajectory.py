"""Read ATIF trajectories: one JSON object a run, written by Harbor or converted from another agent's log.

The format says what happened and not what was sent, so that every context is `approximate`. Steps that are
marked as copied stand in prompts and are steps of the trajectory they come from.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from tracemill.harnesses.agents.registry import harness_for
from tracemill.ingesters.atif.continuations import join_traces, read_continuations
from tracemill.ingesters.atif.own_export import NO_VERSION, is_own_export, own_context, own_outcome
from tracemill.ingesters.atif.steps import (
    STEP_KEYS,
    UNVERIFIED,
    is_verified_version,
    step_action,
    step_metadata,
    step_observations,
    step_results,
    step_text,
    unread_step,
)
from tracemill.ingesters.common.chat_messages import count_unread_run
from tracemill.ingesters.common.flags import NO_ACTION
from tracemill.ingesters.common.growing_context import GrowingContext
from tracemill.ingesters.common.openai_messages import (
    as_mapping,
    collect_message_calls,
    first_text,
    parse_openai_tools,
)
from tracemill.ingesters.common.report_counts import traces_of_rows
from tracemill.ingesters.common.run_identity import run_identity_digest
from tracemill.ingesters.reading.row_files import row_file
from tracemill.records.identity import make_trace_id
from tracemill.records.ingest_report import IngestReport, record_type
from tracemill.records.message import Message
from tracemill.records.trace import Context, Fidelity, Outcome, Trace

DIALECT = "atif"
COPIED = "answer copied from another trajectory"
HARNESS_NOTE = "note of the harness, not known to be shown"
NO_MODEL = "step of the agent that no model made"
NO_STEP = "trajectory without a step"
NOT_STEPS = "steps are not a list of steps"
SUBAGENT_ELSEWHERE = "subagent whose trajectory is in another file"


def iter_traces(path: Path, report: IngestReport) -> Iterator[Trace]:
    """Yield the traces of one file, subagents after their caller. Raises SourceError."""
    if not report.bytes:
        report.skipped["empty file"] += 1
        return
    file = row_file(path)
    value = file.value(report) if file.layout == "value" else None
    rows = [value] if isinstance(value, dict) else value if isinstance(value, list) else file.rows(report)
    if not isinstance(value, dict):
        yield from traces_of_rows(
            rows, lambda row: traces_of_trajectory(row, None, path.name, report), report
        )
        return

    def read(first: Any) -> list[Trace]:
        later = [
            traces_of_trajectory(run, None, path.name, report) for run in read_continuations(path, report)
        ]
        return join_traces([traces_of_trajectory(first, path, path.name, report), *later])

    yield from traces_of_rows(rows, read, report)


def traces_of_trajectory(row: Any, path: Path | None, origin: str, report: IngestReport) -> list[Trace]:
    """Return the traces of a trajectory and of the subagents in it; none, and counted, without a step.

    `path` is the file of the trajectory, None for a row of a table.
    """
    run = as_mapping(row)
    listed = run.get("steps")
    if not isinstance(listed, list) or not all(isinstance(step, dict) for step in listed):
        report.skipped[NOT_STEPS] += 1
        return []
    report.records.update(record_type(step.get("source")) for step in listed)
    report.unknown.update(
        f"step key {record_type(key)}" for step in listed for key in step.keys() - STEP_KEYS
    )
    if not is_verified_version(run.get("schema_version")):
        report.flags[UNVERIFIED] += 1
    children = run.get("subagent_trajectories")
    inner = [as_mapping(child) for child in children] if isinstance(children, list) else []
    traces = [each for child in inner for each in traces_of_trajectory(child, None, origin, report)]
    if count_unread_run([name for step in listed for name in unread_step(step)], report):
        return traces
    trace = _trace(run, listed, path, origin, report)
    if trace is None:
        report.skipped[NO_STEP] += 1
        return traces
    started = _started(listed, {_own_id(child) for child in inner}, report)
    ids = {_trace_seed(child): started.get(_own_id(child)) for child in inner}
    return [trace, *(_child_of(trace, each, ids) for each in traces)]


def _child_of(parent: Trace, trace: Trace, calls: Mapping[str, str | None]) -> Trace:
    """Return the trace of a subagent with its parent, unless it is one of a subagent."""
    if trace.parent_trace_id is not None:
        return trace
    call_id = calls.get(trace.trace_id)
    return replace(trace, kind="side", parent_trace_id=parent.trace_id, parent_call_id=call_id)


def _started(listed: list[Any], inner: set[str], report: IngestReport) -> dict[str, str]:
    """Return the calls that started the subagents of a trajectory, by the ids of their trajectories."""
    calls: dict[str, str] = {}
    for result in (result for step in listed for result in step_results(step)):
        refs = result.get("subagent_trajectory_ref")
        for ref in map(as_mapping, refs if isinstance(refs, list) else [refs] if refs else []):
            name, call_id = _own_id(ref), first_text(result.get("source_call_id"))
            if name not in inner:
                report.flags[SUBAGENT_ELSEWHERE] += 1
            elif call_id is not None:
                calls[name] = call_id
    return calls


def _own_id(run: Mapping[str, Any]) -> str:
    return first_text(run.get("trajectory_id"), run.get("session_id")) or ""


def _trace(
    run: Mapping[str, Any], listed: list[Any], path: Path | None, origin: str, report: IngestReport
) -> Trace | None:
    agent = as_mapping(run.get("agent"))
    if is_own_export(run):
        return _own_trace(run, listed, agent, origin, report)
    name = (first_text(agent.get("name")) or "unknown").lower().replace("-", "_")
    contexts = _contexts(listed, agent, report)
    if not contexts:
        return None
    calls = [call for context in contexts for call in collect_message_calls(context.messages)]
    tools = parse_openai_tools(agent.get("tool_definitions"), calls, harness_for(name))
    if any(tool.origin == "recorded" for tool in tools):
        contexts = [replace(each, fidelity=replace(each.fidelity, tools="recorded")) for each in contexts]
    return Trace(
        trace_id=_trace_seed(run),
        source=DIALECT,
        dialect=DIALECT,
        harness=name,
        contexts=tuple(replace(each, tools=tools) for each in contexts),
        harness_version=first_text(agent.get("version")),
        outcome=_outcome(run, path),
        started_at=next((step.timestamp for step in contexts[0].steps if step.timestamp), None),
        origin=origin,
    )


def _own_trace(
    run: Mapping[str, Any], listed: list[Any], agent: Mapping[str, Any], origin: str, report: IngestReport
) -> Trace | None:
    """Return the trace of a trajectory that tracemill wrote, None without a step."""
    context = own_context(run, listed, report)
    if context is None:
        return None
    name, version = first_text(agent.get("name")) or "unknown", first_text(agent.get("version"))
    harness = harness_for(name, version)
    tools = parse_openai_tools(
        agent.get("tool_definitions"), collect_message_calls(context.messages), harness
    )
    extra = as_mapping(run.get("extra"))
    return Trace(
        trace_id=_trace_seed(run),
        source=DIALECT,
        dialect=DIALECT,
        harness=name,
        contexts=(replace(context, tools=tools),),
        harness_version=None if version == NO_VERSION else version,
        repository=first_text(extra.get("repository")),
        instance_id=first_text(extra.get("instance_id")),
        licence=first_text(extra.get("licence")),
        outcome=own_outcome(run),
        started_at=next((step.timestamp for step in context.steps if step.timestamp), None),
        origin=origin,
    )


def _trace_seed(run: Mapping[str, Any]) -> str:
    """Return the text that the trace id is derived from: ids and content of a trajectory."""
    listed = [step for step in run.get("steps") or () if isinstance(step, dict)]
    messages = [Message("assistant", step_text(step.get("message"))) for step in listed]
    own = first_text(run.get("session_id")) or "", first_text(run.get("trajectory_id")) or ""
    return make_trace_id(DIALECT, *own, run_identity_digest(messages))


def _contexts(listed: list[Any], agent: Mapping[str, Any], report: IngestReport) -> list[Context]:
    """Return the contexts of a trajectory; a note that replaces the history begins one."""
    continued = "continuation_index" in as_mapping(agent.get("extra"))
    harness = harness_for(first_text(agent.get("name")) or "unknown").name
    built: list[Context] = []
    context, known = GrowingContext("compaction" if continued else "start"), True
    for place, step in enumerate(listed):
        if step["source"] == "agent":
            _add_action(context, step, agent, harness, report)
        elif step["source"] == "user":
            context.add_message(Message("user", step_text(step.get("message"))))
        elif place == 0:
            context.add_message(Message("system", step_text(step.get("message"))))
        else:
            report.flags[HARNESS_NOTE] += 1
            managed = as_mapping(as_mapping(step.get("extra")).get("context_management"))
            if managed.get("type") == "compaction" or managed.get("boundary") == "replace":
                report.compactions += 1
                _keep(built, context, known)
                messages = _replacement(listed, step) if managed.get("boundary") == "replace" else []
                context, known = GrowingContext("compaction", messages=messages), bool(messages)
    _keep(built, context, known)
    return built


def _replacement(listed: list[Any], note: Mapping[str, Any]) -> list[Message]:
    """Return the messages that replace the history at a note, none where the note does not hold its text."""
    text = "\n".join(filter(None, (step_text(result.get("content")) for result in step_results(note))))
    if not text.strip():
        return []
    first = listed[0]
    prompt = [Message("system", step_text(first.get("message")))] if first["source"] == "system" else []
    return [*prompt, Message("user", text)]


def _keep(built: list[Context], context: GrowingContext, known: bool) -> None:
    """Add a finished context, unless it holds no step. `known` says whether its beginning is recorded."""
    if context.steps:
        made = context.finish(len(built), ())
        lost_from = context.unanswered_from
        if made.fidelity.context == "lost" or not known:
            lost_from = 0
        lost = lost_from is not None and lost_from < len(made.steps)
        fidelity = Fidelity(made.fidelity.system, context="lost" if lost else "approximate")
        start = lost_from or 0 if lost else 0
        built.append(replace(made, fidelity=fidelity, lost_from=start, approximate_from=0 if start else None))


def _add_action(
    context: GrowingContext,
    step: Mapping[str, Any],
    agent: Mapping[str, Any],
    harness: str,
    report: IngestReport,
) -> None:
    action = step_action(step)
    if action.content.strip() or action.tool_calls:
        context.add_action(action, step_metadata(step, agent))
        if step.get("is_copied_context") or step.get("llm_call_count") == 0:
            context.steps.pop()
            report.flags[COPIED if step.get("is_copied_context") else NO_MODEL] += 1
    else:
        report.flags[NO_ACTION] += 1
    for message in step_observations(step, action, harness, report):
        if message.role == "user":
            context.add_message(message)
        elif reason := context.add_result(message):
            report.skipped[reason] += 1
            continue
        report.tool_errors += message.is_error is True


def _outcome(run: Mapping[str, Any], path: Path | None) -> Outcome:
    """Return the verdict by the reward in the trajectory, else by that of the trial's verifier."""
    final = as_mapping(run.get("final_metrics"))
    places = (run, as_mapping(run.get("extra")), as_mapping(final.get("extra")))
    rewards = (place.get("reward") for place in places)
    reward = next((each for each in rewards if isinstance(each, int | float)), None)
    if reward is None and path is not None:
        with suppress(OSError, ValueError):
            reward = float((path.parent.parent / "verifier" / "reward.txt").read_text(encoding="utf-8"))
    if reward is None:
        return "unknown"
    return "resolved" if reward >= 1 else "not_resolved"
