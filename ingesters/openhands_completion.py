"""OpenHands completion logs: the exact prompt of one call, and its response.

V0 (`llm_completions/<instance>/<model>-<time>.json`) and V1 (`<model>-<time>-<hex>.json`) hold
`{messages, response, ...}`; calls over the Responses API hold `{instructions, input, response, ...}`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from harnesses.harness import harness_for
from ingesters.growing import GrowingContext, StepFacts
from ingesters.reading import error_kind_of
from ingesters.wire import all_calls, call_of, calls_of, reasoning_of, specs_of, text_of, usage_of
from records.identity import make_trace_id
from records.message import Message, ToolCall
from records.skip import IngestReport
from records.state import Trace


def trace_of_completion(log: Any, dialect: str, origin: str, report: IngestReport) -> Trace | None:
    """The trace of one completion log: one step. None, and counted, where prompt or response lack."""
    body = _mapping(log)
    prompt = list(_prompt(body))
    response = _mapping(body.get("response"))
    answer = _answer(response)
    report.records["completion"] += 1
    if not prompt or answer is None:
        report.skipped["completion without a prompt or a response"] += 1
        return None
    growing = GrowingContext()
    growing.messages.extend(prompt)
    model = response.get("model")
    native = response.get("id")
    facts = StepFacts(
        model=model if isinstance(model, str) else None,
        native_id=native if isinstance(native, str) else None,
        usage=usage_of(response.get("usage") or body.get("usage_summary")),
    )
    growing.act(answer, facts)
    offered = body.get("tools") or _mapping(body.get("kwargs")).get("tools")
    version = "1" if dialect.endswith("v1") else None
    harness = harness_for("openhands", version)
    tools = specs_of(offered, all_calls(growing.messages), harness)
    return Trace(
        trace_id=make_trace_id("openhands", "completion", str(native or origin)),
        source="openhands",
        dialect=dialect,
        harness="openhands",
        contexts=(growing.finish(0, tools),),
        harness_version=version,
        origin=origin,
    )


def _prompt(body: Mapping[str, Any]) -> Iterator[Message]:
    """The messages of the prompt, as sent."""
    instructions = text_of(body.get("instructions"))
    if instructions:
        yield Message("system", instructions)
    listed = body.get("messages") or body.get("input")
    for place, item in enumerate(listed if isinstance(listed, list) else ()):
        message = _message(_mapping(item), place)
        if message is not None:
            yield message


def _message(item: Mapping[str, Any], place: int) -> Message | None:
    """One item of a prompt: a chat message, or an item of the Responses API."""
    kind, role = item.get("type"), item.get("role")
    if kind == "function_call":
        call = call_of(item, f"call-{place}")
        return Message("assistant", "", (call,)) if call else None
    if kind == "function_call_output":
        return _result(text_of(item.get("output")), item.get("call_id"), None)
    if role == "tool":
        return _result(text_of(item.get("content")), item.get("tool_call_id"), item.get("name"))
    if role == "assistant":
        text, calls = text_of(item.get("content")), calls_of(item, f"call-{place}")
        return Message("assistant", text, calls, reasoning=reasoning_of(item))
    if role in ("system", "developer"):
        return Message("system", text_of(item.get("content")))
    return Message("user", text_of(item.get("content"))) if role == "user" else None


def _result(text: str, call_id: Any, name: Any) -> Message:
    kind = error_kind_of(text, None)
    named = name if isinstance(name, str) else None
    return Message("tool", text, (), str(call_id or ""), named, True if kind else None, kind)


def _answer(response: Mapping[str, Any]) -> Message | None:
    """The assistant message of a response, of either interface."""
    choices = response.get("choices")
    if isinstance(choices, list) and choices:
        message = _mapping(_mapping(choices[0]).get("message"))
        calls = calls_of(message, "call-answer")
        return Message("assistant", text_of(message.get("content")), calls, reasoning=reasoning_of(message))
    output = response.get("output")
    if not isinstance(output, list):
        return None
    items = [_mapping(item) for item in output]
    texts = [text_of(item.get("content")) for item in items if item.get("type") == "message"]
    found = (
        call_of(item, f"call-{place}")
        for place, item in enumerate(items)
        if item.get("type") == "function_call"
    )
    calls: tuple[ToolCall, ...] = tuple(call for call in found if call is not None)
    return Message("assistant", "\n".join(filter(None, texts)), calls)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
