"""Read mini-swe-agent trajectories: `.traj.json` of versions 1.x and 2.x, and bare lists of messages.

mini-swe-agent shortens no message, so the prompt of an answer is the messages before it. Two kinds are in no
prompt: the exit message at the end, and an answer that version 2 could not parse, which it keeps in `extra`
of the error message.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tracemill.ingesters.common.benchmark_ids import base_benchmark_id, benchmark_repository
from tracemill.ingesters.common.chat_messages import PairedMessages, count_unread_run
from tracemill.ingesters.common.eval_verdicts import EvalVerdicts
from tracemill.ingesters.common.openai_messages import first_text, parse_openai_usage
from tracemill.ingesters.common.report_counts import traces_of_rows
from tracemill.ingesters.common.run_identity import run_identity_digest
from tracemill.ingesters.mini_swe_agent.messages import (
    is_exit,
    mini_result_message,
    parse_mini_message,
    unread_mini_message,
)
from tracemill.ingesters.reading.row_files import row_file
from tracemill.ingesters.swe_agent.metadata import metadata_file_instance, metadata_mapping
from tracemill.records.families import family_of
from tracemill.records.identity import make_trace_id
from tracemill.records.ingest_report import IngestReport, record_type
from tracemill.records.message import Message
from tracemill.records.trace import Context, Fidelity, Outcome, Step, Trace

DIALECT = "mini_swe_agent"
EXIT_MESSAGE = "exit message, shown to no model"
LOST_ANSWER = "answer that could not be parsed, in no later prompt"
NO_MESSAGES = "messages are not a list of messages"
NO_STEP = "run without a step"
ROLE_OF = {"function_call_output": "tool", "response": "assistant"}


def iter_traces(path: Path, report: IngestReport) -> Iterator[Trace]:
    """Yield the traces of one file and fill the report. Raises SourceError."""
    if not report.bytes:
        report.skipped["empty file"] += 1
        return
    verdicts = EvalVerdicts()
    runs = ((run, path if alone else None) for run, alone in _runs(path, report))
    yield from traces_of_rows(
        runs, lambda run: (trace_of_mini_trajectory(*run, path.name, report, verdicts),), report
    )


def _runs(path: Path, report: IngestReport) -> Iterator[tuple[Any, bool]]:
    """Yield the runs of a file (one object, a bare list, or many), each with whether it is the only one."""
    file = row_file(path)
    if file.layout != "value":
        for run in file.rows(report):
            yield run, False
        return
    value = file.value(report)
    if isinstance(value, list) and any(isinstance(item, dict) and "messages" in item for item in value):
        for run in value:
            yield run, False
    else:
        yield value, True


def trace_of_mini_trajectory(
    run: Any, path: Path | None, origin: str, report: IngestReport, verdicts: EvalVerdicts | None = None
) -> Trace | None:
    """Return the trace of one run; None, and counted by reason, where it has no step.

    `path` is the file of the run, None for a row of a table.
    """
    body = run if isinstance(run, dict) else {"messages": run}
    listed, info = body.get("messages"), metadata_mapping(body.get("info"))
    if not isinstance(listed, list) or not listed:
        report.skipped[NO_MESSAGES] += 1
        return None
    config = metadata_mapping(info.get("config"))
    listed = _without_exit(listed, info, report)
    if count_unread_run([name for item in listed for name in unread_mini_message(item)], report):
        return None
    context = _context(listed, config, report)
    if context is None:
        report.skipped[NO_STEP] += 1
        return None
    named = first_text(body.get("instance_id"))
    instance = base_benchmark_id(named or metadata_file_instance(path))
    version = info.get("mini_version")
    outcome: Outcome = "unknown"
    if verdicts is not None and path is not None:
        outcome = verdicts.outcome(path, (named, instance), report)
    return Trace(
        trace_id=make_trace_id(DIALECT, named or "", run_identity_digest(context.messages)),
        source=DIALECT,
        dialect=DIALECT,
        harness=DIALECT,
        contexts=(context,),
        harness_version=version if isinstance(version, str) else None,
        repository=benchmark_repository(instance),
        instance_id=instance,
        outcome=outcome,
        started_at=next((step.timestamp for step in context.steps), None),
        origin=origin,
    )


def _without_exit(listed: list[Any], info: Mapping[str, Any], report: IngestReport) -> list[Any]:
    """Return the messages without the final one on how the run ended."""
    for item in listed:
        report.records[record_type(_kind(item))] += 1
    kept = list(listed)
    while kept and is_exit(kept[-1], kept[-2] if len(kept) > 1 else None, info):
        kept.pop()
        report.flags[EXIT_MESSAGE] += 1
    return kept


def _kind(item: Any) -> str:
    """Return the role of a message of either API."""
    if not isinstance(item, dict):
        return "untyped"
    role = item.get("role") or ROLE_OF.get(str(item.get("type") or item.get("object")))
    return role if isinstance(role, str) else "untyped"


def _context(listed: Sequence[Any], config: Mapping[str, Any], report: IngestReport) -> Context | None:
    """Return the one context of a run, each answer a step; None if there is no answer."""
    paired, steps = PairedMessages(), list[Step]()
    before: Message | None = None
    for place, item in enumerate(listed):
        message = parse_mini_message(item, f"call-{place}")
        if message is None:
            continue
        extra = metadata_mapping(item.get("extra"))
        if message.role == "assistant":
            steps.append(_step(len(steps), len(paired.messages), item, extra, config))
        elif (
            extra.get("interrupt_type") == "FormatError" and before is not None and before.role != "assistant"
        ):
            report.flags[LOST_ANSWER] += 1
        else:
            message = mini_result_message(message, extra, before)
        paired.add(message)
        before = message
    report.skipped += paired.dropped
    report.flags += paired.loose
    messages = tuple(paired.messages)
    report.tool_errors += sum(message.is_error is True for message in messages)
    if not steps:
        return None
    has_user = any(message.role == "user" for message in messages[: steps[0].cut])
    system = "recorded" if messages[0].role == "system" and messages[0].content else "absent"
    behind = [step.index for step in steps if paired.lost_at is not None and step.cut >= paired.lost_at]
    lost_from = behind[0] if behind and has_user else 0
    fidelity = Fidelity(system=system, context="complete" if has_user and not behind else "lost")
    return Context(0, messages, tuple(steps), fidelity=fidelity, lost_from=lost_from)


def _step(
    index: int, cut: int, item: Mapping[str, Any], extra: Mapping[str, Any], config: Mapping[str, Any]
) -> Step:
    """Return a step with the metadata of its response; the configured model is used if it names none."""
    response = metadata_mapping(extra.get("response"))
    body = response or (item if item.get("object") == "response" else {})
    configured = metadata_mapping(config.get("model")).get("model_name")
    model = first_text(body.get("model"), configured)
    native, folder = body.get("id"), metadata_mapping(config.get("environment")).get("cwd")
    return Step(
        index=index,
        cut=cut,
        model=model,
        family=family_of(model),
        native_id=native if isinstance(native, str) else None,
        usage=parse_openai_usage(body.get("usage")),
        cwd=first_text(folder),
        timestamp=_time(extra.get("timestamp", item.get("timestamp"))),
    )


def _time(value: Any) -> str | None:
    """Return a POSIX time in seconds as ISO 8601 in UTC."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        return datetime.fromtimestamp(value, UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return None
