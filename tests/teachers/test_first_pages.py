"""The pages that are read before anything is asked: what may pass is requested again, a refusal is not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tracemill.records.errors import TeacherError
from tracemill.teachers.client.model_catalogue import ModelCatalogue
from tracemill.teachers.client.transport import Transport
from tracemill.teachers.pricing.price_book import PriceBook

pytestmark = pytest.mark.anyio
PAGE = "<html>Access denied</html>"
LIST = '{"data": [{"id": "local"}]}'
CUT = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def http(status: str, body: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", "", body]
    return "\r\n".join(lines).encode()


@asynccontextmanager
async def answering(*answers: bytes) -> AsyncIterator[tuple[ModelCatalogue, list[bytes]]]:
    """The catalogue of a server that gives these answers in turn, then its list; and the requests to it."""
    came: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answers[len(came) - 1] if len(came) <= len(answers) else http("200 OK", LIST))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        transport = Transport(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", "k")
        try:
            yield ModelCatalogue(transport, False, PriceBook()), came
        finally:
            await transport.close()


@pytest.mark.parametrize(
    "fault",
    [
        http("403 Forbidden", PAGE),
        http("401 Unauthorized", PAGE),
        http("408 Request Timeout", PAGE),
        http("429 Too Many Requests", '{"error": {"code": 429}}'),
        http("503 Service Unavailable", '{"error": {"code": 503}}'),
        CUT,
    ],
    ids=["403-page", "401-page", "408", "429", "503", "cut"],
)
async def test_what_may_pass_is_requested_again(fault: bytes) -> None:
    async with answering(fault) as (catalogue, came):
        assert list(await catalogue.models()) == ["local"]
        assert len(came) == 2


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (http("403 Forbidden", '{"error": {"code": 403}}'), "refused the API key"),
        (http("401 Unauthorized", '{"error": {"code": 401}}'), "refused the API key"),
        (http("404 Not Found", PAGE), r"gave no model list \(HTTP 404\)"),
    ],
    ids=["403", "401", "404"],
)
async def test_a_refusal_of_the_server_itself_is_told_at_once(fault: bytes, said: str) -> None:
    async with answering(fault) as (catalogue, came):
        with pytest.raises(TeacherError, match=said):
            await catalogue.models()
        assert len(came) == 1


async def test_a_fault_that_lasts_is_told_after_four_requests() -> None:
    async with answering(*[http("403 Forbidden", PAGE)] * 9) as (catalogue, came):
        with pytest.raises(TeacherError, match=r"gave no model list \(HTTP 403\)"):
            await catalogue.models()
        assert len(came) == 4
