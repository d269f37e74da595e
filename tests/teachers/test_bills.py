"""Answers that do not say what they cost: the server's page on them does, or the worst case stands."""

from pathlib import Path

import pytest
from teacher_chains import chain, teacher_at

from tracemill.flows.run_state.closing_table import closing_table_rows
from tracemill.flows.run_state.run_summary import ReleaseOutcome as Outcome
from tracemill.flows.run_state.run_summary import Summary
from tracemill.teachers.client.billing_lookup import MAX_LOOKUPS
from tracemill.teachers.client.parse_completion import billed_cost_nanousd
from tracemill.teachers.core.teacher_settings import GateSettings, ReplaySettings
from tracemill.teachers.gate.gate_decisions import make_gate_decisions
from tracemill.teachers.ledger.entries import RunSpending
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.openrouter_stub.server import RunningStubServer, running
from tracemill.teachers.openrouter_stub.stub_settings import FaultKind, FaultSettings, StubSettings
from tracemill.teachers.replay.replay_run import ReplayRequest, ReplayResult, replay

pytestmark = pytest.mark.anyio
STEPS = 4


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def asked_of(server: RunningStubServer, folder: Path) -> tuple[ReplayResult, RunSpending]:
    questions, teacher = chain(STEPS)[:STEPS], teacher_at(server.url)
    with Ledger(f"sqlite:///{folder / 'l.db'}") as ledger:
        ledger.open_run("run", 10**9)
        decisions = make_gate_decisions(questions, [teacher], 0, GateSettings())
        settings = ReplaySettings(backoff_s=0.02)
        result = await replay(ReplayRequest(questions, decisions, [teacher], ledger, "run", settings))
        return result, ledger.spent("run")


def wire(kind: FaultKind, **more: object) -> StubSettings:
    return StubSettings.model_validate({"faults": (FaultSettings(kind=kind),), **more})


async def test_an_answer_without_usage_is_settled_on_the_price_looked_up_and_is_an_answer(
    tmp_path: Path,
) -> None:
    with running(wire(FaultKind.NO_USAGE)) as server:
        result, spent = await asked_of(server, tmp_path)
        stats = server.stats()
    assert result.counters["answered"] == stats["received"] == stats["looked_up"] == STEPS
    assert spent.settled_nanousd == stats["charged_nanousd"] > 0
    assert round(sum(reply.cost_usd for reply in result.replies) * 1e9) == stats["charged_nanousd"]
    assert result.counters["unpriced"] == 0


async def test_a_page_that_comes_late_is_looked_at_again(tmp_path: Path) -> None:
    with running(wire(FaultKind.NO_USAGE, bill_delay_s=0.05)) as server:
        result, spent = await asked_of(server, tmp_path)
        stats = server.stats()
    assert stats["received"] == STEPS
    assert 2 * STEPS <= stats["looked_up"] < MAX_LOOKUPS * STEPS
    assert spent.settled_nanousd == stats["charged_nanousd"]
    assert result.counters["unpriced"] == 0


async def test_where_nobody_says_a_price_the_worst_case_is_charged_and_said(tmp_path: Path) -> None:
    with running(wire(FaultKind.NO_BILL)) as server:
        result, spent = await asked_of(server, tmp_path)
        stats = server.stats()
    assert (stats["received"], stats["looked_up"]) == (STEPS, MAX_LOOKUPS * STEPS)
    assert result.counters["answered"] == result.counters["unpriced"] == STEPS
    assert spent.settled_nanousd == result.counters["unpriced_nanousd"] > stats["charged_nanousd"] > 0
    usd = spent.settled_nanousd / 1e9
    summary = Summary(spent_usd=usd, unpriced_usd=usd, unpriced_calls=STEPS)
    said = dict(closing_table_rows(summary, 1.0, [], Outcome(None, None, 0, False, {}, {})))["spent / cap"]
    assert f"${usd:.4f} of it for 4 calls at their worst case: the provider stated no cost" in said


async def test_an_answer_that_says_its_price_is_not_looked_up(tmp_path: Path) -> None:
    with running(StubSettings()) as server:
        _, spent = await asked_of(server, tmp_path)
        stats = server.stats()
    assert (stats["looked_up"], spent.settled_nanousd) == (0, stats["charged_nanousd"])


@pytest.mark.parametrize(
    ("text", "nanousd"),
    [
        ('{"data": {"total_cost": 0.0012}}', 1_200_000),
        ('{"data": {"total_cost": 0.0001, "is_byok": true, "upstream_inference_cost": 0.002}}', 2_100_000),
        ('{"data": {"total_cost": 0.0001, "is_byok": false, "upstream_inference_cost": 0.002}}', 100_000),
        ('{"data": {"total_cost": -1}}', None),
        ('{"data": {}}', None),
        ("<html>", None),
    ],
)
def test_what_the_page_says(text: str, nanousd: int | None) -> None:
    assert billed_cost_nanousd(text) == nanousd
