"""Serve OpenRouter's API with simulated teachers, for tests and trials.

It charges an account, counts requests, and injects configured faults. Every answer has the header
`X-Tracemill-Simulated`, so that no row passes for a model's.

    POST /api/v1/chat/completions    GET /api/v1/models    GET /api/v1/models/{id}/endpoints
    GET /api/v1/key                  GET /api/v1/generation?id=        GET /api/v1/credits
    GET /__stats
"""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from tracemill.records.errors import ConfigError
from tracemill.records.families import family_of
from tracemill.teachers.core.price import Price, nanousd_to_usd, price_of
from tracemill.teachers.core.teacher_settings import PriceSettings
from tracemill.teachers.offline.sim_policy import SimulatedAnswer, simulate_answer
from tracemill.teachers.openrouter_stub.account import StubAccount
from tracemill.teachers.openrouter_stub.bodies import (
    completion_body,
    endpoints_body,
    ignored_body_fields,
    models_body,
    stub_body_providers,
    stub_context_tokens,
)
from tracemill.teachers.openrouter_stub.family_quirks import family_quirk_refusal
from tracemill.teachers.openrouter_stub.injected_faults import (
    PAGES,
    UNBILLED,
    inject_body_fault,
    injected_fault_refusal,
)
from tracemill.teachers.openrouter_stub.prompt_cache import (
    CacheTokens,
    StubPrompt,
    StubPromptCache,
    cut_stub_prompt,
)
from tracemill.teachers.openrouter_stub.responses import (
    MARK,
    cut_off,
    stub_error_response,
    stub_json_response,
    stub_refusal_response,
)
from tracemill.teachers.openrouter_stub.stub_settings import FaultKind, FaultSettings, StubSettings
from tracemill.teachers.pricing.cache_rules import cache_rule

_MAX_BODY_BYTES = 256 * 2**20
_DEFAULT_MAX_TOKENS = 4096


@dataclass(frozen=True, slots=True)
class _Request:
    """A request that can be answered."""

    key: str
    attempt: int
    model: str
    wanted: dict[str, Any]
    provider: str
    price: Price
    writes_priced: bool


class StubServer:
    """The HTTP application of the stub server."""

    def __init__(self, settings: StubSettings) -> None:
        self.account = StubAccount(settings)
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self._settings = settings
        self._cache = StubPromptCache()
        self._page_failures = settings.page_failures

    def application(self) -> web.Application:
        """Return the application with its routes."""
        app = web.Application(client_max_size=_MAX_BODY_BYTES, middlewares=[self._counted])
        app.router.add_post("/api/v1/chat/completions", self._complete)
        app.router.add_get("/api/v1/models", self._models)
        app.router.add_get("/api/v1/models/{model:.+}/endpoints", self._endpoints)
        app.router.add_get("/api/v1/key", self._key)
        app.router.add_get("/api/v1/credits", self._credits)
        app.router.add_get("/api/v1/generation", self._generation)
        app.router.add_get("/__stats", self._stats)
        return app

    @web.middleware
    async def _counted(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path.startswith("/api/"):
            self.account.requests += 1
        if request.path.startswith("/api/") and request.method == "GET" and self._page_failures:
            self._page_failures -= 1
            return stub_error_response(503, "Service unavailable")
        return await handler(request)

    def _authorized(self, request: web.Request) -> bool:
        return request.headers.get("Authorization") == f"Bearer {self._settings.api_key}"

    async def _models(self, request: web.Request) -> web.Response:
        return stub_json_response(models_body(self._settings))

    async def _endpoints(self, request: web.Request) -> web.Response:
        model, settings = request.match_info["model"], self._settings
        if model not in settings.models:
            return stub_error_response(404, "No such model")
        return stub_json_response(endpoints_body(settings, model))

    async def _key(self, request: web.Request) -> web.Response:
        if not self._authorized(request):
            return stub_error_response(401, "No auth credentials found")
        return stub_json_response(self.account.key_page())

    async def _credits(self, request: web.Request) -> web.Response:
        if not self._authorized(request):
            return stub_error_response(401, "No auth credentials found")
        if self._settings.says_usage != "credits":
            return stub_error_response(403, "Only management keys can do this")
        return stub_json_response({"data": {"total_credits": 100.0, "total_usage": self.account.used_usd()}})

    async def _generation(self, request: web.Request) -> web.Response:
        if not self._authorized(request):
            return stub_error_response(401, "No auth credentials found")
        named = request.query.get("id", "")
        nanousd = self.account.billed(named)
        if nanousd is None:
            return stub_error_response(404, "Generation not found")
        cost = nanousd_to_usd(nanousd)
        return stub_json_response(
            {"data": {"id": named, "total_cost": cost, "usage": cost, "is_byok": False}}
        )

    async def _stats(self, request: web.Request) -> web.Response:
        return stub_json_response(self.account.stats())

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
            self.headers.append({name.lower(): value for name, value in request.headers.items()})
        if not self._authorized(request):
            return stub_error_response(401, "No auth credentials found")
        try:
            wanted = json.loads(body)
            model, wanted["messages"] = str(wanted["model"]), list(wanted["messages"])
        except (ValueError, TypeError, KeyError):
            return stub_error_response(400, "model and messages are required")
        offer = self._served(model, wanted)
        if offer is None:
            return stub_error_response(404, f"No endpoints found for {model}")
        if why := family_quirk_refusal(model, family_of(model), wanted):
            return stub_error_response(400, why)
        fault = self.account.fault(key, attempt, model)
        if fault is not None and (refused := injected_fault_refusal(fault)) is not None:
            status, error, headers = refused
            return stub_json_response(error, status, headers)
        if fault is not None and (lost := await self._lost_response(request, fault.kind)) is not None:
            return lost
        provider, prices = offer
        priced = prices.cache_write_usd is not None and cache_rule(family_of(model)).pays_writes
        asked = _Request(key, attempt, model, wanted, provider, price_of(prices), priced)
        return await self._serve(request, asked, fault)

    async def _lost_response(self, request: web.Request, kind: FaultKind) -> web.Response | None:
        """Return the response of a request lost before billing; None if it is not lost."""
        if kind in PAGES:
            return web.Response(status=PAGES[kind], text="<html>No</html>", content_type="text/html")
        if kind is FaultKind.STALLED:
            await asyncio.sleep(self._settings.hang_s)
        if kind is FaultKind.DROPPED and request.transport is not None:
            request.transport.abort()
        return web.Response(status=504) if kind in (FaultKind.STALLED, FaultKind.DROPPED) else None

    def _served(self, model: str, wanted: dict[str, Any]) -> tuple[str, PriceSettings] | None:
        """Return the provider that answers, and its prices; None if none may."""
        routing = wanted.get("provider") or {}
        if model not in self._settings.models:
            return None
        if routing.get("require_parameters") and ignored_body_fields(self._settings, model) & wanted.keys():
            return None
        only = set(map(str, routing.get("only") or ()))
        offers = {
            tag: self._current_prices(prices)
            for tag, prices in stub_body_providers(self._settings, model).items()
        }
        most = routing.get("max_price") if self._settings.heeds_max_price else None
        return next(
            (
                (tag, prices)
                for tag, prices in offers.items()
                if (not only or only & {tag, tag.partition("/")[0]}) and _within_max_price(prices, most)
            ),
            None,
        )

    def _current_prices(self, prices: PriceSettings) -> PriceSettings:
        """Return the current prices: those listed, or a multiple."""
        settings = self._settings
        if settings.dearer_after is None or self.account.received <= settings.dearer_after:
            return prices
        return prices.model_copy(
            update={
                name: value * settings.dearer_times for name, value in prices if isinstance(value, Decimal)
            }
        )

    async def _serve(
        self, request: web.Request, asked: _Request, fault: FaultSettings | None
    ) -> web.StreamResponse:
        wanted = asked.wanted
        given = simulate_answer(
            asked.model,
            wanted["messages"],
            wanted.get("tools") or [],
            seed=self._settings.seed,
            sample=int((wanted.get("metadata") or {}).get("sample", 0)),
        )
        most = int(wanted.get("max_tokens") or _DEFAULT_MAX_TOKENS)
        if given.prompt_tokens + most > stub_context_tokens(self._settings, asked.model):
            return stub_refusal_response(FaultKind.TOO_LONG)
        with self.account.hold(asked.price.charge_nanousd(given.prompt_tokens, most, 0, 0)) as fits:
            if not fits:
                return stub_refusal_response(FaultKind.IN_FLIGHT_HOLD)
            await asyncio.sleep(self.account.latency_s(asked.key, asked.attempt))
            return await self._bill(request, asked, given, fault)

    def _cut(self, asked: _Request) -> StubPrompt:
        settings, wanted = self._settings, asked.wanted
        family, name = family_of(asked.model), f"{asked.model} {asked.provider}"
        return cut_stub_prompt(
            name, family, wanted["messages"], wanted.get("tools") or [], settings.cache_lifetime_s
        )

    async def _bill(
        self, request: web.Request, asked: _Request, given: SimulatedAnswer, fault: FaultSettings | None
    ) -> web.StreamResponse:
        found, now = CacheTokens(), time.monotonic()
        if self._settings.prompt_cache:
            prompt = self._cut(asked)
            found = self._cache.lookup(prompt, now, asked.writes_priced)
            self._cache.keep(prompt, now)
        cost = asked.price.charge_nanousd(
            given.prompt_tokens, given.completion_tokens, found.cached_tokens, found.written_tokens
        )
        if not self.account.covers(cost):
            return stub_error_response(402, "Insufficient credits", limit_source="openrouter_credits")
        if fault is None or fault.kind not in UNBILLED:
            self.account.charge(asked.key, asked.model, cost, found)
        stated = int(cost * self._settings.stated_share)
        body = completion_body(asked.model, given, found, stated, asked.provider, int(time.time()))
        if self._settings.bill_pages and (fault is None or fault.kind is not FaultKind.NO_BILL):
            self.account.bill(body["id"], 0 if fault is not None and fault.kind in UNBILLED else cost)
        if fault is None:
            return stub_json_response(body, headers={"X-Generation-Id": body["id"]})
        return await self._damage(request, fault.kind, body)

    async def _damage(
        self, request: web.Request, kind: FaultKind, body: dict[str, Any]
    ) -> web.StreamResponse:
        if kind is FaultKind.HANG:
            await asyncio.sleep(self._settings.hang_s)
        if kind is FaultKind.RESET and request.transport is not None:
            request.transport.abort()
        if kind is FaultKind.CUT:
            return await cut_off(request, json.dumps(body).encode(), {"X-Generation-Id": body["id"]})
        if kind is FaultKind.PROXY_PAGE:
            return web.Response(status=502, text="<html>Bad gateway</html>", content_type="text/html")
        if kind is FaultKind.BAD_JSON:
            text = json.dumps(body)
            half, headers = text[: len(text) // 2], {**MARK, "X-Generation-Id": body["id"]}
            return web.Response(text=half, content_type="application/json", headers=headers)
        return stub_json_response(inject_body_fault(kind, body))


def _within_max_price(prices: PriceSettings, most: dict[str, float] | None) -> bool:
    """Return whether no listed price exceeds `provider.max_price`."""
    return not most or (
        float(prices.prompt_usd) <= most.get("prompt", float("inf"))
        and float(prices.completion_usd) <= most.get("completion", float("inf"))
    )


async def _listen(server: StubServer, host: str, port: int) -> tuple[web.AppRunner, str]:
    """Open the socket; port 0 takes a free one. Raises ConfigError if it cannot."""
    runner = web.AppRunner(server.application(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        await runner.cleanup()
        raise ConfigError(
            f"cannot listen on {host}:{port} ({error.strerror})", "a free port", "choose another port"
        ) from None
    bound = runner.addresses[0][1]
    return runner, f"http://{host}:{bound}/api/v1"


async def serve(
    host: str = "127.0.0.1",
    port: int = 8787,
    settings: StubSettings | None = None,
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Serve until cancelled; `on_ready` gets the base URL.

    Raises ConfigError if the port is not available.
    """
    runner, url = await _listen(StubServer(settings or StubSettings()), host, port)
    try:
        if on_ready is not None:
            on_ready(url)
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


@dataclass(frozen=True, slots=True)
class RunningStubServer:
    """A stub server that runs in a thread.

    `url` is the `base_url` to set for a teacher, `key` its API key.
    """

    url: str
    key: str
    server: StubServer

    def stats(self) -> dict[str, Any]:
        """Return the counters of `GET /__stats`."""
        return self.server.account.stats()


@contextmanager
def running(
    settings: StubSettings | None = None, port: int = 0, host: str = "127.0.0.1"
) -> Iterator[RunningStubServer]:
    """Run a server on `host` in a thread of its own during the block."""
    settings = settings or StubSettings()
    server = StubServer(settings)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="wire-server", daemon=True)
    thread.start()
    runner: web.AppRunner | None = None
    try:
        listening = asyncio.run_coroutine_threadsafe(_listen(server, host, port), loop)
        runner, url = listening.result(timeout=30)
        yield RunningStubServer(url, settings.api_key, server)
    finally:
        if runner is not None:
            asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(timeout=30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=30)
        loop.close()
