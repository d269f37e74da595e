"""What a server states is held against tokens times price; the cap holds whatever it states."""

from pathlib import Path

import pytest
from teacher_chains import chain, teacher_at

from tracemill.teachers.client.billing_lookup import MAX_LOOKUPS
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_settings import GateSettings, ReplaySettings
from tracemill.teachers.gate.gate_decisions import make_gate_decisions
from tracemill.teachers.ledger.entries import RunSpending
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.openrouter_stub.server import RunningStubServer, running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings
from tracemill.teachers.pricing.price_book import PriceBook
from tracemill.teachers.replay.replay_run import ReplayRequest, ReplayResult, replay

pytestmark = pytest.mark.anyio
TRACES, STEPS = 8, 10
MANY = [
    question
    for number in range(TRACES)
    for question in chain(STEPS, f"t{number}", f"y = {number}\n" * 200)[:STEPS]
]
SETTINGS = ReplaySettings(backoff_s=0.001, concurrency=16)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def wire(**more: object) -> StubSettings:
    return StubSettings.model_validate(more)


async def asked_of(
    server: RunningStubServer,
    folder: Path,
    cap_nanousd: int,
    questions: list[Question] = MANY,
    book: PriceBook | None = None,
) -> tuple[ReplayResult, RunSpending]:
    teacher = teacher_at(server.url, book)
    with Ledger(f"sqlite:///{folder / 'l.db'}") as ledger:
        ledger.open_run("run", cap_nanousd)
        decisions = make_gate_decisions(questions, [teacher], 0, GateSettings())
        result = await replay(ReplayRequest(questions, decisions, [teacher], ledger, "run", SETTINGS))
        return result, ledger.spent("run")


def below(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


async def charged_in_full(folder: Path) -> int:
    """What all questions cost at a server that is honest."""
    with running() as server:
        result, _ = await asked_of(server, folder, 10**9)
        assert result.counters["answered"] == TRACES * STEPS
        return int(server.stats()["charged_nanousd"])


@pytest.mark.parametrize("share", ["0", "0.1", "0.9"])
async def test_what_is_charged_stays_below_the_cap_where_less_is_stated(tmp_path: Path, share: str) -> None:
    cap = await charged_in_full(below(tmp_path, "honest")) // 2
    with running(wire(stated_share=share)) as server:
        result, spent = await asked_of(server, tmp_path, cap)
        stats = server.stats()
    assert 0.5 * cap < stats["charged_nanousd"] <= cap
    assert spent.settled_nanousd == stats["charged_nanousd"]  # by the pages on the answers
    assert stats["looked_up"] == stats["received"] == result.counters["asked"] < len(MANY)
    assert result.stopped is not None


@pytest.mark.parametrize("share", ["0", "0.1"])
async def test_without_pages_on_the_answers_tokens_times_price_are_booked(tmp_path: Path, share: str) -> None:
    cap = await charged_in_full(below(tmp_path, "honest")) // 2
    with running(wire(stated_share=share, bill_pages=False)) as server:
        _, spent = await asked_of(server, tmp_path, cap)
        stats = server.stats()
    assert 0.5 * cap < stats["charged_nanousd"] <= spent.settled_nanousd <= cap
    assert stats["looked_up"] == MAX_LOOKUPS * stats["received"]


async def test_a_price_that_triples_in_mid_run_is_refused_and_not_billed(tmp_path: Path) -> None:
    with running(wire(dearer_after=20)) as server:
        result, spent = await asked_of(server, tmp_path, 10**9)
        stats = server.stats()
    assert stats["paid"] == 20
    assert spent.settled_nanousd == stats["charged_nanousd"]
    assert result.counters["failed:bad_request"] <= SETTINGS.concurrency
    why = "no endpoint serves the model as asked"
    assert result.counters[f"teacher_out:simulated/deepseek-a: {why}"] >= 1


async def test_a_server_that_bills_three_times_its_list_all_the_same_stays_below_the_cap(
    tmp_path: Path,
) -> None:
    cap, book = await charged_in_full(below(tmp_path, "honest")), PriceBook()
    with running(wire(dearer_after=20, heeds_max_price=False)) as server:
        _, spent = await asked_of(server, tmp_path, cap, book=book)
        stats = server.stats()
    assert 0.5 * cap < stats["charged_nanousd"] == spent.settled_nanousd <= cap
    assert book.changes == [
        "simulated/deepseek-a: charges 3.00 times its price list; calls are reserved at that from now on"
    ]


async def test_an_honest_server_is_not_looked_up_and_of_several_providers_each_has_its_own_price(
    tmp_path: Path,
) -> None:
    dear, cheap = {"prompt_usd": 2, "completion_usd": 8}, {"prompt_usd": "0.2", "completion_usd": "0.8"}
    endpoints = {"simulated/deepseek-a": {"cheap/fp8": cheap, "dear": dear}}
    with running(wire(endpoints=endpoints)) as server:
        _, spent = await asked_of(server, tmp_path, 10**9)
        stats = server.stats()
    assert (stats["looked_up"], spent.settled_nanousd) == (0, stats["charged_nanousd"])
    folder = below(tmp_path, "tenth")
    endpoints = {"simulated/deepseek-a": {"dear": dear, "cheap/fp8": cheap}}
    with running(wire(endpoints=endpoints, stated_share="0.1")) as server:
        _, spent = await asked_of(server, folder, 10**9)
        stats = server.stats()
    assert stats["looked_up"] == stats["received"]  # a tenth is what the other provider takes
    assert spent.settled_nanousd == stats["charged_nanousd"]
