"""mini-swe-agent trajectories as a format of the registry."""

import json
import re
from collections.abc import Sequence
from contextlib import suppress

from tracemill.ingesters.common.eval_verdicts import verdict_file_paths
from tracemill.ingesters.format import FormatInfo, Record, RowReader, SessionFormat, lazy_function

_COMMAND = re.compile(r"```(?:mswea_bash_command|bash)\s*\n|<(?:mswea_bash_command|bash_code)>")
_INFO = re.compile(r'\s*\{\s*"info"\s*:\s*(?=\{)')
_MESSAGES = re.compile(r'\s*,\s*"messages"\s*:')


def _detect(record: Record) -> str | None:
    """Detect `messages` with `trajectory_format` or `info`."""
    info = record.get("info")
    if "messages" in record and (
        str(record.get("trajectory_format")).startswith("mini-swe-agent")
        or (isinstance(info, dict) and ("exit_status" in info or "mini_version" in info))
    ):
        return "mini_swe_agent"
    return None


def _detect_beginning(beginning: bytes) -> str | None:
    """Detect a whole `info` before `messages`."""
    text = beginning.decode("utf-8", "ignore")
    with suppress(ValueError, RecursionError):
        if begun := _INFO.match(text):
            info, end = json.JSONDecoder().raw_decode(text, begun.end())
            return _detect({"info": info, "messages": None}) if _MESSAGES.match(text, end) else None
    return None


def _detect_list(items: Sequence[Record]) -> str | None:
    """Detect a bare list of messages, one of them an answer with a command."""
    return "mini_swe_agent" if any(map(_is_answer, items)) else None


def _is_answer(item: Record) -> bool:
    content = item.get("content")
    return item.get("role") == "assistant" and isinstance(content, str) and bool(_COMMAND.search(content))


def _row_reader(dialect: str) -> RowReader:
    from tracemill.ingesters.mini_swe_agent.ingest_trajectory import trace_of_mini_trajectory

    return lambda row, origin, report, _: (trace_of_mini_trajectory(row, None, origin, report),)


FORMAT = SessionFormat(
    name="mini_swe_agent",
    version=8,
    dialects=("mini_swe_agent",),
    detect=_detect,
    detect_list=_detect_list,
    detect_beginning=_detect_beginning,
    read=lazy_function("tracemill.ingesters.mini_swe_agent.ingest_trajectory:iter_traces"),
    row_reader=_row_reader,
    beside=verdict_file_paths,
    kinds=lazy_function("tracemill.ingesters.mini_swe_agent.vocabulary:kinds_of_run"),
    facts=FormatInfo(
        of="mini-swe-agent, .traj.json files",
        recognised="messages with trajectory_format or info; a list with an answer that holds a command",
        prompt="messages and system prompt; no tools",
        page="docs/formats/swe_agent.md",
        keys=frozenset(("messages", "info", "trajectory_format")),
    ),
)
