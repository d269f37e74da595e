"""Sessions of the student in the formats that real ones come in."""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.teaching.policies import Session, Turn
from benchmarks.teaching.worlds.world import Action, World

STUDENT_MODEL = "tracemill/tiny-student"
_ENDS = "finish"


def write_sessions(world: World, sessions: Iterable[Session], folder: Path) -> Path:
    """Write sessions under a folder in the format of the world; return what `[sources] paths` names."""
    folder.mkdir(parents=True, exist_ok=True)
    if world.session_format == "swe_gym":
        rows = (json.dumps(gym_row(world, session)) for session in sessions)
        (folder / "sessions.jsonl").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    else:
        verdicts = []
        for session in sessions:
            name = _session_id(world, session)
            records = "".join(f"{json.dumps(record)}\n" for record in claude_code_records(world, session))
            (folder / f"{name}.jsonl").write_text(records, encoding="utf-8")
            verdicts.append(json.dumps({"session": name, "resolved": bool(session.reward)}))
        (folder.parent / f"{folder.name}-outcomes.jsonl").write_text("\n".join(verdicts) + "\n")
    return folder


def call_arguments(action: Action) -> str:
    """Return the arguments of a call as a model emits them."""
    return json.dumps(dict(action.arguments))


def gym_row(world: World, session: Session) -> dict[str, Any]:
    """Return a session as a row of SWE-Gym, with the tools of OpenHands."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": session.text}]
    for place, turn in enumerate(session.turns):
        messages += _chat(turn, f"call_{place}")
    return {
        "instance_id": f"{world.name}__{world.name}-{session.task}",
        "run_id": f"{STUDENT_MODEL.split('/')[1]}_maxiter_{world.turns}_{session.task}_{session.sample}",
        "model": STUDENT_MODEL,
        "resolved": bool(session.reward),
        "messages": messages,
    }


def _chat(turn: Turn, call_id: str) -> list[dict[str, Any]]:
    action = turn.action
    if not action.tool:
        return [{"role": "assistant", "content": action.text}]
    function = {"name": action.tool, "arguments": call_arguments(action)}
    message = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }
    if action.tool == _ENDS:
        return [message]
    return [message, {"role": "tool", "tool_call_id": call_id, "content": turn.result}]


def _session_id(world: World, session: Session) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{world.name} {session.task} {session.sample}"))


def claude_code_records(world: World, session: Session) -> list[dict[str, Any]]:
    """Return a session as records of Claude Code."""
    name = _session_id(world, session)
    began = datetime(2026, 1, 5, 9, tzinfo=UTC) + timedelta(minutes=session.task % 50_000)
    records: list[dict[str, Any]] = []

    def add(kind: str, message: Mapping[str, Any]) -> None:
        place = len(records)
        records.append(
            {
                "type": kind,
                "uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{name} {place}")),
                "parentUuid": records[-1]["uuid"] if records else None,
                "sessionId": name,
                "isSidechain": False,
                "userType": "external",
                "version": "2.1.33",
                "cwd": f"/work/{world.name}",
                "timestamp": (began + timedelta(seconds=place)).isoformat().replace("+00:00", "Z"),
                "message": dict(message),
            }
        )

    add("user", {"role": "user", "content": session.text})
    for place, turn in enumerate(session.turns):
        _add_turn(add, turn, f"msg_{name[:8]}_{place}", f"toolu_{name[:8]}_{place}")
    return records


def _add_turn(add: Any, turn: Turn, message_id: str, call_id: str) -> None:
    action = turn.action
    block: dict[str, Any] = {"type": "text", "text": action.text}
    if action.tool:
        block = {"type": "tool_use", "id": call_id, "name": action.tool, "input": dict(action.arguments)}
    usage = {"input_tokens": 100, "output_tokens": 20}
    add(
        "assistant",
        {
            "id": message_id,
            "type": "message",
            "role": "assistant",
            "model": STUDENT_MODEL,
            "content": [block],
            "stop_reason": "tool_use" if action.tool else "end_turn",
            "usage": usage,
        },
    )
    if action.tool:
        result = {"type": "tool_result", "tool_use_id": call_id, "content": turn.result}
        add("user", {"role": "user", "content": [{**result, "is_error": turn.failed}]})


def actions_of_messages(messages: Sequence[Mapping[str, Any]]) -> tuple[str, list[Action]]:
    """Return the task's text and the actions done so far, of messages as a teacher is shown them."""
    users = [message for message in messages if message["role"] == "user"]
    actions: list[Action] = []
    for message in messages:
        if message["role"] != "assistant":
            continue
        calls = message.get("tool_calls") or []
        for call in calls:
            function = call["function"]
            arguments = function["arguments"]
            given = json.loads(arguments) if isinstance(arguments, str) else arguments
            actions.append(Action(function["name"], tuple((key, str(value)) for key, value in given.items())))
        if not calls:
            actions.append(Action.say(message["content"]))
    return str(users[0]["content"]), actions
