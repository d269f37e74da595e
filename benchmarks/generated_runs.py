"""Write generated sessions as benchmarks, datasets and observability keep them."""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from generated_work import START, Work, write_json, write_lines


def chat_messages(work: Work) -> list[Any]:
    """Return the work as chat messages."""
    messages: list[Any] = [
        {"role": "system", "content": "You garden."},
        {"role": "user", "content": work.request},
    ]
    for t in work.turns:
        function = {"name": t.tool, "arguments": json.dumps(t.arguments)}
        call = {"id": t.call_id, "type": "function", "function": function}
        messages.append(
            {"role": "assistant", "content": t.text, "reasoning_content": t.thought, "tool_calls": [call]}
        )
        messages.append({"role": "tool", "tool_call_id": t.call_id, "name": t.tool, "content": t.result})
    return messages


def swe_gym(folder: Path, work: Work) -> None:
    """Write a row of a table of runs."""
    row = {"instance_id": f"orchard__garden-{work.name}", "resolved": True, "messages": chat_messages(work)}
    with (folder / "rows.jsonl").open("a") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")


def mini_swe_agent(folder: Path, work: Work) -> None:
    """Write a trajectory of mini-swe-agent."""
    info = {"exit_status": "Submitted", "config": {"model": {"model_name": "claude-sonnet-4-5"}}}
    value = {"info": info, "messages": chat_messages(work), "trajectory_format": "mini-swe-agent-1.1"}
    write_json(folder / f"orchard__garden-{work.name}.traj.json", value)


def swe_agent(folder: Path, work: Work) -> None:
    """Write a trajectory of SWE-agent: each step with what it adds to the history."""
    history: list[Any] = [
        {"role": "system", "content": "You garden.", "agent": "main"},
        {"role": "user", "content": work.request, "agent": "main"},
    ]
    steps = []
    for t in work.turns:
        action = f"{t.tool} {json.dumps(t.arguments)}"
        response = f"{t.text}\n```\n{action}\n```"
        steps.append(
            {
                "action": action,
                "observation": t.result,
                "response": response,
                "thought": t.text,
                "state": {"working_dir": "/repo", "open_file": "n/a"},
            }
        )
        history.append(
            {"role": "assistant", "content": response, "agent": "main", "thought": t.text, "action": action}
        )
        history.append({"role": "user", "content": t.result, "agent": "main"})
    value = {
        "environment": "main",
        "trajectory": steps,
        "history": history,
        "info": {"exit_status": "submitted"},
    }
    write_json(folder / f"orchard__garden-{work.name}.traj", value)


def openhands(folder: Path, work: Work) -> None:
    """Write an export of events of OpenHands."""
    events: list[Any] = [
        {
            "id": 0,
            "source": "user",
            "action": "message",
            "timestamp": work.turns[0].time[:-1],
            "args": {"content": work.request},
        }
    ]
    for t in work.turns:
        function = {"name": "execute_bash", "arguments": json.dumps({"command": json.dumps(t.arguments)})}
        call = {"id": t.call_id, "type": "function", "function": function}
        message = {"role": "assistant", "content": t.text, "tool_calls": [call]}
        response = {"id": f"r{t.number}", "model": "claude-sonnet-4-5", "choices": [{"message": message}]}
        meta = {"function_name": "execute_bash", "tool_call_id": t.call_id, "total_calls_in_response": 1}
        meta["model_response"] = response
        common = {"timestamp": t.time[:-1], "tool_call_metadata": meta}
        events.append(
            common
            | {
                "id": 2 * t.number - 1,
                "source": "agent",
                "action": "run",
                "args": {"command": json.dumps(t.arguments), "thought": t.text},
            }
        )
        extras = {"command": "x", "metadata": {"exit_code": 0, "prefix": "", "suffix": ""}}
        events.append(
            common
            | {
                "id": 2 * t.number,
                "source": "agent",
                "observation": "run",
                "content": t.result,
                "cause": 2 * t.number - 1,
                "extras": extras,
            }
        )
    write_json(folder / f"{work.name}.json", events)


def atif(folder: Path, work: Work) -> None:
    """Write an ATIF trajectory."""
    steps: list[Any] = [{"step_id": 1, "source": "user", "message": work.request}]
    for t in work.turns:
        call = {"tool_call_id": t.call_id, "function_name": t.tool, "arguments": t.arguments}
        result = {"source_call_id": t.call_id, "content": t.result}
        steps.append(
            {
                "step_id": len(steps) + 1,
                "source": "agent",
                "timestamp": t.time,
                "message": t.text,
                "reasoning_content": t.thought,
                "tool_calls": [call],
                "observation": {"results": [result]},
                "metrics": {"prompt_tokens": 900, "completion_tokens": 80},
            }
        )
    agent = {"name": "openhands", "version": "1.0", "model_name": "claude-sonnet-4-5"}
    value = {"schema_version": "ATIF-v1.7", "session_id": work.name, "agent": agent, "steps": steps}
    write_json(folder / f"{work.name}.json", value)


def sts(folder: Path, work: Work) -> None:
    """Write a session trace of the Hub."""

    def records() -> Iterator[Any]:
        yield {"type": "session", "harness": "garden", "id": work.name}
        for message in chat_messages(work):
            told = {"role": message["role"], "content": message["content"]}
            if message["role"] == "assistant":
                told |= {"reasoningContent": message["reasoning_content"], "toolCalls": message["tool_calls"]}
            elif message["role"] == "tool":
                told["toolCallId"] = message["tool_call_id"]
            yield {"type": "message", "message": told}

    write_lines(folder / f"{work.name}.jsonl", records())


def inspect_ai(folder: Path, work: Work) -> None:
    """Write a log of inspect: an archive of a sample with its model calls."""
    messages = [{"id": f"m{place}"} | message for place, message in enumerate(chat_messages(work))]
    for message in messages:
        for call in message.get("tool_calls", ()):
            call["arguments"] = json.loads(call["function"]["arguments"])
            call["function"] = call["function"]["name"]
    events = []
    for place, message in enumerate(messages):
        if message["role"] == "assistant":
            output = {"model": "openai/gpt-5", "choices": [{"message": message, "stop_reason": "tool_calls"}]}
            events.append(
                {
                    "event": "model",
                    "model": "openai/gpt-5",
                    "timestamp": "2026-03-01T10:00:00Z",
                    "input": [],
                    "input_refs": [[0, place]],
                    "tools": [],
                    "output": output,
                }
            )
    sample = {
        "id": work.name,
        "epoch": 1,
        "input": work.request,
        "target": "x",
        "messages": messages,
        "events": events,
        "events_data": {"messages": messages, "calls": []},
    }
    spec = {
        "version": 2,
        "eval": {"eval_id": work.name, "run_id": "r", "task": "garden", "model": "openai/gpt-5"},
    }
    with zipfile.ZipFile(folder / f"{work.name}.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_journal/start.json", json.dumps(spec))
        archive.writestr("header.json", json.dumps(spec | {"status": "success"}))
        archive.writestr(f"samples/{work.name}_epoch_1.json", json.dumps(sample))


def otel(folder: Path, work: Work) -> None:
    """Write spans of a short session: each holds the whole prompt, as the conventions ask."""

    def parts(message: Any) -> Any:
        made = [{"type": "text", "content": message["content"]}]
        for call in message.get("tool_calls", ()):
            arguments = json.loads(call["function"]["arguments"])
            made.append(
                {
                    "type": "tool_call",
                    "id": call["id"],
                    "name": call["function"]["name"],
                    "arguments": arguments,
                }
            )
        if message["role"] == "tool":
            made = [
                {"type": "tool_call_response", "id": message["tool_call_id"], "response": message["content"]}
            ]
        return {"role": message["role"], "parts": made}

    messages = list(map(parts, chat_messages(work)))[:24]
    spans = []
    for place, message in enumerate(messages):
        if message["role"] == "assistant":
            told = {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": "qwen3-coder",
                "gen_ai.input.messages": json.dumps(messages[:place]),
                "gen_ai.output.messages": json.dumps([message]),
            }
            attributes = [{"key": key, "value": {"stringValue": value}} for key, value in told.items()]
            spans.append(
                {
                    "traceId": work.name.replace("-", ""),
                    "spanId": f"{place:016x}",
                    "name": "chat",
                    "startTimeUnixNano": str((START + place) * 1_000_000),
                    "attributes": attributes,
                }
            )
    write_lines(
        folder / f"{work.name}.jsonl", iter([{"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}])
    )
