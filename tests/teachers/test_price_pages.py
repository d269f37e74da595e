"""Prices as a server states them: by provider, kept on disk, told where they changed; bounds that hold."""

import json
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from teacher_chains import MODEL, chain, free_port, teacher_at

from tracemill.records.errors import TeacherError
from tracemill.records.message import Message
from tracemill.teachers.client.build_request import count_message_bytes
from tracemill.teachers.core.bundled_prices import OFFLINE_PRICES, find_bundled_price
from tracemill.teachers.core.price import TEMPLATE_TOKENS
from tracemill.teachers.core.teacher_settings import GateSettings, PriceSettings
from tracemill.teachers.core.token_chain import ChainMemory
from tracemill.teachers.gate.gate_decisions import make_gate_decisions
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.offline.sim_policy import estimate_tokens
from tracemill.teachers.openrouter_stub.server import RunningStubServer, running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings
from tracemill.teachers.pricing.price_book import PriceBook
from tracemill.teachers.replay.replay_run import ReplayRequest, replay

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def prices(prompt: float, completion: float, **more: float) -> PriceSettings:
    return PriceSettings.model_validate({"prompt_usd": prompt, "completion_usd": completion, **more})


SERVED = {MODEL: {"cheap/fp4": prices(0.2, 0.8), "dear": prices(0.5, 2, cache_write_usd=0.7)}}


async def test_the_bound_is_at_the_prices_of_the_provider_that_may_answer() -> None:
    (question,) = chain(0)
    bounds = {}
    with running(StubSettings(endpoints=SERVED, keep_bodies=True)) as server:
        for provider in (None, "cheap", "cheap/fp4", "dear"):
            teacher = teacher_at(server.url, provider=provider)
            await teacher.check()
            tokens = len(teacher.body(question, 0)) + TEMPLATE_TOKENS
            bounds[provider] = (teacher.bound_nanousd(question) - 100 * 800, tokens)
            reply = (await teacher.ask(question, 0)).reply
            assert (reply.provider or "").startswith((provider or "cheap").partition("/")[0])
            await teacher.close()
        only = [json.loads(body)["provider"].get("only") for body in server.server.bodies]
    assert only == [None, ["cheap"], ["cheap/fp4"], ["dear"]]
    assert bounds["cheap"][0] == bounds["cheap/fp4"][0] - 4 * 200 == bounds["cheap"][1] * 200
    # nobody pinned: the dearest of both, 0.7 a token that is written and 2 a token that is answered
    assert bounds["dear"][0] == bounds["dear"][1] * 700 + 100 * 1200
    assert bounds[None][0] == bounds[None][1] * 700 + 100 * 1200


async def test_a_provider_that_does_not_serve_the_model_is_one_line() -> None:
    with running(StubSettings(endpoints=SERVED)) as server:
        teacher = teacher_at(server.url, provider="nobody")
        with pytest.raises(TeacherError, match=r"'nobody' does not serve .*one of cheap/fp4, dear"):
            await teacher.check()
        await teacher.close()
        assert server.stats()["received"] == 0


def priced(prompt: float) -> StubSettings:
    return StubSettings(models={MODEL: prices(prompt, 0.84, cache_read_usd=0.01)})


def tell(told: list[tuple[str, int]], server: RunningStubServer, line: str) -> None:
    told.append((line, server.stats()["received"]))


async def test_a_changed_price_is_told_before_anything_is_spent_and_nothing_is_bought_anew(
    tmp_path: Path,
) -> None:
    port, told, asked = free_port(), list[tuple[str, int]](), list[tuple[int, int]]()
    with Ledger(f"sqlite:///{tmp_path / 'l.db'}") as ledger:
        for number, (prompt, steps) in enumerate(((0.21, 2), (0.21, 3), (0.42, 4))):
            with running(priced(prompt), port=port) as server:
                book = PriceBook(tmp_path / "prices.json", partial(tell, told, server))
                questions, teacher = chain(steps)[:steps], teacher_at(server.url, book)
                ledger.open_run(f"run{number}", 10**9)
                decisions = make_gate_decisions(questions, [teacher], 0, GateSettings())
                result = await replay(ReplayRequest(questions, decisions, [teacher], ledger, f"run{number}"))
                asked.append((result.counters["asked"], result.counters["cached"]))
    assert asked == [(2, 0), (1, 2), (1, 3)]
    day = json.loads((tmp_path / "prices.json").read_text())["models"].popitem()[1]["read_at"][:10]
    line = f"{MODEL}: prompt price $0.21 per million -> $0.42 per million since {day}"
    read = "input cache read price $0.0042 per million -> $0.01 per million"
    assert told == [(f"{MODEL}: {read} since the table of 2026-11-21", 0), (line, 0)]


def test_a_snapshot_that_changed_and_a_provider_that_got_dearer_are_told(tmp_path: Path) -> None:
    entry = {"id": "m", "canonical_slug": "m-0813", "pricing": {"prompt": "0.000001"}}
    endpoints = [{"tag": "a", "pricing": {"prompt": "0.000001"}}]
    PriceBook(tmp_path / "p.json").remember("s", "m", entry, endpoints)
    book = PriceBook(tmp_path / "p.json")
    book.remember("s", "m", entry, [{"tag": "a", "pricing": {"prompt": "1e-6"}}, {"tag": "b", "pricing": {}}])
    assert book.changes == []
    book.remember("s", "m", entry, [{"tag": "a", "pricing": {"prompt": "0.000003"}}])
    book.remember("s", "m", entry | {"canonical_slug": "m-1120"}, endpoints)
    assert [line.rpartition(" since ")[0] for line in book.changes] == [
        "m: prompt price $1 per million -> $3 per million at a",
        "m: snapshot m-0813 -> m-1120",
    ]


def test_a_book_that_is_broken_or_of_another_schema_is_started_anew(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    for text in ("{", '{"schema": 99, "models": {"s m": 1}}', '{"schema": 1, "models": {"s m": 1}}'):
        path.write_text(text)
        assert PriceBook(path).card("s", "m", None) is None
    PriceBook(path).remember("s", "m", {"id": "m", "pricing": {"prompt": "0.000002"}}, [])
    found = PriceBook(path).card("s", "m", None)
    assert found is not None
    assert float(found[0].price.prompt) == 2e-6


def test_a_later_step_is_bound_by_what_the_teacher_counted_before_and_the_bytes_since() -> None:
    first, second, third = chain(3)[:3]
    memory = ChainMemory()
    assert memory.before(second) is None
    memory.answered(first, 40)
    memory.answered(second, 90)
    found = memory.before(third)
    assert found is not None
    assert (found.messages, found.tokens) == (4, 90)
    found = memory.before(first)
    assert found is not None
    assert (found.messages, found.tokens) == (2, 40)
    # a context of the same name whose messages are others is not taken for this one
    other = chain(3, result="y = 2\n")[2]
    assert memory.before(other) is None


async def test_the_bound_falls_to_a_third_once_the_teacher_has_counted() -> None:
    questions = chain(9, result="x = 1\n" * 2000)
    with running() as server:
        teacher = teacher_at(server.url)
        await teacher.check()
        alone = teacher.bound_nanousd(questions[8])
        counted = (await teacher.ask(questions[7], 0)).reply.usage.prompt_tokens
        known = teacher.bound_nanousd(questions[8])
        cost = (await teacher.ask(questions[8], 0)).cost_nanousd
        await teacher.close()
    new = count_message_bytes(questions[8].messages[len(questions[7].messages) :])
    assert known == (counted + new + TEMPLATE_TOKENS) * 210 + 100 * 840
    assert cost is not None
    assert cost < known < alone / 2.5


async def test_a_stored_answer_is_remembered_before_the_first_call(tmp_path: Path) -> None:
    questions, bounds = chain(4, result="x = 1\n" * 2000), list[int]()
    with running() as server, Ledger(f"sqlite:///{tmp_path / 'l.db'}") as ledger:
        for number in range(2):
            teacher = teacher_at(server.url)
            bounds.append(teacher.bound_nanousd(questions[4]))
            ledger.open_run(f"run{number}", 10**9)
            decisions = make_gate_decisions(questions[:4], [teacher], 0, GateSettings())
            await replay(ReplayRequest(questions[:4], decisions, [teacher], ledger, f"run{number}"))
            bounds.append(teacher.bound_nanousd(questions[4]))
        assert server.stats()["received"] == 4
    alone, counted, again, recalled = bounds
    assert alone == again > 2 * counted
    assert recalled == counted


@settings(max_examples=40, deadline=None)
@given(texts=st.lists(st.text(max_size=60), min_size=1, max_size=6), cut=st.integers(0, 5))
def test_bytes_of_what_is_new_hold_for_a_tokenizer_of_single_bytes(texts: list[str], cut: int) -> None:
    messages = [Message("user", text) for text in texts]
    new = messages[min(cut, len(messages)) :]
    assert count_message_bytes(new) >= sum(4 + len(m.content.encode()) for m in new)
    assert count_message_bytes(new) >= sum(4 + estimate_tokens(m.content) for m in new)


def test_the_offline_table_has_the_models_of_all_presets_with_their_long_prompts() -> None:
    gemini = OFFLINE_PRICES["google/gemini-3.1-pro-preview"]
    assert [tier.above_tokens for tier in gemini.tiers] == [200_000]
    assert len(OFFLINE_PRICES) > 25


@pytest.mark.parametrize(
    ("tokens", "cached", "written", "expected_nanousd"),
    [
        (100_000, 0, 0, 100_000 * 2000 + 10 * 12_000),
        (100_000, 60_000, 40_000, 60_000 * 200 + 40_000 * 375 + 10 * 12_000),
        (200_000, 0, 0, 200_000 * 2000 + 10 * 12_000),  # "above" is strictly above
        (200_001, 200_000, 1, 200_000 * 400 + 750 + 10 * 18_000),
    ],
)
def test_a_charge_is_by_what_was_read_and_written_at_the_tier_of_the_prompt(
    tokens: int, cached: int, written: int, expected_nanousd: int
) -> None:
    price = find_bundled_price("google/gemini-3.1-pro-preview")
    assert price is not None
    assert price.charge_nanousd(tokens, 10, cached, written) == expected_nanousd
    assert price.charge_nanousd(tokens, 10, cached, written) <= price.bound_nanousd(tokens, 10)
