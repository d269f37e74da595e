"""The simulated teachers: deterministic, state-dependent, the same in process and over the wire."""

import json
from typing import Any

import pytest

from tracemill.records.families import family_of
from tracemill.records.message import Message, ToolCall, ToolSpec
from tracemill.teachers.build_teachers import build_teachers
from tracemill.teachers.core.presets import SIMULATED
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_settings import OpenRouterTeacherSettings, SimulatedTeacherSettings
from tracemill.teachers.offline.sim_policy import SimulatedAnswer, simulate_answer
from tracemill.teachers.openrouter_stub.server import running

pytestmark = pytest.mark.anyio
MODELS = tuple(teacher.model for teacher in SIMULATED.teachers)
TOOLS = (
    ToolSpec(
        "bash",
        "Runs a command.",
        {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    ),
    ToolSpec(
        "editor",
        "Views and edits files.",
        {
            "type": "object",
            "properties": {
                "command": {"type": "string", "enum": ["view", "create", "str_replace"]},
                "path": {"type": "string"},
            },
            "required": ["command", "path"],
        },
    ),
    ToolSpec(
        "finish", "Ends.", {"type": "object", "properties": {"message": {"type": "string"}}, "required": []}
    ),
)
WIRE_TOOLS = [tool.to_wire() for tool in TOOLS]
FAULTS = (
    "cat: src/a.py: No such file or directory",
    "FAILED tests/test_a.py::test_x",
    "Traceback (most recent call",
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def conversation(number: int, result: str) -> tuple[Message, ...]:
    call = ToolCall("c1", "bash", json.dumps({"command": f"python -m pytest tests/test_{number}.py"}))
    return (
        Message("system", "You mend programs."),
        Message("user", f"Mend src/part{number}.py and src/util.py; see tests/test_{number}.py."),
        Message("assistant", "I run the test.", (call,)),
        Message("tool", result, tool_call_id="c1"),
    )


def answers(messages: tuple[Message, ...], **options: Any) -> list[SimulatedAnswer]:
    wire = [message.to_wire() for message in messages]
    return [simulate_answer(model, wire, WIRE_TOOLS, **options) for model in MODELS]


def agreeing(messages: tuple[Message, ...]) -> int:
    """How many teachers give the most common call."""
    calls = [given.calls for given in answers(messages)]
    return max(calls.count(call) for call in calls)


def test_the_same_request_gives_the_same_answer_and_the_seed_another() -> None:
    states = [conversation(number, "2 passed, def helper(x)") for number in range(30)]
    first = [answers(state) for state in states]
    assert first == [answers(state) for state in states]
    assert first != [answers(state, seed=1) for state in states]
    assert first != [answers(state, sample=1) for state in states]


def test_teachers_agree_after_a_fault_and_scatter_at_an_open_state() -> None:
    mended = [agreeing(conversation(number, FAULTS[number % 3])) for number in range(120)]
    opened = [agreeing(conversation(number, "2 passed, def helper(x)")) for number in range(120)]
    assert sum(count >= 3 for count in mended) > 110
    assert sum(count == 4 for count in mended) > 80
    assert sum(count == 4 for count in opened) < 60
    assert sum(count >= 2 for count in opened) < 120


def valid(name: str, arguments: str) -> bool:
    """Whether a call is one of the offered tools with arguments its schema accepts."""
    spec = next((tool for tool in TOOLS if tool.name == name), None)
    try:
        values = json.loads(arguments)
    except ValueError:
        return False
    if spec is None:
        return False
    properties = spec.parameters["properties"]
    return set(spec.parameters["required"]) <= set(values) <= set(properties) and all(
        isinstance(value, str) and value in properties[key].get("enum", [value])
        for key, value in values.items()
    )


def test_calls_are_of_offered_tools_and_fit_their_schemas_nearly_always() -> None:
    calls = [
        call
        for number in range(250)
        for given in answers(conversation(number, FAULTS[number % 3] if number % 2 else "1 passed"))
        for call in given.calls
    ]
    broken = sum(not valid(name, arguments) for name, arguments in calls)
    assert len(calls) > 950
    assert 5 <= broken <= 40
    assert {name for name, _ in calls} == {"bash", "editor", "open_editor_window"}


def test_some_finish_a_long_session_with_the_tool_for_it_or_in_words() -> None:
    tail = (Message("assistant", "I look."), Message("user", "Go on.")) * 2
    sessions = [(*conversation(number, "2 passed"), *tail) for number in range(100)]
    assert any(call[0] == "finish" for s in sessions for given in answers(s) for call in given.calls)
    wire = [[message.to_wire() for message in s] for s in sessions]
    without = [simulate_answer(model, s, WIRE_TOOLS[:2]) for s in wire for model in MODELS]
    assert 10 < sum(not given.calls for given in without) < 120


def test_a_missing_file_is_looked_for_and_a_failed_edit_is_read_again() -> None:
    given = answers(conversation(1, "cat: src/part1.py: No such file or directory"))
    assert [json.loads(call[0][1])["command"] for call in (g.calls for g in given)].count(
        "find . -name part1.py"
    ) >= 3


def test_without_tools_calls_are_written_the_way_the_conversation_writes_them() -> None:
    prompt = "Call tools like this: <function=execute_bash>...</function>"
    wire = [{"role": "system", "content": prompt}, {"role": "user", "content": "Mend src/a.py"}]
    text = simulate_answer(MODELS[0], wire, []).text
    assert "<function=execute_bash>\n<parameter=command>" in text
    fenced = [{"role": "system", "content": "One command in ``` fences"}, wire[1]]
    assert "\n```\n" in simulate_answer(MODELS[0], fenced, []).text
    assert "```" not in simulate_answer(MODELS[0], wire[1:], []).text


def test_odd_requests_are_answered_too() -> None:
    half = [{"role": "user", "content": "half a pair \ud800"}, {"role": "tool", "content": None}]
    parts = [{"role": "user", "content": [{"type": "text", "text": "see src/a.py"}, {"type": "image_url"}]}]
    bare = [{"type": "function", "function": {"name": "noargs"}}]
    for messages in ([], half, parts):
        for tools in ([], bare, WIRE_TOOLS):
            assert simulate_answer(MODELS[0], messages, tools).completion_tokens > 0


async def test_in_process_and_over_the_wire_the_answers_are_the_same() -> None:
    local = build_teachers(SIMULATED.teachers, {})
    with running() as server:
        settings = [
            OpenRouterTeacherSettings(model=model, base_url=server.url, max_tokens=500) for model in MODELS
        ]
        remote = build_teachers(settings, {"OPENROUTER_API_KEY": server.key})
        for number in range(4):
            messages = conversation(number, FAULTS[number % 3])
            question = Question(f"t:0:{number}", "t", messages, TOOLS, f"p{number}", "p1", "r1")
            for near, far in zip(local, remote, strict=True):
                a, b = await near.ask(question, 0), await far.ask(question, 0)
                assert a.reply.action == b.reply.action
                assert (a.cost_nanousd, a.reply.usage) == (b.cost_nanousd, b.reply.usage)
                assert a.reply.simulated
                assert b.reply.simulated
                assert b.reply.provider == "simulated"
        for teacher in remote:
            await teacher.close()


def test_a_simulated_model_is_of_the_family_it_stands_for() -> None:
    assert [family_of(model) for model in MODELS] == ["deepseek", "moonshot", "zai", "qwen"]
    assert SimulatedTeacherSettings(model="simulated/qwen-b").family == "qwen"
