"""Every way a server can fail, over a real socket: what is retried, what is a row, what is counted."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from tracemill.records.identity import extend_prompt, prompt_root
from tracemill.records.message import Action, Message, ToolSpec
from tracemill.records.reply import TeacherReply
from tracemill.teachers.build_teachers import build_teachers
from tracemill.teachers.client.transport import Transport
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_protocol import AttemptResult
from tracemill.teachers.core.teacher_settings import (
    CompatibleTeacherSettings,
    GateSettings,
    OpenRouterTeacherSettings,
    ReplaySettings,
)
from tracemill.teachers.gate.gate_decisions import make_gate_decisions
from tracemill.teachers.ledger.entries import Reservation, RunSpending
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.openrouter_stub.server import running
from tracemill.teachers.openrouter_stub.stub_settings import FaultKind, FaultSettings, StubSettings
from tracemill.teachers.planning.replay_plan import WantedAnswer
from tracemill.teachers.replay.buy_answer import STOPPED, AnswerBuyer, PurchaseOutcome, RetryWait
from tracemill.teachers.replay.rate_limits import ACCOUNT, RateLimitPauses
from tracemill.teachers.replay.replay_run import ReplayObserver, ReplayRequest, ReplayResult, replay

pytestmark = pytest.mark.anyio
MODEL = "simulated/deepseek-a"
TOOL = ToolSpec("bash", "Runs a command.", {"type": "object", "properties": {"command": {"type": "string"}}})
QUICK = ReplaySettings(max_attempts=2, backoff_s=0.01, attempt_timeout_s=0.4, max_retry_after_s=5)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def question(number: int = 0) -> Question:
    messages = (Message("user", f"Mend the test number {number} of src/app.py."),)
    prompt_id = extend_prompt(prompt_root((TOOL,), "p1"), messages[0])
    return Question(f"t{number}:0:0", f"t{number}", messages, (TOOL,), prompt_id, "p1", "r1")


class _Waits(ReplayObserver):
    """Keeps every wait in a list."""

    def __init__(self, waits: list[RetryWait]) -> None:
        self._waits = waits

    def waits(self, wait: RetryWait) -> None:
        self._waits.append(wait)


async def ask(
    url: str,
    folder: Path,
    *,
    questions: int = 1,
    settings: ReplaySettings = QUICK,
    key: str = "sk-or-simulated",
    waits: list[RetryWait] | None = None,
) -> tuple[ReplayResult, RunSpending]:
    teachers = build_teachers(
        [OpenRouterTeacherSettings(model=MODEL, base_url=url, max_tokens=100)], {"OPENROUTER_API_KEY": key}
    )
    asked = [question(number) for number in range(questions)]
    with Ledger(f"sqlite:///{folder / 'ledger.db'}") as ledger:
        ledger.open_run("run", 10**9)
        decisions = make_gate_decisions(asked, teachers, 0, GateSettings())
        request = ReplayRequest(asked, decisions, teachers, ledger, "run", settings)
        result = await replay(request, _Waits([] if waits is None else waits))
        return result, ledger.spent("run")


def wire(kind: FaultKind, **fault: object) -> StubSettings:
    return StubSettings(faults=(FaultSettings.model_validate({"kind": kind, **fault}),), hang_s=2)


ALWAYS = [
    # kind, failure, attempts, ends the run, what is counted: nothing, what was charged, or the worst case
    (FaultKind.RATE_LIMIT, "rate_limited", 2, False, "nothing"),
    (FaultKind.SERVER_ERROR, "provider_error", 2, False, "nothing"),
    (FaultKind.OVERLOADED, "provider_error", 2, False, "nothing"),
    (FaultKind.NO_CREDIT, "no_credit", 1, True, "nothing"),
    (FaultKind.IN_FLIGHT_HOLD, "rate_limited", 2, False, "nothing"),
    (FaultKind.FORBIDDEN, "no_credit", 1, True, "nothing"),
    (FaultKind.FINISH_ERROR, "provider_error", 2, False, "nothing"),
    (FaultKind.HANG, "timeout", 2, False, "worst"),
    (FaultKind.RESET, "network", 2, False, "worst"),
    (FaultKind.BAD_JSON, "malformed", 2, False, "charged"),
    (FaultKind.ERROR_IN_200, "provider_error", 2, False, "charged"),
    (FaultKind.EMPTY_CHOICES, "empty", 2, False, "charged"),
    (FaultKind.LENGTH, "truncated", 1, False, "charged"),
    (FaultKind.PROXY_PAGE, "provider_error", 2, False, "worst"),
    (FaultKind.FIREWALL_PAGE, "provider_error", 2, False, "nothing"),
    (FaultKind.BAD_REQUEST, "bad_request", 1, False, "nothing"),
    (FaultKind.TOO_LONG, "context_too_long", 1, False, "nothing"),
    (FaultKind.WRONG_KEY, "bad_request", 1, True, "nothing"),
    (FaultKind.KEY_LIMIT, "no_credit", 1, True, "nothing"),
    (FaultKind.TOO_DEAR, "no_credit", 1, True, "nothing"),
    (FaultKind.MODERATED, "refused", 1, False, "nothing"),
    (FaultKind.NO_ENDPOINT, "bad_request", 1, True, "nothing"),
    (FaultKind.FILTERED, "bad_request", 1, True, "nothing"),
    (FaultKind.REQUEST_TIMEOUT, "timeout", 2, False, "nothing"),
    (FaultKind.TOO_LARGE, "context_too_long", 1, False, "nothing"),
    (FaultKind.UNPROCESSABLE, "bad_request", 1, False, "nothing"),
    (FaultKind.UNAVAILABLE, "provider_error", 2, False, "nothing"),
    (FaultKind.GATEWAY_TIMEOUT, "timeout", 2, False, "nothing"),
    (FaultKind.EDGE_TIMEOUT, "timeout", 2, False, "nothing"),
    (FaultKind.EDGE_OVERLOADED, "provider_error", 2, False, "nothing"),
    (FaultKind.REDIRECT, "redirected", 1, True, "nothing"),
    (FaultKind.CUT, "network", 2, False, "charged"),
    (FaultKind.LIMIT_IN_200, "rate_limited", 2, False, "charged"),
    (FaultKind.EMPTY_MESSAGE, "empty", 2, False, "charged"),
    (FaultKind.CONTENT_FILTER, "refused", 1, False, "charged"),
    (FaultKind.REFUSAL, "refused", 1, False, "charged"),
]


def test_every_way_to_misbehave_is_in_the_table() -> None:
    """But for those that leave the answer as it is: they are those of test_teachers_bills.py."""
    unbilled = {FaultKind.GATEWAY_PAGE, FaultKind.DROPPED, FaultKind.STALLED}  # test_reconciling.py
    assert {row[0] for row in ALWAYS} == set(FaultKind) - {FaultKind.NO_USAGE, FaultKind.NO_BILL} - unbilled


@pytest.mark.parametrize(("kind", "failure", "attempts", "ends", "counted"), ALWAYS)
async def test_a_lasting_fault_is_one_failed_row_and_all_its_money_is_counted(
    kind: FaultKind, failure: str, attempts: int, ends: bool, counted: str, tmp_path: Path
) -> None:
    with running(wire(kind, retry_after_s=0.05)) as server:
        result, spent = await ask(server.url, tmp_path)
        stats = server.stats()
    assert [reply.failure for reply in result.replies] == [failure]
    assert result.replies[0].action is None
    assert stats["received"] == attempts == result.counters["attempts"]
    assert (result.stopped is not None) == ends
    assert spent.reserved_nanousd == 0
    assert round(result.replies[0].cost_usd * 1e9) == spent.settled_nanousd >= stats["charged_nanousd"]
    if counted == "worst":
        assert spent.settled_nanousd > stats["charged_nanousd"] > 0
    else:
        assert spent.settled_nanousd == stats["charged_nanousd"]
        assert (spent.settled_nanousd == 0) == (counted == "nothing")


PASSING = [kind for kind, _, attempts, ends, _ in ALWAYS if attempts == 2 and not ends]


@pytest.mark.parametrize("kind", PASSING)
async def test_a_passing_fault_is_asked_again_and_never_stored(kind: FaultKind, tmp_path: Path) -> None:
    with running(wire(kind, first_attempts=1, retry_after_s=0.05)) as server:
        result, spent = await ask(server.url, tmp_path)
        assert result.replies[0].failure is None
        assert result.replies[0].action is not None
        assert server.stats()["received"] == 2
        assert (
            round(result.replies[0].cost_usd * 1e9)
            == spent.settled_nanousd
            >= server.stats()["charged_nanousd"]
        )
        again, _ = await ask(server.url, tmp_path)
        assert server.stats()["received"] == 2
    assert again.replies == result.replies


async def test_a_truncated_answer_is_not_paid_for_again(tmp_path: Path) -> None:
    with running(wire(FaultKind.LENGTH)) as server:
        await ask(server.url, tmp_path)
        again, _ = await ask(server.url, tmp_path)
        assert server.stats()["received"] == 1
    assert [reply.failure for reply in again.replies] == ["truncated"]
    assert again.counters["cached"] == 1


async def test_retry_after_is_honoured_and_a_burst_costs_one(tmp_path: Path) -> None:
    with running(wire(FaultKind.RATE_LIMIT, first_requests=20, retry_after_s=1.5)) as server:
        patient, waits = ReplaySettings(attempt_timeout_s=30), list[RetryWait]()
        result, _ = await ask(server.url, tmp_path, questions=20, settings=patient, waits=waits)
        stats = server.stats()
    assert stats["faults"] == {"429": 20}
    assert (result.counters["answered"], result.counters["retries"]) == (20, 20)
    # 20 calls limited at once: each waits the 1.5 s it was told to the letter, and none a second time
    assert waits == [RetryWait(MODEL, "answers 429", 1.5)] * 20
    assert stats["shortest_gap_s"] >= 1.5


async def test_a_burst_of_limits_without_a_time_holds_the_teacher_back_once_and_longer_the_next_time() -> (
    None
):
    pauses = RateLimitPauses(ReplaySettings(backoff_s=40, max_backoff_s=100))
    reply = TeacherReply("t:0:0", "key", "a", "a", 0, 0, failure="rate_limited")
    limited = AttemptResult(reply, 0, retry=True)
    first = pauses.cool_down("a", limited)
    assert first is not None
    assert 19 < first <= 40
    assert pauses.cool_down("a", limited) == pytest.approx(first, abs=0.5)  # the same burst: no longer
    assert pauses.left_s("a") == pytest.approx(first, abs=0.5)
    assert pauses.left_s("b") == 0
    pauses._resume_at.clear()  # that wait is over, and it was not enough
    second = pauses.cool_down("a", limited)
    assert second is not None
    assert 39 < second <= 80
    pauses._resume_at.clear()
    assert (
        pauses.cool_down("a", AttemptResult(replace(reply, failure=None, action=Action("done")), 0)) is None
    )
    third = pauses.cool_down("a", limited)
    assert third is not None
    assert third <= 40  # an answer ends the row


async def test_nobody_else_asks_a_teacher_that_is_cooling_down(tmp_path: Path) -> None:
    with Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
        ledger.open_run("run", 10**9)
        given = CompatibleTeacherSettings(model="a", base_url="http://127.0.0.1:9/v1")
        items = [WantedAnswer(n, question(n), build_teachers([given], {})[0], 0, f"key{n}") for n in range(2)]
        caller = AnswerBuyer(ledger, "run", ReplaySettings(backoff_s=40, max_backoff_s=40), Counter())
        grant = await caller.reserve(items[0])
        assert isinstance(grant, Reservation)
        reply = TeacherReply("t:0:0", "key0", "a", "a", 0, 0, failure="rate_limited")
        wait_s = caller.close_call(items[0], grant, AttemptResult(reply, 0, retry=True), reply)
        assert wait_s is not None
        assert wait_s > 19
        other = asyncio.create_task(caller.buy(items[1], 0))
        await caller.reservations.flush()
        assert ledger.spent("run").calls == 1  # the other is not even reserved
        caller.stop("the test is over")
        assert await other == PurchaseOutcome(ends=STOPPED)
        caller.reservations.close()


SAID = [
    (FaultKind.OVERLOADED, "answers 503"),
    (FaultKind.IN_FLIGHT_HOLD, "answers 402"),
    (FaultKind.HANG, "gave no answer in 0.4 s"),
    (FaultKind.RESET, "broke off (ServerDisconnectedError)"),
    (FaultKind.BAD_JSON, "answers with a fault (malformed)"),
    (FaultKind.PROXY_PAGE, "answers 502"),
]


@pytest.mark.parametrize(("kind", "why"), SAID)
async def test_a_wait_says_what_the_provider_did(kind: FaultKind, why: str, tmp_path: Path) -> None:
    waits: list[RetryWait] = []
    with running(wire(kind, first_attempts=1, retry_after_s=0.05)) as server:
        result, _ = await ask(server.url, tmp_path, waits=waits)
    assert result.counters["answered"] == 1
    assert [(wait.teacher, wait.why) for wait in waits] == [(MODEL, why)]
    assert 0 < waits[0].seconds <= 0.05


FORMS = ("seconds", "date", "milliseconds", "reset", "body")


@pytest.mark.parametrize("form", FORMS)
async def test_a_wait_is_read_wherever_it_stands(form: str, tmp_path: Path) -> None:
    fault = {"retry_after_as": form, "retry_after_s": 40, "first_attempts": 1}
    with running(wire(FaultKind.RATE_LIMIT, **fault)) as server:
        given = OpenRouterTeacherSettings(model=MODEL, base_url=server.url, max_tokens=100)
        (teacher,) = build_teachers([given], {"OPENROUTER_API_KEY": "sk-or-simulated"})
        asked = await teacher.ask(question(), 0)
        await teacher.close()
    assert asked.retry_after_s is not None
    assert 36 < asked.retry_after_s < 41  # a date says whole seconds
    assert asked.account is (form == "reset")


async def test_a_limit_of_the_account_holds_all_teachers_back_and_one_of_a_provider_its_own() -> None:
    pauses = RateLimitPauses(QUICK)
    pauses.hold("a", 40)
    assert [round(pauses.left_s(name)) for name in ("a", "b")] == [40, 0]
    pauses.hold(ACCOUNT, 60)
    assert [round(pauses.left_s(name)) for name in ("a", "b")] == [60, 60]


async def test_calls_wait_for_a_hold_that_our_own_calls_make(tmp_path: Path) -> None:
    # 100 answer tokens at $0.84 per million reserve 84,000 nUSD: three fit into the budget at a time
    settings = StubSettings(in_flight_usd=Decimal("0.0003"), latency_s=0.1)
    patient = ReplaySettings(max_attempts=2, attempt_timeout_s=5)
    with running(settings) as server:
        result, spent = await ask(server.url, tmp_path, questions=12, settings=patient)
        stats = server.stats()
    assert (result.counters["answered"], result.stopped) == (12, None)
    assert stats["paid"] == 12 < stats["received"]
    assert spent.settled_nanousd == stats["charged_nanousd"]


async def test_a_wait_longer_than_allowed_gives_the_call_up(tmp_path: Path) -> None:
    with running(wire(FaultKind.RATE_LIMIT, retry_after_s=600)) as server:
        started = time.perf_counter()
        result, _ = await ask(server.url, tmp_path)
        assert time.perf_counter() - started < 3
    assert result.counters["failed:rate_limited"] == 1
    assert result.stopped is None


async def test_no_credit_stops_the_run_at_once_and_a_rerun_goes_on(tmp_path: Path) -> None:
    one_at_a_time = ReplaySettings(concurrency=1)
    with running(wire(FaultKind.NO_CREDIT, after_requests=4, first_requests=1)) as server:
        result, _ = await ask(server.url, tmp_path, questions=12, settings=one_at_a_time)
        assert result.stopped == "the account or key has no credit left"
        assert server.stats()["received"] == 5
        assert (result.counters["answered"], result.counters["not_asked:stopped"]) == (4, 7)
        again, _ = await ask(server.url, tmp_path, questions=12, settings=one_at_a_time)
        assert server.stats()["received"] == 5 + 8
        assert server.stats()["paid_twice"] == 0
    assert again.stopped is None
    assert again.counters["answered"] == 12


async def test_a_model_that_vanishes_in_the_middle_is_asked_no_more(tmp_path: Path) -> None:
    body = '{"error": {"code": 404, "message": "No endpoints found"}}'
    settings = CompatibleTeacherSettings(model="local", base_url="http://unused/v1")
    async with answering(http(body, "404 Not Found")) as url:
        (teacher,) = build_teachers([settings.model_copy(update={"base_url": url})], {})
        asked = await teacher.ask(question(), 0)
        await teacher.close()
    assert (asked.halt, asked.cost_nanousd, asked.retry) == ("teacher", 0, False)


async def test_one_failing_call_cancels_none_of_the_others(tmp_path: Path) -> None:
    settings = wire(FaultKind.BAD_JSON, probability=0.5)
    with running(settings) as server:
        result, spent = await ask(server.url, tmp_path, questions=30)
        assert spent.settled_nanousd >= server.stats()["charged_nanousd"]
    assert len(result.replies) == 30
    assert result.counters["answered"] + result.counters["failed:malformed"] == 30
    assert 0 < result.counters["failed:malformed"] < 20


@asynccontextmanager
async def answering(response: bytes) -> AsyncIterator[str]:
    """A server that answers every POST with these very bytes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")
        )
        await reader.readexactly(length)
        writer.write(response)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


def http(body: str, status: str = "200 OK") -> bytes:
    data = body.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + data


async def test_the_key_is_in_no_row_even_where_a_server_echoes_it(tmp_path: Path) -> None:
    body = '{"error": {"code": 400, "message": "bad header: Bearer sk-very-secret"}}'
    async with answering(http(body, "400 Bad Request")) as url:
        settings = CompatibleTeacherSettings(model="local", base_url=url, api_key_env="LOCAL_KEY")
        (teacher,) = build_teachers([settings], {"LOCAL_KEY": "sk-very-secret"})
        asked = await teacher.ask(question(), 0)
        await teacher.close()
    assert asked.reply.failure == "bad_request"
    assert "sk-very-secret" not in repr(asked)
    assert "[api key]" in asked.reply.raw
    assert asked.cost_nanousd == 0


def test_a_short_key_is_part_of_words_and_stays() -> None:
    told = "deepseek-v3 has no model"
    assert Transport("http://127.0.0.1:9/v1", "k").scrub(told) == told
    assert Transport("http://127.0.0.1:9/v1", "seek-v3").scrub(told) == told
    assert Transport("http://127.0.0.1:9/v1", "deepseek").scrub(told) == "[api key]-v3 has no model"


async def test_every_text_of_an_answer_passes_the_redaction(tmp_path: Path) -> None:
    body = (
        '{"id": "g1", "choices": [{"finish_reason": "tool_calls", "message": {"content": "as ann",'
        ' "reasoning": "ann said", "tool_calls": [{"id": "c", "function": {"name": "bash",'
        ' "arguments": "{\\"command\\": \\"ls /home/ann\\"}"}}]}}]}'
    )
    async with answering(http(body)) as url:
        settings = CompatibleTeacherSettings(model="local", base_url=url)
        (teacher,) = build_teachers([settings], {}, lambda text: text.replace("ann", "USER"))
        asked = await teacher.ask(question(), 0)
        await teacher.close()
    assert asked.reply.action is not None
    assert asked.reply.action.text == "as USER"
    assert asked.reply.action.tool_calls[0].arguments == '{"command": "ls /home/USER"}'
    assert "ann" not in asked.reply.raw


async def test_a_server_nobody_listens_on_costs_nothing(tmp_path: Path) -> None:
    settings = CompatibleTeacherSettings(model="local", base_url="http://127.0.0.1:9/v1")
    (teacher,) = build_teachers([settings], {})
    asked = await teacher.ask(question(), 0)
    await teacher.close()
    assert (asked.reply.failure, asked.cost_nanousd, asked.retry) == ("network", 0, True)


async def test_a_connection_cut_in_the_middle_of_the_answer_may_have_cost_something() -> None:
    cut = http('{"id": "g1", "choices": []}').replace(b"Content-Length: 27", b"Content-Length: 270")
    async with answering(cut) as url:
        (teacher,) = build_teachers([CompatibleTeacherSettings(model="local", base_url=url)], {})
        asked = await teacher.ask(question(), 0)
        await teacher.close()
    assert (asked.reply.failure, asked.cost_nanousd, asked.retry) == ("network", None, True)
