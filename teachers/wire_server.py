"""A server that speaks OpenRouter's wire format and answers with simulated teachers.

It charges an account, counts what it was asked, and misbehaves as configured. Every answer carries the
header `X-Tracemill-Simulated`, so that no row ever passes for a model's.

    POST /api/v1/chat/completions    GET /api/v1/models    GET /api/v1/key    GET /__stats
"""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from records.errors import ConfigError
from teachers.chat import SIMULATED_HEADER
from teachers.prices import price_of
from teachers.sim_policy import Answer, answer
from teachers.wire_account import BILLED, Account
from teachers.wire_bodies import completion_body, error_body, models_body, spoiled
from teachers.wire_settings import FaultKind, FaultSettings, WireSettings

_MARK = {SIMULATED_HEADER: "1"}
_MAX_BODY_BYTES = 256 * 2**20
_REFUSALS = {
    FaultKind.RATE_LIMIT: (429, "Rate limit exceeded", {}),
    FaultKind.SERVER_ERROR: (500, "Internal Server Error", {}),
    FaultKind.OVERLOADED: (503, "Provider overloaded", {}),
    FaultKind.NO_CREDIT: (402, "Insufficient credits", {"limit_source": "openrouter_credits"}),
    FaultKind.IN_FLIGHT_HOLD: (
        402,
        "Too much in flight",
        {"limit_source": "openrouter_in_flight_budget", "reason": "in_flight_budget_exhausted"},
    ),
    FaultKind.FORBIDDEN: (403, "Budget limit exceeded", {"limit_usd": 1, "spend_usd": 1}),
}
_WAITS = (FaultKind.RATE_LIMIT, FaultKind.OVERLOADED, FaultKind.IN_FLIGHT_HOLD)


def _json(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.json_response(body, status=status, headers=_MARK | (headers or {}))


def _error(code: int, message: str, **metadata: Any) -> web.Response:
    return _json(error_body(code, message, **metadata), code)


class WireServer:
    """The application behind the socket."""

    def __init__(self, settings: WireSettings) -> None:
        self.account = Account(settings)
        self.bodies: list[bytes] = []
        self._settings = settings

    def application(self) -> web.Application:
        """The routes."""
        app = web.Application(client_max_size=_MAX_BODY_BYTES, middlewares=[self._counted])
        app.router.add_post("/api/v1/chat/completions", self._complete)
        app.router.add_get("/api/v1/models", self._models)
        app.router.add_get("/api/v1/key", self._key)
        app.router.add_get("/__stats", self._stats)
        return app

    @web.middleware
    async def _counted(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path.startswith("/api/"):
            self.account.requests += 1
        return await handler(request)

    def _authorized(self, request: web.Request) -> bool:
        return request.headers.get("Authorization") == f"Bearer {self._settings.api_key}"

    async def _models(self, request: web.Request) -> web.Response:
        return _json(models_body(self._settings.models, self._settings.without_tools))

    async def _key(self, request: web.Request) -> web.Response:
        if not self._authorized(request):
            return _error(401, "No auth credentials found")
        return _json(self.account.key_page())

    async def _stats(self, request: web.Request) -> web.Response:
        return _json(self.account.stats())

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        account = self.account
        account.in_flight += 1
        account.most_in_flight = max(account.most_in_flight, account.in_flight)
        try:
            return await self._answer(request, await request.read())
        finally:
            account.in_flight -= 1

    async def _answer(self, request: web.Request, body: bytes) -> web.StreamResponse:
        key, attempt = self.account.arrive(body)
        if self._settings.keep_bodies:
            self.bodies.append(body)
        if not self._authorized(request):
            return _error(401, "No auth credentials found")
        try:
            wanted = json.loads(body)
            model, messages = str(wanted["model"]), list(wanted["messages"])
        except (ValueError, TypeError, KeyError):
            return _error(400, "model and messages are required")
        if model not in self._settings.models:
            return _error(404, f"No endpoints found for {model}")
        fault = self.account.fault(key, attempt, model)
        if fault is not None and fault.kind in _REFUSALS:
            return _refusal(fault)
        given = answer(
            model,
            messages,
            wanted.get("tools") or [],
            seed=self._settings.seed,
            sample=int((wanted.get("metadata") or {}).get("sample", 0)),
        )
        await asyncio.sleep(self.account.latency_s(key, attempt))
        return await self._bill(request, key, model, given, fault)

    async def _bill(
        self, request: web.Request, key: str, model: str, given: Answer, fault: FaultSettings | None
    ) -> web.StreamResponse:
        price = price_of(self._settings.models[model])
        cost = price.cost_nusd(given.prompt_tokens, given.completion_tokens)
        if not self.account.covers(cost):
            return _error(402, "Insufficient credits", limit_source="openrouter_credits")
        if fault is None or fault.kind in BILLED:
            self.account.charge(key, model, cost)
        body = completion_body(model, given, cost, int(time.time()))
        return _json(body) if fault is None else await self._spoil(request, fault.kind, body)

    async def _spoil(self, request: web.Request, kind: FaultKind, body: dict[str, Any]) -> web.StreamResponse:
        if kind is FaultKind.HANG:
            await asyncio.sleep(self._settings.hang_s)
        if kind is FaultKind.RESET and request.transport is not None:
            request.transport.abort()
        if kind is FaultKind.PROXY_PAGE:
            return web.Response(status=502, text="<html>Bad gateway</html>", content_type="text/html")
        if kind is FaultKind.BAD_JSON:
            text = json.dumps(body)
            return web.Response(text=text[: len(text) // 2], content_type="application/json", headers=_MARK)
        return _json(spoiled(kind, body))


def _refusal(fault: FaultSettings) -> web.Response:
    code, message, metadata = _REFUSALS[fault.kind]
    headers = {"Retry-After": f"{fault.retry_after_s:g}"} if fault.kind in _WAITS else {}
    return _json(error_body(code, message, **metadata), code, headers)


async def _listen(server: WireServer, host: str, port: int) -> tuple[web.AppRunner, str]:
    """Opens the socket; port 0 takes a free one. Raises ConfigError where it cannot be had."""
    runner = web.AppRunner(server.application(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        await runner.cleanup()
        raise ConfigError(
            f"{host}:{port} cannot be listened on ({error.strerror})", "a free port", "choose another port"
        ) from None
    bound = runner.addresses[0][1]
    return runner, f"http://{host}:{bound}/api/v1"


async def serve(
    host: str = "127.0.0.1",
    port: int = 8787,
    settings: WireSettings | None = None,
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Serves until cancelled; `on_ready` gets the base URL. Raises ConfigError where the port cannot be
    had."""
    runner, url = await _listen(WireServer(settings or WireSettings()), host, port)
    try:
        if on_ready is not None:
            on_ready(url)
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


@dataclass(frozen=True, slots=True)
class Running:
    """A server in a thread: `url` is what a teacher's `base_url` wants, `key` opens it."""

    url: str
    key: str
    server: WireServer

    def stats(self) -> dict[str, Any]:
        """The counters of `GET /__stats`."""
        return self.server.account.stats()


@contextmanager
def running(
    settings: WireSettings | None = None, port: int = 0, host: str = "127.0.0.1"
) -> Iterator[Running]:
    """A server on `host` in a thread of its own, stopped at the end of the block."""
    settings = settings or WireSettings()
    server = WireServer(settings)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="wire-server", daemon=True)
    thread.start()
    runner: web.AppRunner | None = None
    try:
        listening = asyncio.run_coroutine_threadsafe(_listen(server, host, port), loop)
        runner, url = listening.result(timeout=30)
        yield Running(url, settings.api_key, server)
    finally:
        if runner is not None:
            asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(timeout=30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=30)
        loop.close()
