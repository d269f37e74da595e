"""Build the stub server's responses; every one is marked as simulated."""

from typing import Any

from aiohttp import web

from tracemill.teachers.client.chat_teacher import SIMULATED_HEADER
from tracemill.teachers.openrouter_stub.injected_faults import injected_error_body, injected_fault_refusal
from tracemill.teachers.openrouter_stub.stub_settings import FaultKind, FaultSettings

MARK = {SIMULATED_HEADER: "1"}
_HOLD_RETRY_S = 0.2


def stub_json_response(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """Return a body as JSON."""
    return web.json_response(body, status=status, headers=MARK | (headers or {}))


def stub_error_response(code: int, message: str, **metadata: Any) -> web.Response:
    """Return an error in OpenRouter's format."""
    return stub_json_response(injected_error_body(code, message, **metadata), code)


def stub_refusal_response(kind: FaultKind, retry_after_s: float = _HOLD_RETRY_S) -> web.Response:
    """Return the refusal of a kind."""
    found = injected_fault_refusal(FaultSettings(kind=kind, retry_after_s=retry_after_s))
    assert found is not None
    status, body, headers = found
    return stub_json_response(body, status, headers)


async def cut_off(request: web.Request, body: bytes, named: dict[str, str]) -> web.StreamResponse:
    """Send half of a body whose full length was stated, then close; `named` are extra headers."""
    response = web.StreamResponse(headers={**MARK, **named, "Content-Length": str(len(body))})
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    if request.transport is not None:
        request.transport.close()
    return response
