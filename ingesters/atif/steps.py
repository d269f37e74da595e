"""Parse steps of ATIF trajectories."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tracemill.ingesters.common.chat_messages import make_chat_observation
from tracemill.ingesters.common.codex_results import codex_error
from tracemill.ingesters.common.growing_context import DUPLICATE_RESULT, StepMetadata
from tracemill.ingesters.common.openai_messages import (
    as_mapping,
    first_text,
    openai_argument_text,
    openai_content_text,
    unread_content,
)
from tracemill.ingesters.reading.result_text import error_kind_of, image_url_placeholder
from tracemill.records.ingest_report import IngestReport
from tracemill.records.message import Message, ToolCall
from tracemill.records.trace import Usage

FURTHER_RESULT = "further result of one call, joined to the one before"
UNVERIFIED = "trajectory of a version of ATIF that this reader was not checked with"
_VERIFIED = re.compile(r"ATIF-v1\.[0-8](?:\.\d+)?")
_STEP_TEXT = """step_id timestamp source model_name reasoning_effort message reasoning_content tool_calls
    observation metrics extra is_copied_context llm_call_count"""
STEP_KEYS = frozenset(_STEP_TEXT.split())


def is_verified_version(version: Any) -> bool:
    """Return whether a `schema_version` is one of 1.0 to 1.8."""
    return isinstance(version, str) and _VERIFIED.fullmatch(version) is not None


def unread_step(step: Mapping[str, Any]) -> list[str]:
    """Return the names of the parts of a step that are not read."""
    source = step.get("source")
    unread = [] if source in ("system", "user", "agent") else [f"source.{source}"]
    unread += unread_content(_plain(step.get("message")))
    unread += [
        name for result in step_results(step) for name in unread_content(_plain(result.get("content")))
    ]
    calls = step.get("tool_calls") or []
    if not isinstance(calls, list):
        return [*unread, "tool_calls"]
    return unread + ["tool_call" for call in calls if not first_text(as_mapping(call).get("function_name"))]


def step_text(content: Any) -> str:
    """Return a message, or the content of a result, as text; an image in a file becomes a placeholder."""
    return openai_content_text(_plain(content))


def _plain(content: Any) -> Any:
    """Return content with images in files replaced by texts."""
    if not isinstance(content, list):
        return content
    return [_image(part) for part in content]


def _image(part: Any) -> Any:
    path = as_mapping(as_mapping(part).get("source")).get("path")
    return image_url_placeholder(path) if isinstance(path, str) and path else part


def step_results(step: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the results in the observation of a step."""
    results = as_mapping(step.get("observation")).get("results")
    return [as_mapping(result) for result in results] if isinstance(results, list) else []


def step_action(step: Mapping[str, Any]) -> Message:
    """Return the answer of a step of the agent; a call without an id gets the step's number."""
    listed = step.get("tool_calls") or ()
    calls = tuple(
        ToolCall(
            first_text(call.get("tool_call_id")) or f"call-{step.get('step_id')}-{place}",
            str(call["function_name"]),
            openai_argument_text(call.get("arguments")),
        )
        for place, call in enumerate(map(as_mapping, listed))
    )
    thought = first_text(step.get("reasoning_content"))
    return Message("assistant", step_text(step.get("message")), calls, reasoning=thought)


def step_observations(
    step: Mapping[str, Any], action: Message, harness: str, report: IngestReport
) -> list[Message]:
    """Return the results of a step as messages. `harness` is the agent, whose texts tell failures.

    A result that names no call is that of the only call, else a text of the user. A further result of a call
    is joined to the one before by a line break; an equal or empty one is left out. Both are counted. The flag
    of a result (`is_error` in its `extra`) is believed before its text.
    """
    waiting = [call.id for call in action.tool_calls]
    only = waiting[0] if len(waiting) == 1 else None
    observations: list[Message] = []
    given: dict[str, tuple[int, list[str], list[bool]]] = {}  # the place of a call's result, its texts, flags
    for result in step_results(step):
        text = step_text(result.get("content"))
        call_id = first_text(result.get("source_call_id")) or only
        if call_id is not None and call_id in waiting:
            waiting.remove(call_id)
            flags = _flag_of(result)
            given[call_id] = len(observations), [text], flags
            observations.append(_observation(text, call_id, flags, harness))
        elif call_id is not None and call_id in given:
            place, texts, flags = given[call_id]
            if not text or text in texts:
                report.skipped[DUPLICATE_RESULT] += 1
                continue
            texts.append(text)
            flags += _flag_of(result)
            report.flags[FURTHER_RESULT] += 1
            joined = "\n".join(each for each in texts if each)
            observations[place] = _observation(joined, call_id, flags, harness)
        elif text:
            observations.append(make_chat_observation("user", text))
    return observations


def _flag_of(result: Mapping[str, Any]) -> list[bool]:
    flag = as_mapping(result.get("extra")).get("is_error")
    return [flag] if isinstance(flag, bool) else []


def _observation(text: str, call_id: str, flags: list[bool], harness: str) -> Message:
    """Return the result of a call, failed by its flags where it has some, else by its text."""
    told = make_chat_observation("tool", text, call_id)
    failed, kind = codex_error(text) if harness == "codex" else (None, None)
    if failed is not None:
        told = replace(told, is_error=failed, error_kind=kind)
    if not flags:
        return told
    failed = any(flags)
    kind = told.error_kind or error_kind_of(text, True)
    return replace(told, is_error=failed, error_kind=kind if failed else None)


def step_metadata(step: Mapping[str, Any], agent: Mapping[str, Any]) -> StepMetadata:
    """Return model, usage and time of a step of the agent."""
    metrics = as_mapping(step.get("metrics"))
    cost = metrics.get("cost_usd")
    usage = Usage(
        *(_count(metrics.get(key)) for key in ("prompt_tokens", "completion_tokens", "cached_tokens")),
        cost_usd=float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) else None,
    )
    model = first_text(step.get("model_name"), agent.get("model_name"))
    return StepMetadata(model, usage=usage, timestamp=first_text(step.get("timestamp")))


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
