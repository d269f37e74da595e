"""Build a trace from one row of SWE-Gym and similar datasets.

The shapes are recognised by their fields:
- SWE-Gym sampled and SFT rows, SWE-smith, SWE-Play: `messages` of chat messages, as a list or JSON text;
- nebius SWE-rebench-openhands: `trajectory` of chat messages;
- nebius SWE-agent: `trajectory` of {role: system | user | ai, text, system_prompt};
- rows of Anthropic's Messages API: `messages` with content blocks, `system` beside them;
- DataClaw: `messages` with `tool_uses`, which hold calls and their results;
- ShareGPT: `conversations` (or `messages`) of turns {from, value}, or of chat messages;
- version 1 of LLaMA-Factory: `messages` whose parts are {type, value};
- a request and its response of the Responses API: `instructions`, `input` and `output`;
- a rollout of NeMo Gym: the same in `responses_create_params` and `response`, `output` with a list for each
  transition where an agent of Aviary wrote it.

A row with other content is left out, with the reason (`row_messages`). A row is the last prompt and its
response, so the prompt of message k is the messages before it.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import orjson

from tracemill.harnesses.agents.registry import GENERIC, harness_for, unknown_harness
from tracemill.harnesses.text_calls import calls_in_text
from tracemill.ingesters.common.benchmark_ids import (
    base_benchmark_id,
    benchmark_report_outcome,
    benchmark_repository,
    parse_benchmark_outcome,
)
from tracemill.ingesters.common.chat_messages import PairedMessages
from tracemill.ingesters.common.flags import NO_ACTION
from tracemill.ingesters.common.foreign_rows import name_foreign_row, plain_keys
from tracemill.ingesters.common.openai_messages import (
    collect_message_calls,
    first_text,
    openai_content_text,
    parse_openai_tools,
    unread_content,
)
from tracemill.ingesters.common.run_identity import PREVIEWED, run_identity_digest
from tracemill.ingesters.swe_gym.response_items import chat_of_items, is_response_item, items_of_response
from tracemill.ingesters.swe_gym.row_messages import NotUnderstood, parse_row_message, part_not_understood
from tracemill.ingesters.swe_gym.row_signs import LISTS, flat_response_row, is_response_row, is_turn
from tracemill.ingesters.swe_gym.sdk_messages import (
    chat_of_core,
    chat_of_ui,
    holds_bare_results,
    is_core_message,
    is_ui_message,
)
from tracemill.ingesters.swe_gym.sharegpt_turns import (
    acts_by_commands,
    chat_of_turns,
    holds_rewritten_texts,
    turns_of_swift,
)
from tracemill.ingesters.swe_gym.valued_parts import chat_of_valued, holds_valued_parts
from tracemill.records.families import family_of
from tracemill.records.identity import make_trace_id
from tracemill.records.ingest_report import IngestReport
from tracemill.records.message import ErrorKind, Message, ToolSpec
from tracemill.records.trace import Context, Fidelity, Outcome, Step, Trace

NO_MESSAGES = "row without messages, trajectory or conversations"
NO_LIST = "messages are not a list of messages"
NO_ROLE = "messages have no role"
NO_STEP = "row without a step"
NO_RESULT = "row that lacks a result"
JUDGE = "a judge's verdict on a run, no run"

_RUN_MODEL = re.compile(r"^(?P<model>.+?)_maxiter_\d+")
_JUDGEMENT = re.compile(r"\s*<judgement>\s*(?:YES|NO)\s*</judgement>\s*")
_SWE_AGENT_KEYS = frozenset({"agent", "message_type"})  # of its messages, in any table
_MODEL_KEYS = ("model", "model_name", "model_name_or_path", "llm")
_NESTED = ("metadata", "info", "llm_config", "model_config")
_ID_KEYS = ("instance_id", "run_id", "trajectory_id", "traj_id", "model_name", "id")
_HEAD = 8
_MEDIA_COLUMNS = ("images", "videos", "audios")
_MEDIA_MARKS = ("<image>", "<video>", "<audio>")
_FAILURE = frozenset(("is_error", "error_kind"))
_ERROR_KINDS = frozenset(ErrorKind)
_EXPORTED = {"claude": "claude_code", "codex": "codex", "gemini": "gemini_cli"}
"""Harnesses by their names in DataClaw."""
_CLAUDE_CODE_TOOLS = frozenset(("Bash", "Read", "Edit", "MultiEdit", "Write", "Glob", "Grep", "TodoWrite"))

_OPENHANDS_TOOLS = frozenset(("execute_bash", "str_replace_editor", "execute_ipython_cell"))

# A dataset whose rows name no model; its card does. It is recognised by columns that no other dataset has.
# https://huggingface.co/datasets/nebius/SWE-rebench-openhands-trajectories
_REBENCH_COLUMNS = frozenset({"gen_tests_correct", "pred_passes_gen_tests"})
_REBENCH_MODEL, _REBENCH_VERSION = "Qwen/Qwen3-Coder-480B-A35B-Instruct", "0.54.0"


@dataclass(frozen=True, slots=True)
class _RawRun:
    """The raw messages of a row and their harness; `exact` is True if they are the messages sent.

    `harness` is "" if only the tools may reveal it. `exported` is True for a row of `tracemill export`: its
    results are joined to their calls, and each says whether it failed.

    `dataclaw` is True for an export of a session file, which lacks the events between the messages.
    """

    messages: list[Any]
    harness: str
    exact: bool
    dataclaw: bool = False
    exported: bool = False


def trace_of_gym_row(row: Any, origin: str, report: IngestReport) -> Trace | None:
    """Return the trace of a row; None, and counted by reason in `report.skipped`, for an unknown shape."""
    if not isinstance(row, dict):
        report.skipped["row is not an object"] += 1
        return None
    row = flat_response_row(row)
    try:
        raw = _raw_messages(row, report)
        if raw is None:
            return None
        raw = _as_chat(raw, row)
        messages, cuts, lost_at = _messages(raw, _system_of(row, raw.messages), report)
        offered = _tools_of(row)
    except NotUnderstood as error:
        report.skipped[str(error)] += 1
        if error.kind:
            report.unknown[error.kind] += 1
        return None
    if not raw.harness:
        raw = replace(raw, harness=_find_harness(row, messages, offered))
    is_rebench = row.keys() >= _REBENCH_COLUMNS
    steps = _steps(cuts, model_of_gym_row(row) or (_REBENCH_MODEL if is_rebench else None))
    if not steps:
        report.skipped[NO_STEP] += 1
        return None
    if all(_JUDGEMENT.fullmatch(messages[step.cut].content) for step in steps):
        report.skipped[JUDGE] += 1
        return None
    tools = parse_openai_tools(offered, collect_message_calls(messages), harness_for(raw.harness))
    fidelity = _fidelity(messages, tools, steps, raw.exact)
    approximate_from, version = None, _REBENCH_VERSION if is_rebench else None
    lost_from = 0
    if lost_at is not None and (behind := [step.index for step in steps if step.cut >= lost_at]):
        report.flags[NO_RESULT] += 1
        if fidelity.context != "lost":
            fidelity, lost_from = replace(fidelity, context="lost"), behind[0]
    report.flags = +report.flags
    if _exported_harness(row):
        version = first_text(row.get("harness_version"))
        fidelity, lost_from = _exported_fidelity(row["fidelity"], fidelity), _index(row.get("lost_from")) or 0
        approximate_from = _index(row.get("approximate_from"))
    instance = first_text(row.get("instance_id"))
    return Trace(
        trace_id=make_trace_id(
            "swe_gym", *(first_text(row.get(key)) or "" for key in _ID_KEYS), run_identity_digest(messages)
        ),
        source="swe_gym",
        dialect="swe_gym",
        harness=raw.harness,
        contexts=(Context(0, messages, steps, "start", tools, fidelity, lost_from, approximate_from),),
        harness_version=version,
        repository=first_text(row.get("repo")) or benchmark_repository(instance),
        instance_id=base_benchmark_id(instance),
        outcome=_outcome(row),
        project=first_text(row.get("project")) if raw.dataclaw else None,
        started_at=first_text(row.get("start_time")) if raw.dataclaw else None,
        origin=origin,
    )


def _raw_messages(row: Mapping[str, Any], report: IngestReport) -> _RawRun | None:
    """Return the messages of a row by its shape; None, and counted, where it has none.

    Raises NotUnderstood.
    """
    key = next((k for k in LISTS if row.get(k) is not None), None)
    if key is None and is_response_row(row):
        return _RawRun(items_of_response(row), "", True)
    if key is None:
        looks = name_foreign_row(row)
        report.skipped[f"{NO_MESSAGES}: it looks like {looks}" if looks else NO_MESSAGES] += 1
        return None
    listed = decode_gym_row_value(row[key])
    if not isinstance(listed, list) or not listed:
        report.skipped[NO_LIST] += 1
        return None
    listed = turns_of_swift(listed)
    messages = [m for m in listed[:_HEAD] if isinstance(m, dict)]
    if any(map(is_turn, messages)):
        harness = "mini_swe_agent" if acts_by_commands(listed) else ""
        return _RawRun(listed, harness, not holds_rewritten_texts(listed))
    if any(map(holds_valued_parts, messages)):
        return _RawRun(listed, "", True)
    if not messages or "role" not in messages[0]:
        keys = plain_keys(messages[0]) if messages else ""
        report.skipped[f"{NO_ROLE} but {keys}" if keys else NO_ROLE] += 1
        return None
    if (exported := _exported_harness(row)) is not None:
        return _RawRun(listed, exported, True, exported=True)
    if any(_starts(m.get("content"), "<returncode>") for m in messages):
        return _RawRun(listed, "mini_swe_agent", True)
    if any(m.get("role") == "ai" for m in messages):
        return _RawRun(listed, "swe_agent", False)
    if "traj_id" in row or _SWE_AGENT_KEYS & messages[0].keys():
        return _RawRun(listed, "swe_agent", "message_type" in messages[0])
    if any(isinstance(m, dict) and m.get("tool_uses") for m in listed):
        harness = _EXPORTED.get(first_text(row.get("source")) or "") or _harness_of(listed)
        return _RawRun(listed, harness, False, dataclaw=True)
    return _RawRun(listed, "" if key == "conversations" else _harness_of(listed), True)


def _is_media_mark(item: Any) -> bool:
    """Return whether a text is a mark for data in another column."""
    text = (item.get("value") or item.get("content")) if isinstance(item, dict) else None
    return isinstance(text, str) and any(mark in text for mark in _MEDIA_MARKS)


def _exported_harness(row: Mapping[str, Any]) -> str | None:
    """Return the harness of a row that `tracemill export` wrote, None for any other row."""
    named = first_text(row.get("harness"))
    return named if named and isinstance(row.get("fidelity"), dict) else None


def _exported_fidelity(told: Mapping[str, Any], read: Fidelity) -> Fidelity:
    """Return the fidelity that a row of `tracemill export` records; parts it does not say are as read."""
    system, tools, context = told.get("system"), told.get("tools"), told.get("context")
    return Fidelity(
        system if system in ("recorded", "absent") else read.system,
        tools if tools in ("recorded", "absent") else read.tools,
        context if context in ("complete", "approximate", "lost") else read.context,
    )


def _as_chat(raw: _RawRun, row: Mapping[str, Any]) -> _RawRun:
    """Convert items, turns and messages of other libraries to chat messages. Raises NotUnderstood."""
    listed = raw.messages
    if any(row.get(column) for column in _MEDIA_COLUMNS) and any(map(_is_media_mark, listed)):
        raise NotUnderstood("images beside the messages")
    if any(map(is_turn, listed)):
        return replace(raw, messages=list(chat_of_turns(listed)))
    if any(map(holds_valued_parts, listed)):
        return replace(
            raw, messages=[chat_of_valued(item) if holds_valued_parts(item) else item for item in listed]
        )
    if any(map(is_response_item, listed)):
        return replace(raw, messages=list(chat_of_items(listed)))
    if not any(is_ui_message(item) or is_core_message(item) for item in listed):
        return raw
    messages: list[Any] = []
    exact = raw.exact
    for item in listed:
        if is_ui_message(item):
            messages.extend(chat_of_ui(item))
        elif is_core_message(item):
            messages.extend(chat_of_core(item))
        else:
            messages.append(item)
        exact = exact and not is_ui_message(item) and not holds_bare_results(item)
    return replace(raw, messages=messages, exact=exact)


def _harness_of(listed: Sequence[Any]) -> str:
    """Return the harness of messages that name none, by the names of their tools, OpenHands by default."""
    for item in listed:
        if not isinstance(item, dict):
            continue
        content, uses = item.get("content"), item.get("tool_uses")
        blocks = [*(content if isinstance(content, list) else ()), *(uses if isinstance(uses, list) else ())]
        for block in blocks:
            if isinstance(block, dict) and (block.get("name") or block.get("tool")) in _CLAUDE_CODE_TOOLS:
                return "claude_code"
    return "openhands"


def _find_harness(row: Mapping[str, Any], messages: Sequence[Message], offered: Any) -> str:
    """Return the harness that a row names, else one that has a tool of the row, else a generic one."""
    named = harness_for(first_text(row.get("agent")) or GENERIC.name)
    if named is not GENERIC:
        return named.name
    texts = (calls_in_text(m.content, GENERIC.name) for m in messages if m.role == "assistant")
    calls = [*collect_message_calls(messages), *chain.from_iterable(texts)]
    names = {call.name for call in calls}
    names |= {tool.name for tool in parse_openai_tools(offered, calls, GENERIC)}
    if names & _CLAUDE_CODE_TOOLS:
        return "claude_code"
    return "openhands" if names & _OPENHANDS_TOOLS else unknown_harness(names).name


def _system_of(row: Mapping[str, Any], listed: Sequence[Any]) -> Message | None:
    """Return the system prompt beside the messages, as in Anthropic's API. Raises NotUnderstood."""
    first = listed[0] if isinstance(listed[0], dict) else {}
    blocks = decode_blocks(row.get("system"))
    if unread := unread_content(blocks):
        raise part_not_understood(unread[0])
    text = openai_content_text(blocks)
    return Message("system", text) if text and first.get("role") not in ("system", "developer") else None


def _tools_of(row: Mapping[str, Any]) -> Any:
    """Return the tools that a row offers. Raises NotUnderstood where one of them has another shape."""
    recorded = row.get("tools")
    if not recorded:
        return None
    offered = decode_gym_row_value(recorded)
    if not isinstance(offered, list):
        raise NotUnderstood("tools that are not a list")
    if len(parse_openai_tools(offered, (), harness_for("openhands"))) < len(offered):
        raise NotUnderstood("tool without a name")
    return offered


def decode_blocks(value: Any) -> Any:
    """Decode content blocks that a table stores as JSON text; other text stays as it is."""
    blocks = decode_gym_row_value(value) if isinstance(value, str) and value.startswith("[") else None
    return value if blocks is None else blocks


def _messages(
    raw: _RawRun, system: Message | None, report: IngestReport
) -> tuple[tuple[Message, ...], list[int], int | None]:
    """Return the messages in order, and the indices of the agent's own, without demonstrations.

    The last value is the index from which on messages are missing, None where all are there. Raises
    NotUnderstood.
    """
    paired, cuts = PairedMessages(), list[int]()
    add = paired.messages.append if raw.exported else paired.add
    roles = report.records
    if system is not None:
        paired.add(system)
    for place, item in enumerate(raw.messages):
        if raw.exported and isinstance(item, dict):
            item = {key: value for key, value in item.items() if key not in _FAILURE}
        for message in parse_row_message(item, place):
            roles[message.role] += 1
            if message.role == "assistant" and not item.get("is_demo"):
                if message.tool_calls or message.content.strip() or item.get(PREVIEWED) is True:
                    cuts.append(len(paired.messages))
                else:
                    report.flags[NO_ACTION] += 1
            add(message)
    messages = paired.messages
    if raw.exported and len(messages) == len(raw.messages):
        messages = list(map(_with_failure, messages, raw.messages))
    report.tool_errors += sum(message.is_error is True for message in messages)
    report.skipped += paired.dropped
    report.flags += paired.loose
    return tuple(messages), cuts, paired.lost_at


def _with_failure(message: Message, item: Mapping[str, Any]) -> Message:
    """Return the message with the failure that the row records, unknown if it records none."""
    flag, kind = item.get("is_error"), item.get("error_kind")
    return replace(
        message,
        is_error=flag if isinstance(flag, bool) else None,
        error_kind=kind if isinstance(kind, str) and kind in _ERROR_KINDS else None,
    )


def _steps(cuts: Sequence[int], model: str | None) -> tuple[Step, ...]:
    family = family_of(model)
    return tuple(Step(index, cut, model, family) for index, cut in enumerate(cuts))


def _fidelity(
    messages: Sequence[Message], tools: tuple[ToolSpec, ...], steps: tuple[Step, ...], exact: bool
) -> Fidelity:
    has_user = any(message.role == "user" for message in messages[: steps[0].cut])
    return Fidelity(
        system="recorded" if messages[0].role == "system" and messages[0].content else "absent",
        tools="recorded" if any(tool.origin == "recorded" for tool in tools) else "absent",
        context="lost" if not has_user else "complete" if exact else "approximate",
    )


def model_of_gym_row(row: Mapping[str, Any]) -> str | None:
    """Return the model a row names: in a column, at the start of the run id, or in its metadata."""
    named = next((text for key in _MODEL_KEYS if (text := first_text(row.get(key)))), None)
    if named:
        return named
    match = _RUN_MODEL.match(first_text(row.get("run_id")) or "")
    if match:
        return match.group("model")
    inner = (decode_gym_row_value(row.get(key)) for key in _NESTED)
    return next(
        (model for value in inner if isinstance(value, dict) and (model := model_of_gym_row(value))), None
    )


def _outcome(row: Mapping[str, Any]) -> Outcome:
    """Return the verdict: `resolved`, `target` (nebius), or the report of the test run."""
    for key in ("resolved", "target"):
        outcome = parse_benchmark_outcome(row.get(key))
        if outcome != "unknown":
            return outcome
    return benchmark_report_outcome(decode_gym_row_value(row.get("test_result")))


def decode_gym_row_value(value: Any) -> Any:
    """Decode a value that some datasets store as JSON text; None if the text is not JSON."""
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


def _index(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _starts(value: Any, start: str) -> bool:
    return isinstance(value, str) and value.startswith(start)
