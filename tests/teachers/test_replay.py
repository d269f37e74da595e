"""The replay over a real socket: the cap, answers bought once, order, refusals."""

import asyncio
import re
from pathlib import Path

import pytest
from asked_sessions import KEY, MODELS, TOOLS, questions_of, run
from careless_teacher import Careless

from tracemill.records.errors import PrivacyError, TeacherError
from tracemill.records.reply import TeacherReply
from tracemill.teachers.build_teachers import build_teachers
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_settings import GateSettings, OpenRouterTeacherSettings, ReplaySettings
from tracemill.teachers.gate.gate_decisions import make_gate_decisions
from tracemill.teachers.ledger.entries import PlannedCall, RunSpending
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.openrouter_stub.server import running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings
from tracemill.teachers.replay.replay_run import ReplayObserver, ReplayRequest, ReplayResult, replay

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


CENT_NANOUSD = 10_000_000


async def test_a_cap_of_one_cent_is_never_passed_at_concurrency_32(tmp_path: Path) -> None:
    questions = questions_of(20, 6)
    with running(StubSettings(latency_s=0.05)) as server:
        result, spent = await run(server.url, tmp_path / "l.db", questions, cap_nanousd=CENT_NANOUSD)
        stats = server.stats()
    assert stats["charged_nanousd"] <= CENT_NANOUSD
    assert spent.settled_nanousd == stats["charged_nanousd"]
    assert spent.reserved_nanousd == 0
    # the cap is used: what is left does not cover the cheapest call refused
    assert spent.settled_nanousd > 0.8 * CENT_NANOUSD
    assert result.stopped is not None
    told = re.search(
        r"cap of \$0.0100 did not cover a call that may cost \$(\S+): \$(\S+) was left", result.stopped
    )
    assert told is not None
    dear_nanousd, left_nanousd = (round(float(usd) * 1e9) for usd in told.groups())
    # what was left then, of which cheaper calls may have taken more
    assert CENT_NANOUSD - spent.settled_nanousd - 1_000 <= left_nanousd < dear_nanousd
    assert result.counters["answered"] + result.counters["not_asked:budget"] == len(questions) * 4
    # dear teachers are not starved by cheap ones
    assert min(stats["by_model"].values()) > 0.5 * max(stats["by_model"].values())


async def test_thirty_two_calls_are_in_flight_where_the_cap_allows_it(tmp_path: Path) -> None:
    """36 chains, each waiting so long for its answer that all that may have gone out by then."""
    with running(StubSettings(latency_s=1.5)) as server:
        result, _ = await run(server.url, tmp_path / "l.db", questions_of(9, 1))
        assert server.stats()["most_in_flight"] == 32
    assert result.counters["most_in_flight"] == 32
    assert result.counters["answered"] == 36


async def test_a_second_run_sends_nothing_and_gives_the_same_rows(tmp_path: Path) -> None:
    questions = questions_of(3, 4)
    with running() as server:
        first, spent = await run(server.url, tmp_path / "l.db", questions)
        url = server.url
    # the server is gone: neither catalogue nor key are asked for again
    second, again = await run(url, tmp_path / "l.db", questions)
    assert second.replies == first.replies
    assert (second.counters["cached"], second.counters["attempts"]) == (48, 0)
    assert again.settled_nanousd == spent.settled_nanousd
    assert [(r.step_id, r.teacher) for r in first.replies] == [
        (q.step_id, m) for q in questions for m in MODELS
    ]
    for step in range(0, 48, 4):
        assert sorted(reply.order for reply in first.replies[step : step + 4]) == [0, 1, 2, 3]
    assert all(reply.simulated for reply in first.replies)
    assert sum(round(reply.cost_usd * 1e9) for reply in first.replies) == spent.settled_nanousd


async def test_only_new_steps_are_asked_where_the_input_grew(tmp_path: Path) -> None:
    with running() as server:
        await run(server.url, tmp_path / "l.db", questions_of(3, 4))
        await run(server.url, tmp_path / "l.db", questions_of(4, 5))
        assert server.stats()["received"] == 4 * 5 * 4
        assert server.stats()["paid_twice"] == 0


async def test_one_prompt_in_two_traces_is_bought_once(tmp_path: Path) -> None:
    (first,) = questions_of(1, 1)
    twin = Question("u:0:0", "u", first.messages, TOOLS, first.prompt_id, "p1", "r1")
    with running(StubSettings(latency_s=0.1)) as server:
        result, spent = await run(server.url, tmp_path / "l.db", [first, twin])
        assert server.stats()["received"] == 4
    assert [reply.step_id for reply in result.replies] == ["t0:0:0"] * 4 + ["u:0:0"] * 4
    assert [reply.action for reply in result.replies[:4]] == [reply.action for reply in result.replies[4:]]
    assert sum(round(reply.cost_usd * 1e9) for reply in result.replies) == spent.settled_nanousd


async def test_samples_are_separate_answers(tmp_path: Path) -> None:
    with running() as server:
        settings = ReplaySettings(samples=3)
        result, _ = await run(server.url, tmp_path / "l.db", questions_of(1, 2), settings=settings)
        assert server.stats()["received"] == server.stats()["distinct"] == 24
    assert [reply.sample for reply in result.replies] == [0, 1, 2] * 8
    assert len({reply.request_key for reply in result.replies}) == 24


async def test_a_trace_cap_ends_its_trace_and_no_other(tmp_path: Path) -> None:
    long, short = questions_of(1, 8), questions_of(2, 1)[1:]
    with running() as server:
        result, spent = await run(server.url, tmp_path / "l.db", long + short, trace_cap_nanousd=2_500_000)
    assert result.stopped is None
    assert result.counters["not_asked:budget of the trace"] > 0
    assert sum(reply.step_id.startswith("t1") for reply in result.replies) == 4
    assert sum(round(r.cost_usd * 1e9) for r in result.replies if r.step_id.startswith("t0")) <= 2_500_000
    assert spent.reserved_nanousd == 0


async def test_open_intents_of_a_dead_process_count_against_the_cap(tmp_path: Path) -> None:
    with Ledger(f"sqlite:///{tmp_path / 'l.db'}") as ledger:
        ledger.open_run("run", CENT_NANOUSD)
        ledger.reserve(PlannedCall("run", "t0", "t0:0:0", "someone", "lost", CENT_NANOUSD // 2))
    with running() as server:
        _, spent = await run(server.url, tmp_path / "l.db", questions_of(10, 5), cap_nanousd=CENT_NANOUSD)
        assert server.stats()["charged_nanousd"] <= CENT_NANOUSD // 2
    assert spent.reserved_nanousd == CENT_NANOUSD // 2


async def test_text_that_was_not_redacted_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    (question,) = questions_of(1, 1)
    raw = Question("t9:0:0", "t9", question.messages, TOOLS, "p", "p1", "")
    with running() as server:
        with pytest.raises(PrivacyError, match="1 of 2 questions"):
            await run(server.url, tmp_path / "l.db", [question, raw])
        assert server.stats()["received"] == 0


@pytest.mark.parametrize(
    ("models", "environ", "match"),
    [
        (MODELS, {"OPENROUTER_API_KEY": "sk-wrong"}, "refused the API key"),
        ((*MODELS, "nobody/nothing-1"), KEY, "no model 'nobody/nothing-1'"),
        ((*MODELS[:2], "z-ai/glm-5.3"), KEY, "'z-ai/glm-5.3' cannot call tools"),
    ],
)
async def test_a_teacher_that_cannot_answer_is_one_line_before_money(
    models: tuple[str, ...], environ: dict[str, str], match: str, tmp_path: Path
) -> None:
    with running(StubSettings(without_tools=("z-ai/glm-5.3",))) as server:
        with pytest.raises(TeacherError, match=match) as caught:
            await run(server.url, tmp_path / "l.db", questions_of(1, 1), models=models, environ=environ)
        assert server.stats()["received"] == 0
    assert "sk-" not in str(caught.value)


async def test_an_interrupt_sends_nothing_more_and_loses_nothing_that_is_in_flight(tmp_path: Path) -> None:
    questions, interrupted, came = questions_of(6, 5), asyncio.Event(), list[str]()

    class Interrupts(ReplayObserver):
        def replied(self, reply: TeacherReply, stored: bool) -> None:
            came.append(reply.request_key)
            if len(came) == 30:
                interrupted.set()

    with running(StubSettings(latency_s=0.1)) as server, Ledger(f"sqlite:///{tmp_path / 'l.db'}") as ledger:
        ledger.open_run("run", 10**9)
        models = [
            OpenRouterTeacherSettings(model=model, base_url=server.url, max_tokens=200) for model in MODELS
        ]
        decisions = make_gate_decisions(questions, build_teachers(models, KEY), 0, GateSettings())
        built = [build_teachers(models, KEY) for _ in range(2)]
        request = ReplayRequest(questions, decisions, built[0], ledger, "run", interrupted=interrupted)
        first = await replay(request, Interrupts())
        stats = server.stats()
        again = await replay(ReplayRequest(questions, decisions, built[1], ledger, "run"))
        assert server.stats()["paid_twice"] == 0
        assert server.stats()["paid"] == len(questions) * len(MODELS)
        assert ledger.spent("run").settled_nanousd == server.stats()["charged_nanousd"]
    assert first.stopped == "interrupted"
    assert stats["paid"] == stats["received"] == len(first.replies) == len(came)
    assert 30 <= len(came) <= 30 + 24  # six traces, four teachers
    assert first.counters["not_asked:stopped"] == len(questions) * len(MODELS) - len(came)
    assert again.counters["cached"] == len(came)


async def test_no_network_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TeacherError, match="does not answer"):
        await run("http://127.0.0.1:9/api/v1", tmp_path / "l.db", questions_of(1, 1))


async def test_spent_credit_is_found_before_anything_is_asked(tmp_path: Path) -> None:
    with running(StubSettings.model_validate({"credit_usd": "0"})) as server:
        with pytest.raises(TeacherError, match="spending limit"):
            await run(server.url, tmp_path / "l.db", questions_of(1, 1))
        assert server.stats()["received"] == 0


async def test_an_account_that_runs_dry_stops_the_run(tmp_path: Path) -> None:
    with running(StubSettings.model_validate({"credit_usd": "0.002"})) as server:
        result, spent = await run(server.url, tmp_path / "l.db", questions_of(10, 5))
        assert server.stats()["charged_nanousd"] <= 2_000_000
        assert spent.settled_nanousd == server.stats()["charged_nanousd"]
    assert result.stopped == "the account or key has no credit left"


async def ask_careless(folder: Path, cost_nanousd: int | None) -> tuple[ReplayResult, RunSpending]:
    questions, teachers = questions_of(1, 5), [Careless(cost_nanousd)]
    with Ledger(f"sqlite:///{folder / 'l.db'}") as ledger:
        ledger.open_run("run", 1000)
        decisions = make_gate_decisions(questions, teachers, 0, GateSettings())
        settings = ReplaySettings(max_attempts=2, backoff_s=0)
        return await replay(
            ReplayRequest(questions, decisions, teachers, ledger, "run", settings)
        ), ledger.spent("run")


async def test_a_call_above_its_bound_is_counted_and_stops_the_run(tmp_path: Path) -> None:
    result, spent = await ask_careless(tmp_path, 25)
    assert (result.stopped or "").startswith(
        "a call of careless cost $0.0000, more than the $0.0000 reserved"
    )
    assert (len(result.replies), result.counters["not_asked:stopped"]) == (1, 4)
    assert (spent.settled_nanousd, spent.reserved_nanousd) == (25, 0)


async def test_a_teacher_whose_code_fails_gives_failed_rows_at_the_worst_case(tmp_path: Path) -> None:
    result, spent = await ask_careless(tmp_path, None)
    assert (
        result.stopped == "careless: it failed 10 times in a row (the last failed by itself (RuntimeError))"
    )
    assert [reply.failure for reply in result.replies] == ["provider_error"] * 5
    assert spent.settled_nanousd == 5 * 2 * 10
