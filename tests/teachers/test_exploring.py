"""Explored steps are complete wherever a cap or a deadline ends a run, and cost nothing extra elsewhere."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from teacher_chains import chain, teacher_at

from tracemill.records.reply import AskDecision
from tracemill.teachers.core.price import usd_up
from tracemill.teachers.core.teacher_settings import GateSettings, ReplaySettings
from tracemill.teachers.gate.exploration import (
    MOST_KEPT,
    PlanBudget,
    expected_exploration_usd,
    split_exploration_phases,
)
from tracemill.teachers.gate.gate_decisions import EXPLORED, make_gate_decisions
from tracemill.teachers.ledger.entries import DeniedReservation, PlannedCall, Reservation
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.openrouter_stub.server import RunningStubServer, running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings
from tracemill.teachers.planning.replay_plan import WantedAnswer, plan_items
from tracemill.teachers.replay.replay_run import ReplayRequest, ReplayResult, replay

pytestmark = pytest.mark.anyio
STEPS = 10
QUESTIONS = [q for trace in "abcdefghijklmno" for q in chain(STEPS, trace, f"{trace} = 1\n" * 200)[:STEPS]]
GATE = GateSettings(explore=0.1)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def decided() -> list[AskDecision]:
    return make_gate_decisions(QUESTIONS, [teacher_at("http://127.0.0.1:9/api/v1")], 0, GATE)


DRAWN = {d.step_id for d in decided() if d.reason == EXPLORED}


def items() -> list[WantedAnswer]:
    return plan_items(QUESTIONS, decided(), [teacher_at("http://127.0.0.1:9/api/v1")], 1)


def steps(phase: Sequence[WantedAnswer]) -> set[str]:
    return {item.question.step_id for item in phase}


def test_with_room_for_all_they_stay_in_the_order_that_caches_reward() -> None:
    every = items()
    usd = expected_exploration_usd(every, cached=True)
    assert 10 < len(DRAWN) < 40
    assert split_exploration_phases(every, DRAWN, PlanBudget(usd_up(1.6 * usd), None, 32)) == [every]
    assert split_exploration_phases(every, set(), PlanBudget(0, None, 32)) == [every]
    assert split_exploration_phases(every, DRAWN, PlanBudget(usd_up(1.6 * usd), STEPS * 8.0 * 1.6, 32)) == [
        every
    ]


def test_where_money_or_time_may_not_last_they_go_first() -> None:
    every = items()
    usd = expected_exploration_usd(every, cached=True)
    for room in (
        PlanBudget(usd_up(1.4 * usd), None, 32),
        PlanBudget(usd_up(4 * usd), STEPS * 8.0 * 1.4, 32),
        PlanBudget(usd_up(4 * usd), None, 32, remaining=2.0),
        PlanBudget(-1, None, 32),
    ):
        first, rest = split_exploration_phases(every, DRAWN, room)
        assert steps(first) == DRAWN
        assert len(first) + len(rest) == len(every)
        assert {item.leave_nanousd for item in first} == {0}


def test_the_others_leave_what_explored_steps_to_come_may_cost() -> None:
    every = items()
    first = [item for item in every if item.question.step_id in DRAWN]
    cost = expected_exploration_usd(first, cached=False)
    assert cost > expected_exploration_usd(first, cached=True)
    _, rest = split_exploration_phases(every, DRAWN, PlanBudget(usd_up(8 * cost), None, 32, remaining=3.0))
    assert {item.leave_nanousd for item in rest} == {usd_up(3 * cost)}
    _, rest = split_exploration_phases(every, DRAWN, PlanBudget(usd_up(2 * cost), None, 32, remaining=3.0))
    assert {item.leave_nanousd for item in rest} == {usd_up(MOST_KEPT * 2 * cost)}


def test_the_book_grants_only_what_leaves_enough(tmp_path: Path) -> None:
    with Ledger(f"sqlite:///{tmp_path / 'l.db'}") as ledger:
        ledger.open_run("run", 100, max_trace_nanousd=90)
        kept = PlannedCall("run", "t", "s", "m", "k1", 30, leave_nanousd=60)
        free = PlannedCall("run", "t", "s", "m", "k2", 30)
        assert isinstance(ledger.reserve(kept), Reservation)  # 60 of 100 are left; of a trace none need be
        assert ledger.reserve(
            PlannedCall("run", "t", "s", "m", "k3", 20, leave_nanousd=60)
        ) == DeniedReservation("run", 100, 0, 30, 80, 60)
        assert isinstance(ledger.reserve(free), Reservation)


async def asked_of(
    server: RunningStubServer, folder: Path, cap_usd: float, later: float = 0.0
) -> ReplayResult:
    teacher = teacher_at(server.url)
    with Ledger(f"sqlite:///{folder / 'l.db'}") as ledger:
        ledger.open_run("run", usd_up(cap_usd))
        decisions = make_gate_decisions(QUESTIONS, [teacher], 0, GATE)
        settings = ReplaySettings(concurrency=3, backoff_s=0.01)
        return await replay(
            ReplayRequest(QUESTIONS, decisions, [teacher], ledger, "run", settings, remaining=later)
        )


def answered(result: ReplayResult) -> set[str]:
    return {reply.step_id for reply in result.replies if reply.failure is None}


async def test_over_a_socket_a_cap_that_ends_early_leaves_out_no_explored_step_here_or_to_come(
    tmp_path: Path,
) -> None:
    with running(StubSettings(keep_bodies=True)) as server:
        ample = await asked_of(server, tmp_path / "ample", 5.0)
        cost, bodies = server.stats()["charged_usd"], list(server.server.bodies)
    assert len(answered(ample)) == len(QUESTIONS)
    sizes = [len(json.loads(body)["messages"]) for body in bodies]
    assert sizes[0] == 2  # a trace from its beginning
    with running(StubSettings()) as server:
        short = await asked_of(server, tmp_path / "short", 0.7 * cost)
        assert server.stats()["charged_usd"] <= 0.7 * cost
    assert answered(short) > DRAWN
    assert len(answered(short)) < len(QUESTIONS)
    assert (short.counters["explored"], short.counters["explored_left"]) == (len(DRAWN), 0)
    assert short.stopped is not None
    assert "raise the cap" in short.stopped

    with running(StubSettings()) as server:
        first = await asked_of(server, tmp_path / "first", 1.2 * cost, later=3.0)
        assert server.stats()["charged_usd"] <= 1.2 * cost * (1 - 0.3)
    assert len(QUESTIONS) > len(answered(first)) > len(DRAWN)
    assert answered(first) > DRAWN
    assert first.stopped is not None
    assert "kept for later explored steps" in first.stopped


async def test_a_cap_that_is_too_small_for_exploration_says_what_is_left(tmp_path: Path) -> None:
    with running(StubSettings()) as server:
        result = await asked_of(server, tmp_path, 0.002)
    assert result.counters["explored_left"] == len(DRAWN - answered(result)) > 0
