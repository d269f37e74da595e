"""SWE-agent trajectories as a format of the registry."""

import re
from typing import Any

from tracemill.ingesters.common.eval_verdicts import verdict_file_paths
from tracemill.ingesters.format import FormatInfo, Record, RowReader, SessionFormat, lazy_function

_HEAD = re.compile(
    rb'\{\s*(?:"environment":\s*"[^"]{0,200}",\s*)?"trajectory":\s*\[\s*\{\s*"action":\s*"'
)  # recognises a .traj, also a cut one, without parsing many MB


def _detect(record: Record) -> str | None:
    """Detect a `trajectory` with `action` and `observation`, an agent's `history`, or attempts of these."""
    attempts = record.get("attempts")
    for run in (record, *(attempts[:1] if isinstance(attempts, list) else ())):
        if isinstance(run, dict) and (_steps(run.get("trajectory")) or _messages(run.get("history"))):
            return "swe_agent"
    return None


def _steps(value: Any) -> bool:
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, dict) and "action" in first and "observation" in first and "id" not in first


def _messages(value: Any) -> bool:
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, dict) and "role" in first and ("agent" in first or "message_type" in first)


def _detect_head(head: bytes) -> str | None:
    return "swe_agent" if _HEAD.match(head) else None


def _row_reader(dialect: str) -> RowReader:
    from tracemill.ingesters.swe_agent.ingest_trajectory import read_swe_agent_run

    return lambda row, origin, report, _: read_swe_agent_run(row, None, origin, report)


FORMAT = SessionFormat(
    name="swe_agent",
    version=8,
    dialects=("swe_agent",),
    detect=_detect,
    detect_head=_detect_head,
    read=lazy_function("tracemill.ingesters.swe_agent.ingest_trajectory:iter_traces"),
    row_reader=_row_reader,
    beside=verdict_file_paths,
    kinds=lazy_function("tracemill.ingesters.swe_agent.vocabulary:kinds_of_run"),
    facts=FormatInfo(
        of="SWE-agent, .traj files",
        recognised="trajectory with action and observation, or history with agent",
        prompt="messages and system prompt; no tools",
        page="docs/formats/swe_agent.md",
        keys=frozenset(("environment", "trajectory", "history", "info", "replay_config", "attempts")),
    ),
)
