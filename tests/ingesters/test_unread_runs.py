"""Runs of OpenHands, SWE-agent and mini-swe-agent with content that no reader understands."""

import json
from pathlib import Path
from typing import Any

import pytest

from tracemill.ingesters.census import take_census
from tracemill.ingesters.discover import discover
from tracemill.ingesters.read_source import ingest_source

HOLOGRAM = [{"type": "hologram", "data": "IMPORTANT"}]
CALL = {"id": "c", "type": "function", "function": {"name": "execute_bash", "arguments": '{"command":"ls"}'}}
GUTTED = CALL | {"function": {"name": "execute_bash", "parameters": {"command": "ls"}}}
RUN = "run with content that is not understood"
EVENT = "event that is not understood"
COMPLETION = "completion with content that is not understood"


def read(path: Path, value: Any) -> tuple[list[list[str]], dict[str, int], dict[str, int]]:
    """The fidelity of the steps of each trace of a file, and what its report skips and names."""
    path.write_text(json.dumps(value, indent=1))
    (source,) = discover([path])
    traces, report = ingest_source(source)
    assert report.error is None
    steps = [[state.fidelity.context for state in trace.states()] for trace in traces]
    return steps, dict(report.skipped), dict(report.unknown)


def chat(**changed: Any) -> list[dict[str, Any]]:
    """A chat with two answers; `changed` takes the place of a message."""
    messages = {
        "ask": {"role": "user", "content": "go"},
        "call": {"role": "assistant", "content": "", "tool_calls": [CALL]},
        "result": {"role": "tool", "tool_call_id": "c", "content": "a.py"},
        "end": {"role": "assistant", "content": "done"},
    }
    return list((messages | changed).values())


CHATS: list[tuple[dict[str, Any], str]] = [
    ({"ask": {"role": "user", "content": HOLOGRAM}}, "hologram"),
    ({"ask": {"role": "user", "content": [{"type": "text", "value": "go"}]}}, "text.text"),
    ({"ask": {"role": "user", "content": 17}}, "int"),
    ({"call": {"role": "assistant", "content": "", "tool_calls": [GUTTED]}}, "tool_call.arguments"),
    ({"call": {"role": "assistant", "content": "", "tool_calls": [{"id": "c"}]}}, "tool_call.name"),
    ({"call": {"role": "assistant", "content": "", "tool_calls": CALL}}, "tool_calls"),
    ({"result": {"role": "tool", "tool_call_id": "c", "content": {"stdout": "a.py"}}}, "untyped"),
    ({"result": {"role": "observation", "content": "a.py"}}, "role.observation"),
]
NAMES = [name for _, name in CHATS]


@pytest.mark.parametrize(("changed", "name"), CHATS, ids=NAMES)
def test_a_run_of_mini_swe_agent_is_left_out(tmp_path: Path, changed: dict[str, Any], name: str) -> None:
    whole = {"messages": chat(), "info": {"exit_status": "x"}, "trajectory_format": "mini-swe-agent-1"}
    assert read(tmp_path / "whole.traj.json", whole) == ([["complete", "complete"]], {}, {})
    found = read(tmp_path / "x.traj.json", whole | {"messages": chat(**changed)})
    assert found == ([], {RUN: 1}, {f"message {name}": 1})


@pytest.mark.parametrize("item", [{"type": "hologram"}, {"type": "function_call", "name": "bash"}])
def test_an_answer_of_mini_swe_agent_over_the_responses_api_is_read_whole(tmp_path: Path, item: Any) -> None:
    answer = {"object": "response", "output": [item]}
    run = {
        "messages": [*chat(), answer],
        "info": {"exit_status": "x"},
        "trajectory_format": "mini-swe-agent-1",
    }
    name = "tool_call.arguments" if "name" in item else "item.hologram"
    assert read(tmp_path / "x.traj.json", run) == ([], {RUN: 1}, {f"message {name}": 1})


@pytest.mark.parametrize(("changed", "name"), CHATS, ids=NAMES)
def test_a_run_of_swe_agent_is_left_out(tmp_path: Path, changed: dict[str, Any], name: str) -> None:
    def run(messages: list[dict[str, Any]]) -> dict[str, Any]:
        return {"history": [message | {"agent": "main"} for message in messages]}

    assert [len(steps) for steps in read(tmp_path / "whole.traj", run(chat()))[0]] == [2]
    found = read(tmp_path / "x.traj", run(chat(**changed)))
    assert found == ([], {RUN: 1}, {f"message {name}": 1})


@pytest.mark.parametrize("key", ["action", "observation", "response", "thought"])
def test_a_step_of_swe_agent_is_read_whole(tmp_path: Path, key: str) -> None:
    step = {"action": "ls", "observation": "a.py", "response": "Look.\nls", "thought": "Look."}
    said = [{"role": "user", "content": "go", "agent": "main"}]
    said += [{"role": "assistant", "content": "Look.\nls", "action": "ls", "agent": "main"}]
    assert len(read(tmp_path / "whole.traj", {"trajectory": [step], "history": said})[0]) == 1
    found = read(tmp_path / "x.traj", {"trajectory": [step | {key: {"x": 1}}], "history": said})
    assert found == ([], {RUN: 1}, {"message untyped": 1})


@pytest.mark.parametrize(("changed", "name"), CHATS, ids=NAMES)
def test_a_completion_log_is_left_out(tmp_path: Path, changed: dict[str, Any], name: str) -> None:
    answer = {"id": "r1", "choices": [{"message": {"role": "assistant", "content": "ok"}}]}
    whole = {"messages": chat(), "response": answer, "cost": 0.1}
    assert read(tmp_path / "whole.json", whole) == ([["complete"]], {}, {})
    found = read(tmp_path / "x.json", whole | {"messages": chat(**changed)})
    assert found == ([], {COMPLETION: 1}, {f"completion {name}": 1})
    answer = {"id": "r1", "choices": [{"message": {"role": "assistant", "tool_calls": [GUTTED]}}]}
    found = read(tmp_path / "y.json", whole | {"response": answer})
    assert found == ([], {COMPLETION: 1}, {"completion tool_call.arguments": 1})


def v0(**changed: Any) -> list[dict[str, Any]]:
    """Events of V0: a task, a call with its result, an answer."""
    said = {"role": "assistant", "content": "", "tool_calls": [changed.pop("tool", CALL)]}
    call: dict[str, Any] = {"tool_call_id": "c", "function_name": "execute_bash"}
    call["model_response"] = {"id": "r1", "choices": [{"message": said}]}
    events = {
        "ask": {"source": "user", "action": "message", "args": {"content": "go"}},
        "call": {"source": "agent", "action": "run", "args": {"command": "ls"}, "tool_call_metadata": call},
        "result": {"source": "agent", "observation": "run", "content": "a.py", "extras": {}, "cause": 1}
        | {"tool_call_metadata": call},
        "end": {"source": "agent", "action": "message", "args": {"content": "done"}},
    }
    merged = {key: value | changed.get(key, {}) for key, value in events.items()}
    return [{"id": number, **event} for number, event in enumerate(merged.values())]


@pytest.mark.parametrize(
    ("changed", "name", "steps"),
    [
        ({"ask": {"args": {"content": HOLOGRAM}}}, "content", 2),
        ({"result": {"content": {"stdout": "a.py"}}}, "content", 2),
        ({"end": {"args": {"content": 17}}}, "content", 1),
        ({"tool": GUTTED}, "tool_call.arguments", 1),
    ],
)
def test_what_a_history_of_v0_is_left_with_is_lost(
    tmp_path: Path, changed: dict[str, Any], name: str, steps: int
) -> None:
    assert read(tmp_path / "whole.json", v0()) == ([["complete", "complete"]], {}, {})
    last = "end" in changed
    found = read(tmp_path / "x.json", v0(**changed))
    assert found == ([["complete" if last else "lost"] * steps], {EVENT: 1}, {f"event {name}": 1})
    (census,) = take_census([tmp_path / "x.json"]).found.values()
    assert census.unknown_kinds == {f"event {name}": 1}


def v1(**changed: Any) -> list[dict[str, Any]]:
    """Events of V1: a task, a call with its result, an answer."""
    call = {"id": "c", "name": "terminal", "arguments": '{"command":"ls"}'}
    content = [{"type": "text", "text": "a.py"}]
    events = {
        "ask": {"kind": "MessageEvent", "source": "user", "llm_message": {"role": "user", "content": "go"}},
        "call": {"kind": "ActionEvent", "source": "agent", "tool_call_id": "c", "tool_call": call},
        "result": {"kind": "ObservationEvent", "source": "environment", "tool_call_id": "c"}
        | {"observation": {"content": content}},
        "end": {"kind": "MessageEvent", "source": "agent"}
        | {"llm_message": {"role": "assistant", "content": "done"}},
    }
    merged = {key: value | changed.get(key, {}) for key, value in events.items()}
    return [{"id": f"e{number}", **event} for number, event in enumerate(merged.values())]


@pytest.mark.parametrize(
    ("changed", "name", "fidelity"),
    [
        ({"ask": {"llm_message": {"role": "user", "content": HOLOGRAM}}}, "hologram", ["lost", "lost"]),
        ({"ask": {"llm_message": "go"}}, "llm_message", ["lost", "lost"]),
        ({"result": {"observation": {"content": HOLOGRAM}}}, "hologram", ["lost", "lost"]),
        ({"result": {"observation": ["a.py"]}}, "observation", ["lost", "lost"]),
        ({"call": {"tool_call": {"id": "c", "name": "terminal"}}}, "tool_call.arguments", ["lost"]),
        ({"call": {"thought": HOLOGRAM}}, "hologram", ["lost"]),
        ({"end": {"llm_message": {"role": "assistant", "content": HOLOGRAM}}}, "hologram", ["complete"]),
    ],
)
def test_what_stands_behind_an_event_of_v1_that_is_not_understood_is_lost(
    tmp_path: Path, changed: dict[str, Any], name: str, fidelity: list[str]
) -> None:
    assert read(tmp_path / "whole.json", v1()) == ([["complete", "complete"]], {}, {})
    found = read(tmp_path / "x.json", v1(**changed))
    assert found == ([fidelity], {EVENT: 1}, {f"event {name}": 1})
    (census,) = take_census([tmp_path / "x.json"]).found.values()
    assert census.unknown_kinds == {f"event {name}": 1}
