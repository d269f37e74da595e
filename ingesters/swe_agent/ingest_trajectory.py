"""Read SWE-agent trajectories: `.traj` files of versions 0.x and 1.x, and tables of such runs.

A file holds one run, or the attempts of one (`attempts`), each a session of its own.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tracemill.harnesses.core.schema_builders import clean_schema_name
from tracemill.ingesters.common.chat_messages import (
    count_unread_run,
    make_chat_observation,
    parse_chat_message,
    unread_chat_message,
)
from tracemill.ingesters.common.eval_verdicts import EvalVerdicts
from tracemill.ingesters.common.openai_messages import unread_content
from tracemill.ingesters.common.prompt_contexts import PromptContexts
from tracemill.ingesters.common.report_counts import traces_of_rows
from tracemill.ingesters.common.run_identity import run_identity_digest
from tracemill.ingesters.reading.row_files import row_file
from tracemill.ingesters.swe_agent.history import REBUILT_CALL, RunTurns, swe_agent_history_turns
from tracemill.ingesters.swe_agent.metadata import RunMetadata, metadata_mapping, read_run_metadata
from tracemill.ingesters.swe_gym.rows import decode_gym_row_value
from tracemill.records.identity import make_trace_id
from tracemill.records.ingest_report import IngestReport, record_type
from tracemill.records.message import Message
from tracemill.records.trace import Context, Outcome, Trace

DIALECT = "swe_agent"
NO_RUN = "neither trajectory nor history"
NO_STEP = "run without a step"
STEP_PROMPTS = ("query", "messages")
STEP_TEXTS = ("action", "observation", "response", "thought")
UNREADABLE_PART = "part of a run that is not a list"


def iter_traces(path: Path, report: IngestReport) -> Iterator[Trace]:
    """Yield the traces of one file and fill the report. Raises SourceError."""
    if not report.bytes:
        report.skipped["empty file"] += 1
        return
    verdicts = EvalVerdicts()
    yield from traces_of_rows(
        _runs(path, report), lambda run: read_swe_agent_run(*run, path.name, report, verdicts), report
    )


def _runs(path: Path, report: IngestReport) -> Iterator[tuple[Any, Path | None]]:
    """Yield the runs of a file, each with the path where the file holds it alone."""
    file = row_file(path)
    if file.layout != "value":
        for run in file.rows(report):
            yield run, None
        return
    value = file.value(report)
    if isinstance(value, list):
        yield from ((run, None) for run in value)
    else:
        yield value, path


def read_swe_agent_run(
    run: Any, path: Path | None, origin: str, report: IngestReport, verdicts: EvalVerdicts | None = None
) -> Iterator[Trace]:
    """Yield the traces of one run, one for each attempt; `path` is the file of the run, None for a row.

    `report.steps_main` counts the recorded steps, `steps_synthetic` those of them that the harness made;
    skipped parts are counted by reason.
    """
    if not isinstance(run, dict):
        report.skipped["run is not an object"] += 1
        return
    metadata = read_run_metadata(run, path)
    outcome: Outcome = "unknown"
    if path is not None and verdicts is not None:
        outcome = verdicts.outcome(path, (metadata.named, metadata.instance_id), report)
    attempts = run.get("attempts")
    if not isinstance(attempts, list) or not attempts:
        trace = _trace(run, metadata, outcome, origin, report)
        if trace is not None:
            yield trace
        return
    best = metadata_mapping(run.get("info")).get("best_attempt_idx")
    for place, attempt in enumerate(attempts):
        if not isinstance(attempt, dict):
            report.skipped["run is not an object"] += 1
            continue
        trace = _trace(attempt, metadata, outcome if place == best else "unknown", origin, report)
        if trace is not None:
            yield trace


def _trace(
    run: Mapping[str, Any], metadata: RunMetadata, outcome: Outcome, origin: str, report: IngestReport
) -> Trace | None:
    """Return the trace of one attempt; None, and counted, where it has no step."""
    history, trajectory = (_listed(run, key, report) for key in ("history", "trajectory"))
    if not history and not trajectory:
        report.skipped[NO_RUN] += 1
        return None
    if count_unread_run(_unread(history, trajectory), report):
        return None
    _count_records(history, trajectory, report)
    turns = swe_agent_history_turns(history, trajectory, metadata.model)
    report.flags += turns.flags
    report.steps_synthetic += turns.synthetic
    contexts = _contexts(turns, report)
    messages = list({id(m): m for context in contexts for m in context.messages}.values())
    report.tool_errors += sum(message.is_error is True for message in messages)
    report.steps_main += turns.steps - sum(len(context.steps) for context in contexts)
    report.tool_calls -= turns.flags[REBUILT_CALL]
    if not contexts:
        report.skipped[NO_STEP] += 1
        return None
    return Trace(
        trace_id=make_trace_id(DIALECT, metadata.named or "", run_identity_digest(messages)),
        source=DIALECT,
        dialect=DIALECT,
        harness=DIALECT,
        contexts=contexts,
        harness_version=metadata.version,
        repository=metadata.repository,
        instance_id=metadata.instance_id,
        outcome=outcome,
        origin=origin,
        seen_tools=tuple(dict.fromkeys(clean_schema_name(name) for name in metadata.offered)),
    )


def _contexts(turns: RunTurns, report: IngestReport) -> tuple[Context, ...]:
    growing = PromptContexts(_read)
    for turn in turns.turns:
        growing.add(turn)
    contexts = growing.finish()
    report.skipped += growing.dropped
    report.flags += growing.loose
    report.compactions += sum(context.start == "microcompaction" for context in contexts)
    report.branches_real += sum(context.start == "rewind" for context in contexts)
    return contexts


def _read(item: Mapping[str, Any]) -> Message | None:
    """Return a message of a history; a text after an action is its result, in any template."""
    message = parse_chat_message(item, "call")
    silent = message is not None and message.role == "user" and message.is_error is None
    if message is not None and silent and item.get("message_type") == "observation":
        return make_chat_observation("user", message.content)
    return message


def _listed(run: Mapping[str, Any], key: str, report: IngestReport) -> list[Any]:
    value = decode_gym_row_value(run.get(key))
    if isinstance(value, list):
        return value
    if run.get(key) is not None:
        report.skipped[UNREADABLE_PART] += 1
    return []


def _unread(history: list[Any], trajectory: list[Any]) -> list[str]:
    """Return the names of parts of a run's messages and steps that are not understood."""
    steps = [step for step in trajectory if isinstance(step, dict)]
    unread = [type(step).__name__ for step in trajectory if not isinstance(step, dict)]
    prompts = (value for step in steps for key in STEP_PROMPTS if isinstance(value := step.get(key), list))
    for listed in (history, *prompts):
        # A step without a request holds one empty message.
        unread += [name for item in listed if item != {} for name in unread_chat_message(item)]
    return unread + [name for step in steps for key in STEP_TEXTS for name in unread_content(step.get(key))]


def _count_records(history: list[Any], trajectory: list[Any], report: IngestReport) -> None:
    roles = [item.get("role") if isinstance(item, dict) else None for item in history or trajectory]
    for role, count in Counter(role if isinstance(role, str) else bool(role) for role in roles).items():
        report.records[record_type(role) if role or history else "step"] += count
