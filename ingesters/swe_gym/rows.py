"""One row of SWE-Gym and its relatives, made a Trace.

Shapes told apart by their fields:
- SWE-Gym sampled and SFT rows, SWE-smith, SWE-Play: `messages` (a list, or JSON text of one), each a chat
  message;
- nebius SWE-rebench-openhands: `trajectory` of chat messages;
- nebius SWE-agent: `trajectory` of {role: system | user | ai, text, system_prompt};
- rows of Anthropic's Messages API: `messages` with content blocks, `system` beside them;
- DataClaw: `messages` with `tool_uses`, which hold calls and their results.
A row that holds more than that is left out, with the reason (`row_messages`).
A row is the last prompt and its response, so the prompt of the message at k is the messages before it.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from tracemill.harnesses.agents.registry import harness_for
from tracemill.ingesters.common.benchmark_ids import (
    base_benchmark_id,
    benchmark_report_outcome,
    benchmark_repository,
    parse_benchmark_outcome,
)
from tracemill.ingesters.common.chat_messages import PairedMessages
from tracemill.ingesters.common.openai_messages import (
    collect_message_calls,
    openai_content_text,
    parse_openai_tools,
)
from tracemill.ingesters.common.run_identity import PREVIEWED, run_identity_digest
from tracemill.ingesters.format import KindSeen
from tracemill.ingesters.swe_gym.row_messages import NotUnderstood, kinds_of_message, parse_row_message
from tracemill.records.families import family_of
from tracemill.records.identity import make_trace_id
from tracemill.records.ingest_report import IngestReport
from tracemill.records.message import Message, ToolSpec
from tracemill.records.trace import Context, Fidelity, Outcome, Step, Trace

NO_MESSAGES = "row without messages or trajectory"
NO_LIST = "messages are no list of messages"
NO_ROLE = "messages have no role"
NO_STEP = "row without a step"
UNKNOWN_ROLE = "message of no known role"
NO_ACTION = "step without action"
NO_RESULT = "row with a call without its result"
JUDGE = "a judge's verdict on a run, no run"

_RUN_MODEL = re.compile(r"^(?P<model>.+?)_maxiter_\d+")
_JUDGEMENT = re.compile(r"\s*<judgement>\s*(?:YES|NO)\s*</judgement>\s*")
_SWE_AGENT_KEYS = frozenset({"agent", "message_type"})  # of its messages, in any table
_MODEL_KEYS = ("model", "model_name", "model_name_or_path", "llm")
_NESTED = ("metadata", "info", "llm_config", "model_config")
_ID_KEYS = ("instance_id", "run_id", "trajectory_id", "traj_id", "model_name", "id")
_HEAD = 8
_EXPORTED = {"claude": "claude_code", "codex": "codex", "gemini": "gemini_cli"}
"""Harnesses by the names that DataClaw gives them."""
_CLAUDE_CODE_TOOLS = frozenset(("Bash", "Read", "Edit", "MultiEdit", "Write", "Glob", "Grep", "TodoWrite"))

# A set whose rows name no model; its card does. Told by the columns no other set has.
# https://huggingface.co/datasets/nebius/SWE-rebench-openhands-trajectories
_REBENCH_COLUMNS = frozenset({"gen_tests_correct", "pred_passes_gen_tests"})
_REBENCH_MODEL, _REBENCH_VERSION = "Qwen/Qwen3-Coder-480B-A35B-Instruct", "0.54.0"


@dataclass(frozen=True, slots=True)
class _Rows:
    """The raw messages of a row, the harness they come from, and whether they are what was sent.

    `dataclaw` where they are an export of a session file: what stands between the messages is not in it.
    """

    messages: list[Any]
    harness: str
    exact: bool
    dataclaw: bool = False


def trace_of_gym_row(row: Any, origin: str, report: IngestReport) -> Trace | None:
    """The trace of a row; None, and counted by reason in `report.skipped`, where it is of no known shape."""
    if not isinstance(row, dict):
        report.skipped["row is no object"] += 1
        return None
    raw = _raw_messages(row, report)
    if raw is None:
        return None
    try:
        messages, cuts, gap = _messages(raw, _system_of(row, raw.messages), report)
    except NotUnderstood as error:
        report.skipped[str(error)] += 1
        return None
    is_rebench = row.keys() >= _REBENCH_COLUMNS
    steps = _steps(cuts, model_of_gym_row(row) or (_REBENCH_MODEL if is_rebench else None))
    if not steps:
        report.skipped[NO_STEP] += 1
        return None
    if all(_JUDGEMENT.fullmatch(messages[step.cut].content) for step in steps):
        report.skipped[JUDGE] += 1
        return None
    tools = parse_openai_tools(
        decode_gym_row_value(row.get("tools")), collect_message_calls(messages), harness_for(raw.harness)
    )
    fidelity = _fidelity(messages, tools, steps, raw.exact)
    unanswered = _first_behind_no_result(messages, steps) if raw.dataclaw else None
    report.flags[NO_RESULT] += unanswered is not None
    report.flags = +report.flags
    left_out = next((step.index for step in steps if gap is not None and step.cut >= gap), None)
    lost_from = min((at for at in (unanswered, left_out) if at is not None), default=0)
    if fidelity.context == "lost":
        lost_from = 0
    elif unanswered is not None or left_out is not None:
        fidelity = replace(fidelity, context="lost")
    instance = _text(row.get("instance_id"))
    return Trace(
        trace_id=make_trace_id(
            "swe_gym", *(_text(row.get(key)) or "" for key in _ID_KEYS), run_identity_digest(messages)
        ),
        source="swe_gym",
        dialect="swe_gym",
        harness=raw.harness,
        contexts=(Context(0, messages, steps, "start", tools, fidelity, lost_from),),
        harness_version=_REBENCH_VERSION if is_rebench else None,
        repository=_text(row.get("repo")) or benchmark_repository(instance),
        instance_id=base_benchmark_id(instance),
        outcome=_outcome(row),
        project=_text(row.get("project")) if raw.dataclaw else None,
        started_at=_text(row.get("start_time")) if raw.dataclaw else None,
        origin=origin,
    )


def _raw_messages(row: Mapping[str, Any], report: IngestReport) -> _Rows | None:
    """The messages of a row by its shape; None, and counted, where it has none."""
    key = next((k for k in ("messages", "trajectory") if row.get(k) is not None), None)
    if key is None:
        report.skipped[NO_MESSAGES] += 1
        return None
    listed = decode_gym_row_value(row[key])
    if not isinstance(listed, list) or not listed:
        report.skipped[NO_LIST] += 1
        return None
    known = [m for m in listed[:_HEAD] if isinstance(m, dict)]
    if not known or "role" not in known[0]:
        report.skipped[NO_ROLE] += 1
        return None
    if any(_starts(m.get("content"), "<returncode>") for m in known):
        return _Rows(listed, "mini_swe_agent", True)
    if any(m.get("role") == "ai" for m in known):
        return _Rows(listed, "swe_agent", False)
    if "traj_id" in row or _SWE_AGENT_KEYS & known[0].keys():
        return _Rows(listed, "swe_agent", "message_type" in known[0])
    if any(isinstance(m, dict) and m.get("tool_uses") for m in listed):
        harness = _EXPORTED.get(_text(row.get("source")) or "") or _harness_of(listed)
        return _Rows(listed, harness, False, dataclaw=True)
    return _Rows(listed, _harness_of(listed), True)


def _harness_of(listed: Sequence[Any]) -> str:
    """The harness of messages that name none: Claude Code by the names of its tools in content blocks and
    in `tool_uses`, else OpenHands."""
    for item in listed:
        if not isinstance(item, dict):
            continue
        content, uses = item.get("content"), item.get("tool_uses")
        blocks = [*(content if isinstance(content, list) else ()), *(uses if isinstance(uses, list) else ())]
        for block in blocks:
            if isinstance(block, dict) and (block.get("name") or block.get("tool")) in _CLAUDE_CODE_TOOLS:
                return "claude_code"
    return "openhands"


def _system_of(row: Mapping[str, Any], listed: Sequence[Any]) -> Message | None:
    """The system prompt that a row has beside its messages, as Anthropic's API takes it."""
    first = listed[0] if isinstance(listed[0], dict) else {}
    text = openai_content_text(decode_blocks(row.get("system")))
    return Message("system", text) if text and first.get("role") not in ("system", "developer") else None


def kinds_of_row(row: Mapping[str, Any]) -> Iterator[KindSeen]:
    """Give a row, its messages and their parts; its other columns are free."""
    yield KindSeen("row", row.keys(), True)
    for key in ("messages", "trajectory"):
        listed = decode_gym_row_value(row.get(key))
        for item in listed if isinstance(listed, list) else ():
            if isinstance(item, dict):
                yield from kinds_of_message(item)


def decode_blocks(value: Any) -> Any:
    """Content blocks that a table stores as JSON text; any other text as it is."""
    found = decode_gym_row_value(value) if isinstance(value, str) and value.startswith("[") else None
    return value if found is None else found


def _first_behind_no_result(messages: Sequence[Message], steps: Sequence[Step]) -> int | None:
    """The first step behind a call whose result is not there."""
    open_calls: set[str] = set()
    cuts = {step.cut: step.index for step in steps}
    for place, message in enumerate(messages):
        if open_calls and place in cuts:
            return cuts[place]
        open_calls.update(call.id for call in message.tool_calls)
        open_calls.discard(message.tool_call_id or "")
    return None


def _messages(
    raw: _Rows, system: Message | None, report: IngestReport
) -> tuple[tuple[Message, ...], list[int], int | None]:
    """The messages in order, and where those stand that the agent said: not those of a demonstration. One
    of no known role is counted and left out; behind how many messages the first of them stood."""
    paired, cuts, gap = PairedMessages(), list[int](), None
    roles = report.records
    if system is not None:
        paired.add(system)
    for place, item in enumerate(raw.messages):
        found = parse_row_message(item, place)
        if not found:
            report.skipped[UNKNOWN_ROLE] += 1
            gap = len(paired.messages) if gap is None else gap
            continue
        for message in found:
            roles[message.role] += 1
            if message.role == "assistant" and not item.get("is_demo"):
                if message.tool_calls or message.content.strip() or item.get(PREVIEWED) is True:
                    cuts.append(len(paired.messages))
                else:
                    report.flags[NO_ACTION] += 1
            paired.add(message)
    report.tool_errors += sum(message.is_error is True for message in paired.messages)
    report.skipped += paired.dropped
    report.flags += paired.loose
    return tuple(paired.messages), cuts, gap


def _steps(cuts: Sequence[int], model: str | None) -> tuple[Step, ...]:
    family = family_of(model)
    return tuple(Step(index, cut, model, family) for index, cut in enumerate(cuts))


def _fidelity(
    messages: Sequence[Message], tools: tuple[ToolSpec, ...], steps: tuple[Step, ...], exact: bool
) -> Fidelity:
    asked = any(message.role == "user" for message in messages[: steps[0].cut])
    return Fidelity(
        system="recorded" if messages[0].role == "system" and messages[0].content else "absent",
        tools="recorded" if any(tool.origin == "recorded" for tool in tools) else "absent",
        context="lost" if not asked else "complete" if exact else "approximate",
    )


def model_of_gym_row(row: Mapping[str, Any]) -> str | None:
    """The model a row names: a column of its own, the start of the run id, or one in its metadata."""
    named = next((text for key in _MODEL_KEYS if (text := _text(row.get(key)))), None)
    if named:
        return named
    found = _RUN_MODEL.match(_text(row.get("run_id")) or "")
    if found:
        return found.group("model")
    inner = (decode_gym_row_value(row.get(key)) for key in _NESTED)
    return next(
        (model for value in inner if isinstance(value, dict) and (model := model_of_gym_row(value))), None
    )


def _outcome(row: Mapping[str, Any]) -> Outcome:
    """The verdict: `resolved`, `target` (nebius), or the report of the test run."""
    for key in ("resolved", "target"):
        outcome = parse_benchmark_outcome(row.get(key))
        if outcome != "unknown":
            return outcome
    return benchmark_report_outcome(decode_gym_row_value(row.get("test_result")))


def decode_gym_row_value(value: Any) -> Any:
    """A value that some sets store as JSON text; None where the text is none."""
    if not isinstance(value, str):
        return value
    try:
        return orjson.loads(value)
    except ValueError:
        pass
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def _starts(value: Any, start: str) -> bool:
    return isinstance(value, str) and value.startswith(start)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
