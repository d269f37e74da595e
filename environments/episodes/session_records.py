"""Episodes as records of sessions that tracemill's ingesters read: what the policy saw, byte for byte."""

import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from tracemill.environments.episodes.run_episode import Episode
from tracemill.records.message import Message

CLAUDE_CODE_VERSION = "2.1.270"
"""A version whose files hold the system prompt and the tools."""
_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def gym_row(episode: Episode) -> dict[str, Any]:
    """Return an episode as a row of SWE-Gym."""
    messages = []
    for message in episode.messages:
        wire = message.to_wire()
        if message.role == "tool":
            wire["name"] = message.name
        messages.append(wire)
    return {
        "instance_id": f"{episode.task.origin.name}__{episode.task.name}",
        "run_id": f"{episode.model}_{episode.number}",
        "model": episode.model,
        "resolved": episode.reward == 1.0,
        "tools": [tool.to_wire() for tool in episode.tools],
        "messages": messages,
    }


def claude_code_records(episode: Episode) -> list[dict[str, Any]]:
    """Return an episode as the records of a Claude Code session that recorded its prompt."""
    name = episode.session
    records: list[dict[str, Any]] = []

    def add(kind: str, **more: Any) -> None:
        place = len(records)
        records.append(
            {
                "type": kind,
                "uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{name} {place}")),
                "parentUuid": records[-1]["uuid"] if records else None,
                "sessionId": name,
                "isSidechain": False,
                "userType": "external",
                "version": CLAUDE_CODE_VERSION,
                "cwd": "/repository",
                "timestamp": (_BEGAN + timedelta(seconds=place)).isoformat().replace("+00:00", "Z"),
                **more,
            }
        )

    system, *rest = episode.messages
    tools = [
        {"name": tool.name, "description": tool.description, "schema": dict(tool.parameters)}
        for tool in episode.tools
    ]
    snapshot = {"type": "prompt_snapshot", "systemPrompt": [system.content], "tools": tools}
    add("attachment", attachment=snapshot)
    place, waiting = 0, list[Message]()
    for message in rest:
        if message.role == "tool":
            waiting.append(message)
            continue
        _add_results(add, waiting)
        waiting = []
        if message.role == "user":
            add("user", message={"role": "user", "content": message.content})
        else:
            _add_answer(add, message, episode.model, f"msg_{name[:8]}_{place}")
            place += 1
    _add_results(add, waiting)
    return records


def _add_answer(add: Any, message: Message, model: str, message_id: str) -> None:
    blocks: list[Mapping[str, Any]] = []
    if message.content or not message.tool_calls:
        blocks.append({"type": "text", "text": message.content})
    for call in message.tool_calls:
        blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": call.parsed()})
    stop = "tool_use" if message.tool_calls else "end_turn"
    for block in blocks:
        add(
            "assistant",
            message={
                "id": message_id,
                "type": "message",
                "role": "assistant",
                "model": model,
                "content": [block],
                "stop_reason": stop,
            },
        )


def _add_results(add: Any, results: Iterable[Message]) -> None:
    for result in results:
        block = {
            "type": "tool_result",
            "tool_use_id": result.tool_call_id,
            "content": result.content,
            "is_error": bool(result.is_error),
        }
        add("user", message={"role": "user", "content": [block]})
