"""Answers that were paid and cannot be used: few are bought, over all runs; what can be read is read."""

import json
from pathlib import Path
from typing import Any

import pytest
from teacher_chains import chain, teacher_at

from tracemill.records.message import Action, ToolCall
from tracemill.teachers.client.parse_completion import read_completion
from tracemill.teachers.core.price import Price
from tracemill.teachers.core.teacher_settings import GateSettings, OpenRouterTeacherSettings, ReplaySettings
from tracemill.teachers.gate.gate_decisions import make_gate_decisions
from tracemill.teachers.ledger.entries import PlannedCall, Reservation
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.openrouter_stub.server import RunningStubServer, running
from tracemill.teachers.openrouter_stub.stub_settings import FaultKind, FaultSettings, StubSettings
from tracemill.teachers.pricing.model_info import read_model_info
from tracemill.teachers.replay.replay_run import ReplayRequest, ReplayResult, replay

pytestmark = pytest.mark.anyio
STEPS = 2


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def asked_of(server: RunningStubServer, folder: Path, run_id: str, **more: object) -> ReplayResult:
    questions, teacher = chain(STEPS)[:STEPS], teacher_at(server.url)
    with Ledger(f"sqlite:///{folder / 'l.db'}") as ledger:
        ledger.open_run(run_id, 10**9)
        decisions = make_gate_decisions(questions, [teacher], 0, GateSettings())
        settings = ReplaySettings.model_validate({"backoff_s": 0.01, "max_attempts": 5, **more})
        return await replay(ReplayRequest(questions, decisions, [teacher], ledger, run_id, settings))


@pytest.mark.parametrize(
    ("kind", "failure"), [(FaultKind.EMPTY_MESSAGE, "empty"), (FaultKind.BAD_JSON, "malformed")]
)
async def test_two_are_bought_over_all_runs(tmp_path: Path, kind: FaultKind, failure: str) -> None:
    with running(StubSettings(faults=(FaultSettings(kind=kind),))) as server:
        first = await asked_of(server, tmp_path, "one")
        received = server.stats()["received"]
        again = [await asked_of(server, tmp_path, run_id) for run_id in ("one", "two")]
        assert server.stats()["received"] == received == 2 * STEPS
    assert [reply.failure for reply in first.replies] == [failure] * STEPS
    for result in again:
        assert result.replies == first.replies
        assert result.counters["cached"] == STEPS


async def test_what_earlier_runs_bought_counts_and_a_passing_fault_is_asked_once_more(tmp_path: Path) -> None:
    fault = FaultSettings(kind=FaultKind.EMPTY_MESSAGE, first_attempts=1)
    with running(StubSettings(faults=(fault,))) as server:
        first = await asked_of(server, tmp_path, "one", max_attempts=1)
        second = await asked_of(server, tmp_path, "one", max_attempts=1)
        assert server.stats()["received"] == 2 * STEPS
    assert first.counters["failed:empty"] == second.counters["answered"] == STEPS


async def test_a_ledger_in_which_too_many_were_bought_already_buys_no_other(tmp_path: Path) -> None:
    questions = chain(STEPS)[:STEPS]
    with running() as server:
        teacher = teacher_at(server.url)
        with Ledger(f"sqlite:///{tmp_path / 'l.db'}") as ledger:
            ledger.open_run("old", 10**9)
            for question in questions:
                key = teacher.request_key(question, 0)
                for _ in range(5):
                    grant = ledger.reserve(PlannedCall("old", "t1", question.step_id, teacher.name, key, 9))
                    assert isinstance(grant, Reservation)
                    ledger.settle(grant, 7, outcome="empty")
            assert set(ledger.paid_unreadable([teacher.request_key(q, 0) for q in questions]).values()) == {5}
        result = await asked_of(server, tmp_path, "new")
        assert server.stats()["received"] == 0
    assert [reply.failure for reply in result.replies] == ["empty"] * STEPS


def body(message: dict[str, Any]) -> str:
    return json.dumps({"id": "g", "choices": [{"finish_reason": "stop", "message": message}]})


def call(arguments: Any) -> dict[str, Any]:
    return {
        "content": None,
        "tool_calls": [{"id": "c", "function": {"name": "bash", "arguments": arguments}}],
    }


READ = [
    (
        call({"command": "ls", "n": [1, "é"]}),
        Action("", (ToolCall("c", "bash", '{"command":"ls","n":[1,"é"]}'),)),
    ),
    (call({}), Action("", (ToolCall("c", "bash", "{}"),))),
    (call('{"command": "ls"}'), Action("", (ToolCall("c", "bash", '{"command": "ls"}'),))),
    ({"content": [{"type": "text", "text": "Do"}, {"type": "text", "text": "ne."}]}, Action("Done.")),
    ({"content": [{"type": "thinking", "thinking": "?"}, {"type": "output_text", "text": "A"}]}, Action("A")),
    ({"content": {"type": "text", "text": "A"}}, Action("A")),
    ({"content": ["A", "B"]}, Action("AB")),
]


@pytest.mark.parametrize(("message", "action"), READ)
def test_arguments_as_an_object_and_content_in_parts_are_read(
    message: dict[str, Any], action: Action
) -> None:
    assert read_completion(body(message), {}, Price(), str).action == action


UNREAD = [
    (call([1]), "malformed"),
    (call(7), "malformed"),
    ({"content": [{"type": "image_url", "image_url": {"url": "x"}}]}, "malformed"),
    ({"content": 7}, "malformed"),
    ({"content": [{"type": "refusal", "refusal": "No."}]}, "refused"),
    ({"content": "", "reasoning": "Long thoughts."}, "empty"),
    ({"content": [{"type": "reasoning", "text": "Long thoughts."}]}, "empty"),
]


@pytest.mark.parametrize(("message", "failure"), UNREAD)
def test_what_cannot_be_read_is_a_failure(message: dict[str, Any], failure: str) -> None:
    fault = read_completion(body(message), {}, Price(), str).fault
    assert fault is not None
    assert fault.kind.value == failure


ENTRY = {"id": "m", "pricing": {"completion": "0.000001"}, "context_length": 100_000}
REASONS = ENTRY | {"reasoning": {"mandatory": False}}
ROOM = [
    (ENTRY, {}, 4096),
    (REASONS, {}, 4096 + 8192),
    (REASONS, {"reasoning": {"enabled": False}}, 4096),
    (REASONS, {"reasoning": {"effort": "none"}}, 4096),
    (REASONS, {"reasoning": {"max_tokens": 2000}}, 4096),  # said to be a part of max_tokens
    (ENTRY, {"reasoning": {"effort": "high"}}, 4096 + 8192),
    (REASONS, {"reasoning_room": 0}, 4096),
    (REASONS, {"reasoning_room": 20_000}, 24_096),
    (REASONS | {"context_length": 32_000}, {}, 8_000),
    (REASONS | {"top_provider": {"max_completion_tokens": 6_000}}, {}, 6_000),
]


@pytest.mark.parametrize(("entry", "given", "tokens"), ROOM)
def test_reasoning_has_room_beside_the_answer_and_its_money_is_reserved(
    entry: dict[str, Any], given: dict[str, Any], tokens: int
) -> None:
    card = read_model_info(entry)
    assert card.room(OpenRouterTeacherSettings.model_validate({"model": "m", **given})) == tokens
    assert card.price.bound_nanousd(0, tokens) == tokens * 1_000


def test_a_room_that_is_given_buys_another_answer_and_the_default_does_not() -> None:
    (question,) = chain(1)[:1]
    url = "http://127.0.0.1:9/api/v1"
    keys = [teacher_at(url, **more).request_key(question, 0) for more in ({}, {"reasoning_room": 8192})]
    assert keys[0] != keys[1]
    assert json.loads(teacher_at(url, reasoning_room=900).body(question, 0))["max_tokens"] == 1_000
