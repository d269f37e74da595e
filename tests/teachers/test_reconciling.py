"""Calls whose price nobody said: what the account's own figures prove, and what stays for want of proof."""

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from teacher_chains import chain, teacher_at

from tracemill.teachers.client.model_catalogue import charged_usage_nanousd
from tracemill.teachers.core.teacher_settings import GateSettings, ReplaySettings
from tracemill.teachers.gate.gate_decisions import make_gate_decisions
from tracemill.teachers.ledger.entries import PlannedCall, Reservation, RunSpending
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.openrouter_stub.server import RunningStubServer, running
from tracemill.teachers.openrouter_stub.stub_settings import FaultKind, FaultSettings, StubSettings
from tracemill.teachers.replay.replay_run import ReplayRequest, ReplayResult, replay

pytestmark = pytest.mark.anyio
STEPS = 6
CAP = 10**9


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def asked_of(
    server: RunningStubServer, folder: Path, cap_nanousd: int = CAP, closed: str = "", **more: object
) -> tuple[ReplayResult, RunSpending]:
    """What comes of asking at a ledger that lies in the folder, and that is used again the next time."""
    questions, teacher = chain(STEPS)[:STEPS], teacher_at(server.url)
    given = {"backoff_s": 0.01, "max_attempts": 1, "reconcile_after_s": 0, "attempt_timeout_s": 1, **more}
    with Ledger(f"sqlite:///{folder / 'l.db'}") as ledger:
        ledger.open_run("run", cap_nanousd)
        decisions = make_gate_decisions(questions, [teacher], 0, GateSettings())
        settings = ReplaySettings.model_validate(given)
        result = await replay(
            ReplayRequest(questions, decisions, [teacher], ledger, "run", settings, closed=closed)
        )
        return result, ledger.spent("run")


def wire(kind: FaultKind, **more: object) -> StubSettings:
    """The first four questions meet a fault; the breaker opens at the fifth."""
    fault = FaultSettings(kind=kind, first_requests=4)
    return StubSettings.model_validate({"faults": (fault,), "hang_s": 3, **more})


@pytest.mark.parametrize(
    "kind", [FaultKind.GATEWAY_PAGE, FaultKind.DROPPED, FaultKind.STALLED], ids=lambda kind: kind.value
)
@pytest.mark.parametrize("page", ["key", "credits"])
async def test_faults_that_were_not_billed_are_given_back(tmp_path: Path, kind: FaultKind, page: str) -> None:
    with running(wire(kind, says_usage=page)) as server:
        first, before = await asked_of(server, tmp_path)
        charged = server.stats()["charged_nanousd"]
        second, after = await asked_of(server, tmp_path)
        stats = server.stats()
    assert first.counters["unpriced"] == second.counters["reconciled"] == 4
    assert before.settled_nanousd == charged + first.counters["unpriced_nanousd"]
    assert second.counters["reconciled_nanousd"] == pytest.approx(first.counters["unpriced_nanousd"], abs=100)
    assert stats["charged_nanousd"] <= after.settled_nanousd <= stats["charged_nanousd"] + 100


@pytest.mark.parametrize(
    "kind", [FaultKind.PROXY_PAGE, FaultKind.RESET, FaultKind.HANG], ids=lambda kind: kind.value
)
async def test_faults_that_were_billed_are_never_booked_below_what_they_cost(
    tmp_path: Path, kind: FaultKind
) -> None:
    with running(wire(kind)) as server:
        first, before = await asked_of(server, tmp_path)
        assert first.counters["unpriced"] == 4
        _, after = await asked_of(server, tmp_path)
        stats = server.stats()
    assert stats["charged_nanousd"] <= after.settled_nanousd
    assert after.settled_nanousd - stats["charged_nanousd"] < before.settled_nanousd


async def test_without_an_account_that_says_its_usage_the_worst_case_stays(tmp_path: Path) -> None:
    with running(wire(FaultKind.GATEWAY_PAGE, says_usage="nowhere")) as server:
        first, _ = await asked_of(server, tmp_path)
        second, after = await asked_of(server, tmp_path)
        charged = server.stats()["charged_nanousd"]
    assert second.counters["reconciled"] == 0
    assert after.settled_nanousd == charged + first.counters["unpriced_nanousd"]


async def test_calls_that_went_out_lately_stay_in_doubt(tmp_path: Path) -> None:
    with running(wire(FaultKind.GATEWAY_PAGE)) as server:
        await asked_of(server, tmp_path)
        second, _ = await asked_of(server, tmp_path, reconcile_after_s=600)
    assert second.counters["reconciled"] == 0


async def test_a_run_at_its_cap_goes_on_with_what_was_given_back(tmp_path: Path) -> None:
    with running(wire(FaultKind.GATEWAY_PAGE)) as server:
        _, spent = await asked_of(server, tmp_path)
        cap = spent.settled_nanousd
        closed, _ = await asked_of(server, tmp_path, cap, "at the cap", reconcile_after_s=600)
        asked_before = server.stats()["received"]
        result, after = await asked_of(server, tmp_path, cap, "at the cap")
        stats = server.stats()
    assert (closed.stopped, closed.counters["attempts"]) == ("at the cap", 0)
    assert result.counters["answered"] == STEPS
    assert stats["received"] == asked_before + 4
    assert stats["charged_nanousd"] <= after.settled_nanousd <= cap


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    with Ledger(ledger_url, lambda: next(TIME)) as opened:
        opened.open_run("run", CAP)
        opened.open_run("other", CAP)
        yield opened


TIME = iter(range(1_800_000_000, 1_900_000_000))


def granted(ledger: Ledger, key: str, amount: int, run: str = "run") -> Reservation:
    grant = ledger.reserve(PlannedCall(run, "t", "t:0:0", "teacher", key, amount, account="a"))
    assert isinstance(grant, Reservation)
    return grant


def test_what_a_crash_left_open_is_booked_at_what_the_account_says(ledger: Ledger) -> None:
    ledger.note_usage("a", 1_000)
    ledger.settle(granted(ledger, "known", 500), 70, "{}", stated_nanousd=70)
    lost = granted(ledger, "lost", 500)
    assert ledger.spent("run").reserved_nanousd == 500
    assert ledger.reconcile("a", 1_000 + 70 + 30, 0) == (1, 500 - 31)  # 30 and what was rounded up
    spent = ledger.spent("run")
    assert (spent.settled_nanousd, spent.reserved_nanousd, spent.open_calls) == (70 + 31, 0, 0)
    ledger.settle(lost, 25, "{}")  # it comes home all the same
    assert ledger.spent("run").settled_nanousd == 70 + 25


def test_what_was_written_off_is_booked_at_what_the_account_says(ledger: Ledger) -> None:
    ledger.note_usage("a", 1_000)
    granted(ledger, "lost", 500)
    assert ledger.write_off_stale(0) == 1
    assert (ledger.spent("run").settled_nanousd, ledger.spent("run").reserved_nanousd) == (500, 0)
    assert len(ledger.calls_in_doubt("a", 0)) == 1
    assert ledger.reconcile("a", 1_000 + 30, 0) == (1, 470)
    assert ledger.spent("run").settled_nanousd == 30
    assert ledger.calls_in_doubt("a", 0) == []


def test_each_call_is_booked_at_all_that_any_of_them_may_have_cost(ledger: Ledger) -> None:
    """Nobody knows which of two runs was charged: neither cap may be told less."""
    ledger.note_usage("a", 0)
    ledger.settle(granted(ledger, "one", 500, "run"), None, outcome="timeout")
    ledger.settle(granted(ledger, "two", 400, "other"), None, outcome="timeout")
    assert ledger.reconcile("a", 90, 0) == (2, 410 + 310)
    assert [ledger.spent(run).settled_nanousd for run in ("run", "other")] == [90, 90]


@pytest.mark.parametrize(
    ("usage", "why"),
    [(1_000 + 69, "the account has not heard of the known call"), (900, "it was reset")],
)
def test_an_account_that_lags_behind_proves_nothing(ledger: Ledger, usage: int, why: str) -> None:
    ledger.note_usage("a", 1_000)
    ledger.settle(granted(ledger, "known", 500), 80, "{}", stated_nanousd=80)
    ledger.settle(granted(ledger, "lost", 500), None, outcome="timeout")
    assert ledger.reconcile("a", usage, 0) == (0, 0), why
    assert ledger.spent("run").settled_nanousd == 580


def test_what_others_spend_with_the_key_keeps_the_worst_case_until_it_is_given_up(ledger: Ledger) -> None:
    ledger.note_usage("a", 0)
    ledger.settle(granted(ledger, "lost", 500), None, outcome="timeout")
    assert ledger.reconcile("a", 10_000, 0) == (0, 0)
    assert len(ledger.calls_in_doubt("a", 0)) == 1
    assert ledger.reconcile("a", 10_000, 0, give_up_s=0) == (0, 0)
    assert ledger.calls_in_doubt("a", 0) == []
    assert ledger.spent("run").settled_nanousd == 500
    ledger.settle(granted(ledger, "next", 500), None, outcome="timeout")
    assert ledger.reconcile("a", 10_000, 0) == (1, 500)  # reckoned from the last look


def test_calls_from_before_the_first_look_are_not_proven_by_it(ledger: Ledger) -> None:
    ledger.settle(granted(ledger, "lost", 500), None, outcome="timeout")
    ledger.note_usage("a", 5_000)
    assert ledger.reconcile("a", 5_000, 0) == (0, 0)
    assert ledger.spent("run").settled_nanousd == 500


def test_a_page_on_an_answer_says_what_it_cost(ledger: Ledger) -> None:
    ledger.settle(granted(ledger, "lost", 500), None, outcome="timeout")
    (doubt,) = ledger.calls_in_doubt("a", 0)
    assert ledger.reconcile("a", None, 0, billed={doubt: 41}) == (1, 459)
    assert ledger.spent("run").settled_nanousd == 41


@pytest.mark.parametrize(
    ("page", "nanousd"),
    [
        ({"usage": 1.5}, 1_500_000_000),
        ({"usage": 1.5, "byok_usage": 0.25}, 1_750_000_000),
        ({"total_credits": 10, "total_usage": 2}, 2_000_000_000),
        ({"usage": None}, None),
        ({"usage": "1.5"}, None),
        ({"usage": -1}, None),
        ({"usage": math.nan}, None),
        ({}, None),
        ([], None),
    ],
)
def test_what_a_page_says_of_the_usage(page: object, nanousd: int | None) -> None:
    assert charged_usage_nanousd(page) == nanousd
