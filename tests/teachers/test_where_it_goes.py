"""Text and key go to the server that was named: over real sockets, past proxies and redirects."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tracemill.records.errors import ConfigError, TeacherError
from tracemill.records.identity import extend_prompt, prompt_root
from tracemill.records.message import Message
from tracemill.teachers.build_teachers import build_teachers
from tracemill.teachers.client.error_policy import fault_of_error_status
from tracemill.teachers.core.base_urls import host_of, is_loopback, origin_of
from tracemill.teachers.core.question import Question
from tracemill.teachers.core.teacher_protocol import Teacher
from tracemill.teachers.core.teacher_settings import (
    CompatibleTeacherSettings,
    GateSettings,
    OpenRouterTeacherSettings,
    ReplaySettings,
)
from tracemill.teachers.gate.gate_decisions import make_gate_decisions
from tracemill.teachers.ledger.ledger import Ledger
from tracemill.teachers.openrouter_stub.server import running
from tracemill.teachers.openrouter_stub.stub_settings import StubSettings
from tracemill.teachers.replay.replay_run import ReplayRequest, replay

pytestmark = pytest.mark.anyio
KEY = "sk-very-secret-0123456789"
TEXT = "Mend the lantern of the north gate."
ANSWER = (
    '{"id": "g", "object": "list", "data": [{"id": "local"}],'
    ' "choices": [{"finish_reason": "stop", "message": {"content": "done"}}]}'
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def question(number: int = 0) -> Question:
    messages = (Message("user", f"{TEXT} {number}"),)
    prompt_id = extend_prompt(prompt_root((), "p1"), messages[0])
    return Question(f"t{number}:0:0", f"t{number}", messages, (), prompt_id, "p1", "r1")


def http(status: str, body: str = "", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "Connection: close", "", body]).encode()


@asynccontextmanager
async def listening(answer: Callable[[bytes], bytes]) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server that keeps every byte it is sent, each request whole; gives its port and what came."""
    came: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        came.append(head + (await reader.readexactly(int(length[0][15:])) if length else b""))
        writer.write(answer(head))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], came


def teacher_at(url: str) -> Teacher:
    settings = CompatibleTeacherSettings(model="local", base_url=url, api_key_env="LOCAL_KEY")
    return build_teachers([settings], {"LOCAL_KEY": KEY})[0]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.2"])
async def test_no_proxy_of_the_environment_sees_what_goes_to_this_machine(
    monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    async with listening(lambda _: http("200 OK", ANSWER)) as (port, came):
        for name in ("http_proxy", "HTTPS_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        listens = "127.0.0.1" if host == "localhost" else host
        with running(StubSettings(api_key=KEY, keep_bodies=True), host=listens) as server:
            url = server.url.replace(listens, host)
            settings = OpenRouterTeacherSettings(model="simulated/deepseek-a", base_url=url)
            (teacher,) = build_teachers([settings], {"OPENROUTER_API_KEY": KEY})
            await teacher.check()
            asked = await teacher.ask(question(), 0)
            await teacher.close()
            assert TEXT.encode() in b"".join(server.server.bodies)
        assert asked.reply.failure is None
        assert came == []


async def test_a_proxy_carries_get_and_post_alike_to_any_other_host(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening(lambda _: http("200 OK", ANSWER)) as (port, came):
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
        teacher = teacher_at("http://models.example/v1")
        await teacher.check()
        asked = await teacher.ask(question(), 0)
        await teacher.close()
    assert asked.reply.failure is None
    assert [request.split(b" HTTP")[0] for request in came] == [
        b"GET http://models.example/v1/models",
        b"POST http://models.example/v1/chat/completions",
    ]


@pytest.mark.parametrize(
    "status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"]
)
async def test_a_redirect_of_a_question_is_a_failed_call_and_nothing_goes_elsewhere(status: str) -> None:
    async with (
        listening(lambda _: http("200 OK", ANSWER)) as (elsewhere, came),
        listening(lambda _: http(status, Location=f"http://127.0.0.1:{elsewhere}/v1/x")) as (port, asked_for),
    ):
        teacher = teacher_at(f"http://127.0.0.1:{port}/v1")
        asked = await teacher.ask(question(), 0)
        await teacher.close()
    assert came == []
    assert len(asked_for) == 1
    assert (asked.reply.failure, asked.cost_nanousd, asked.retry, asked.halt) == (
        "redirected",
        0,
        False,
        "teacher",
    )
    assert asked.why == f"its server answers with a redirect (HTTP {status[:3]}), which is not followed"


async def test_a_redirect_of_the_catalogue_is_said_before_anything_is_asked() -> None:
    async with listening(lambda _: http("200 OK", ANSWER)) as (elsewhere, came):
        where = f"http://127.0.0.1:{elsewhere}/v1/models"
        async with listening(lambda _: http("307 Temporary", Location=where)) as (port, _):
            url = f"http://127.0.0.1:{port}/v1"
            of_router = OpenRouterTeacherSettings(model="a/b", base_url=url)
            for teacher in (
                teacher_at(url),
                *build_teachers([of_router], {"OPENROUTER_API_KEY": KEY}),
            ):
                with pytest.raises(TeacherError, match=r"answers with a redirect \(HTTP 307\), which is not"):
                    await teacher.check()
                await teacher.close()
    assert came == []


async def test_a_redirect_halts_the_teacher_and_the_rest_is_not_asked(tmp_path: Path) -> None:
    def answer(head: bytes) -> bytes:
        return (
            http("200 OK", ANSWER) if head.startswith(b"GET") else http("307 Temporary", Location="http://x/")
        )

    async with listening(answer) as (port, came):
        teacher = teacher_at(f"http://127.0.0.1:{port}/v1")
        questions = [question(number) for number in range(5)]
        with Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
            ledger.open_run("run", 10**9)
            decisions = make_gate_decisions(questions, [teacher], 0, GateSettings())
            settings = ReplaySettings(concurrency=1)
            result = await replay(ReplayRequest(questions, decisions, [teacher], ledger, "run", settings))
            assert ledger.spent("run").settled_nanousd == 0
    assert sum(request.startswith(b"POST") for request in came) == 1
    assert (result.counters["failed:redirected"], result.counters["not_asked:teacher out"]) == (1, 4)
    assert result.stopped == ("local: its server answers with a redirect (HTTP 307), which is not followed")


def test_no_body_of_a_redirect_talks_a_fault_away() -> None:
    body = {"error": {"availability": {"retryable": True, "retry_after": 1}}}
    fault = fault_of_error_status(302, body, {"retry-after": "1"})
    assert (fault.halt, fault.retry, fault.billed, fault.retry_after_s) == ("teacher", False, False, None)


@pytest.mark.parametrize(
    ("url", "origin", "loopback"),
    [
        ("https://openrouter.ai/api/v1", "https://openrouter.ai", False),
        ("https://openrouter.ai:443/api/v1", "https://openrouter.ai", False),
        ("http://GPU.example:8000/v1", "http://gpu.example:8000", False),
        ("https://gpu.example:8000/v1", "https://gpu.example:8000", False),
        ("http://me:pass@gpu.example/v1", "http://gpu.example", False),
        ("http://[::1]:8000/v1", "http://[::1]:8000", True),
        ("http://127.8.0.1/v1", "http://127.8.0.1", True),
        ("http://LocalHost:80/v1", "http://localhost", True),
        ("http://localhost.example/v1", "http://localhost.example", False),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, origin: str, loopback: bool) -> None:
    assert (origin_of(url), is_loopback(url)) == (origin, loopback)
    assert host_of(url) in origin


@pytest.mark.parametrize(
    "url", ["gpu.example/v1", "ftp://gpu.example", "http:///v1", "http://h:99999/v1", "http://[x/v1"]
)
def test_a_base_url_that_names_no_server_is_an_error(url: str) -> None:
    with pytest.raises(ConfigError, match="names no server"):
        origin_of(url)
