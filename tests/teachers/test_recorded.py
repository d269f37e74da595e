"""Recorded answers of real models behind the same `ask`, and servers whose price may be 0."""

import gzip
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from teacher_chains import chain

from tracemill.evaluate.table.recorded_states import read_table
from tracemill.records.errors import TeacherError
from tracemill.records.message import Message
from tracemill.teachers.build_teachers import build_teachers
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_protocol import Teacher
from tracemill.teachers.core.teacher_settings import (
    CompatibleTeacherSettings,
    GateSettings,
    RecordedTeacherSettings,
)
from tracemill.teachers.gate.gate_decisions import make_gate_decisions
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.offline.recorded_table import read_recorded, recorded_table_state_key
from tracemill.teachers.openrouter_stub.server import running
from tracemill.teachers.replay.replay_run import ReplayRequest, ReplayResult, replay

pytestmark = pytest.mark.anyio

REAL = os.environ.get("TRACEMILL_REAL_TRACES")
STATES: list[dict[str, Any]] = [
    {
        "state_id": "s/1",
        "task_id": "1",
        "messages": [
            {"role": "system", "content_ref": "shop_prefix[0]"},
            {"role": "user", "content_ref": "intro", "content": "Which lamps are lit?"},
        ],
        "tools": [{"name": "sql"}],
        "actions": {
            "gpt-old": {
                "tool_calls": [{"name": "sql", "arguments": {"query": "SELECT 1"}}],
                "usage": {"in": 100, "out": 10, "latency_s": 2.5},
            },
            "llama-old": {"tool_calls": [], "text": "None of them, ann."},
        },
    },
    {
        "state_id": "s/2",
        "task_id": "1",
        "messages": [
            {"role": "user", "content": "Which lamps are lit?"},
            {"role": "assistant", "tool_calls": [{"name": "sql", "arguments": {"query": "SELECT 1"}}]},
            {"role": "tool", "content": "1 of ann"},
        ],
        "tools": ["sql"],
        "actions": {"gpt-old": {"tool_calls": [{"name": "sql", "arguments": '{"query": "SELECT 2"}'}]}},
    },
]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The two states, gzipped, and the texts they point to."""
    (tmp_path / "intro_prefixes.json").write_text(json.dumps({"intro": "Look closely. "}))
    system = [{"role": "system", "content": "You keep a shop."}]
    (tmp_path / "shop_prefix.json").write_text(json.dumps(system))
    path = tmp_path / "states.jsonl.gz"
    with gzip.open(path, "wt") as lines:
        lines.writelines(json.dumps(state) + "\n" for state in STATES)
    return path


def same(message: Message) -> Message:
    return message


def hidden(message: Message) -> Message:
    return replace(message, content=message.content.replace("ann", "USER"))


async def answers(
    teachers: list[Teacher], questions: list[Question], folder: Path
) -> tuple[ReplayResult, int]:
    with Ledger(f"sqlite:///{folder / 'l.db'}") as ledger:
        ledger.open_run("run", 0)
        decisions = make_gate_decisions(questions, teachers, 0, GateSettings())
        result = await replay(ReplayRequest(questions, decisions, teachers, ledger, "run"))
        return result, ledger.spent("run").settled_nanousd


def recorded(table: Path, *models: str, redact: Any = str, **more: Any) -> list[Teacher]:
    given = [RecordedTeacherSettings(model=model, path=table, **more) for model in models]
    return build_teachers(given, {}, redact)


def test_a_table_is_read_with_the_texts_it_points_to(table: Path) -> None:
    first, second = read_recorded(table)
    assert [(m.role, m.content) for m in first.messages] == [
        ("system", "You keep a shop."),
        ("user", "Look closely. Which lamps are lit?"),
    ]
    assert [message.role for message in second.messages] == ["user", "assistant", "tool"]
    assert second.messages[2].tool_call_id == second.messages[1].tool_calls[0].id
    assert first.answers["gpt-old"].action.tool_calls[0].arguments == '{"query":"SELECT 1"}'
    assert second.answers["gpt-old"].action.tool_calls[0].arguments == '{"query": "SELECT 2"}'


async def test_recorded_answers_come_through_the_same_replay_and_cost_nothing(
    table: Path, tmp_path: Path
) -> None:
    questions = [state.question(hidden, "r1") for state in read_recorded(table)]
    redact = lambda text: text.replace("ann", "USER")  # noqa: E731
    result, spent = await answers(recorded(table, "gpt-old", "llama-old", redact=redact), questions, tmp_path)
    rows = [(r.teacher, r.failure, r.provider, r.simulated) for r in result.replies]
    assert rows == [
        ("gpt-old", None, "recorded", False),
        ("llama-old", None, "recorded", False),
        ("gpt-old", None, "recorded", False),
        ("llama-old", "not_recorded", "recorded", False),
    ]
    assert result.replies[1].action is not None
    assert result.replies[1].action.text == "None of them, USER."
    assert (result.replies[0].usage.prompt_tokens, result.replies[0].latency_s) == (100, 2.5)
    assert spent == 0
    again, _ = await answers(recorded(table, "gpt-old", redact=redact), questions, tmp_path)
    assert again.counters["cached"] == 2


async def test_a_state_is_found_whatever_stands_in_for_its_system_prompt(table: Path) -> None:
    (state, _) = read_recorded(table)
    question = state.question(same, "r1")
    other = replace(question, messages=(Message("system", "A stand-in."), *question.messages[1:]), tools=())
    (teacher,) = recorded(table, "gpt-old")
    assert (await teacher.ask(other, 0)).reply.failure is None
    changed = (*question.messages[:-1], Message("user", "Which lamps are out?"))
    assert (await teacher.ask(replace(question, messages=changed), 0)).reply.failure == "not_recorded"
    assert recorded_table_state_key(question.messages) == recorded_table_state_key(other.messages)


async def test_with_prices_the_recorded_tokens_cost_what_they_would_have(table: Path) -> None:
    (state, _) = read_recorded(table)
    prices = {"prompt_usd": 2, "completion_usd": 10}
    (teacher,) = recorded(table, "gpt-old", prices=prices)
    question = state.question(same, "r1")
    assert (await teacher.ask(question, 0)).cost_nanousd == 100 * 2000 + 10 * 10_000
    assert teacher.bound_nanousd(question) > 300_000


async def test_a_table_that_cannot_be_used_is_one_line(table: Path, tmp_path: Path) -> None:
    (nobody,) = recorded(table, "gpt-new")
    with pytest.raises(TeacherError, match="has no answer of 'gpt-new'"):
        await nobody.check()
    (missing,) = recorded(tmp_path / "none.jsonl", "gpt-old")
    with pytest.raises(TeacherError, match="cannot be read"):
        await missing.check()
    (tmp_path / "broken.jsonl").write_text('{"state_id": "s", "messages": [], "actions": {}}\n{"state_id"\n')
    (broken,) = recorded(tmp_path / "broken.jsonl", "gpt-old")
    with pytest.raises(TeacherError, match=r"broken\.jsonl, line 2 is not a recorded state"):
        await broken.check()


def test_another_content_of_the_table_is_another_teacher(table: Path) -> None:
    question = read_recorded(table)[0].question(same, "r1")
    keys = {recorded(table, model)[0].request_key(question, 0) for model in ("gpt-old", "llama-old")}
    with gzip.open(table, "at") as lines:
        lines.write(json.dumps(STATES[0] | {"state_id": "s/3"}) + "\n")
    keys.add(recorded(table, "gpt-old")[0].request_key(question, 0))
    assert len(keys) == 3


async def test_a_server_of_ones_own_is_free_and_is_asked_nothing_it_does_not_know(tmp_path: Path) -> None:
    question = chain(1)[0]
    with running() as server:
        given = CompatibleTeacherSettings(
            model="simulated/glm-a", base_url=server.url, api_key_env="LOCAL_KEY", max_tokens=100
        )
        (teacher,) = build_teachers([given], {"LOCAL_KEY": server.key})
        bound = teacher.bound_nanousd(question)
        result, _ = await answers([teacher], [question], tmp_path)
    assert (bound, result.counters["answered"]) == (0, 1)
    # what the server says it cost counts, and a cap of 0 is passed by it: the run stops there
    assert (result.stopped or "").startswith("a call of simulated/glm-a cost $")


@pytest.mark.skipif(REAL is None, reason="TRACEMILL_REAL_TRACES names no folder")
def test_states_of_the_real_tables_are_read() -> None:
    tables = sorted((Path(REAL or "").parent / "multiteacher").glob("*.jsonl.gz"))
    found = {path.name: read_recorded(path) for path in tables if "full_trajs" not in path.name}
    counts = {name: (len(states), sum(len(s.answers) for s in states)) for name, states in found.items()}
    assert counts == {
        "intercode_bash.jsonl.gz": (253, 1_450),
        "intercode_sql.jsonl.gz": (1_956, 9_481),
        "mint_alfworld.jsonl.gz": (1_590, 10_727),
        "msb_swe_agent.jsonl.gz": (207, 716),
    }


def test_a_tool_votes_however_its_name_is_spelled(tmp_path: Path) -> None:
    """A provider takes no dot in a name: in a table it stands in the tool, in the call, in both or none."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    calls = {
        "gpt-a": [{"name": "math.factorial", "arguments": {"n": 5}}],
        "qwen-b": [{"name": "math_factorial", "arguments": {"n": 5}}],
        "llama-c": [{"name": "math.factorial", "arguments": {}}],
        "glm-d": [{"name": "math.gcd", "arguments": {"n": 5}}],
    }
    row = {
        "state_id": "m/1",
        "messages": [{"role": "user", "content": "5!"}],
        "tools": [{"name": "math.factorial", "parameters": schema}],
        "actions": {model: {"tool_calls": made} for model, made in calls.items()},
    }
    path = tmp_path / "dots.jsonl"
    path.write_text(json.dumps(row) + "\n")
    (state,) = read_table(path).states
    assert [tool.name for tool in state.tools] == ["math_factorial"]
    reasons = {model: done.reason for model, done in state.acted.items()}
    assert reasons == {
        "gpt-a": "",
        "qwen-b": "",
        "llama-c": "required argument missing",
        "glm-d": "tool not offered",
    }
    assert state.acted["gpt-a"].keys.effect == state.acted["qwen-b"].keys.effect
