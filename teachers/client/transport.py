"""Send requests to one HTTP server: bytes out, status and text back, without retries.

Pages are read through the openai SDK. A completion uses the SDK's headers on an aiohttp session beside it:
the SDK's request and response layers take three times as long as everything else. Redirects are not followed,
so text and key only go to the named server. Proxies of the environment apply to every request, but none to
this machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

from tracemill.records.errors import error_chain
from tracemill.teachers.core.base_urls import is_loopback

if TYPE_CHECKING:
    from aiohttp import ClientSession
    from openai import AsyncOpenAI
    from openai._types import RequestOptions

CONNECT_TIMEOUT_S = 10.0
_IDLE_S = 5.0
"""Seconds an idle connection is kept: servers close theirs later."""
_RAW: "RequestOptions" = {"headers": {"X-Stainless-Raw-Response": "true"}}
"""Makes the SDK return the HTTP response itself, as its `with_raw_response` does."""

_NO_PROXY = {"http://": None, "https://": None}
"""Overrides HTTP_PROXY, HTTPS_PROXY and ALL_PROXY."""

MIN_SCRUBBED = 8
"""Least characters of a key that is removed from answers; a shorter one may be part of any word."""

GENERATION_HEADER = "x-generation-id"

NO_KEY = "none"
"""Sent where a server needs no key: the SDK requires one."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """An HTTP response of any status; header names in lower case."""

    status: int
    text: str
    headers: Mapping[str, str]

    @property
    def redirected(self) -> str:
        """Return the description of a redirect for errors; "" for any other response."""
        return f"a redirect (HTTP {self.status}), which is not followed" if 300 <= self.status < 400 else ""


class TransportFault(Exception):
    """No complete HTTP response came.

    `sent` is False if the request cannot have reached the server; `generation_id` is from the response's
    headers.
    """

    def __init__(self, kind: str, sent: bool, timed_out: bool, generation_id: str | None = None) -> None:
        super().__init__(kind)
        self.kind = kind
        self.sent = sent
        self.timed_out = timed_out
        self.generation_id = generation_id


def _fault(error: Exception, generation_id: str | None = None) -> TransportFault:
    """Return the fault of an exception.

    Whether the request was sent is read from aiohttp's own exception: the SDK reports a reset after sending
    as a connect timeout.
    """
    import aiohttp

    never_sent = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)
    causes = list(error_chain(error))
    unsent = any(isinstance(cause, never_sent) for cause in causes)
    timed_out = any(isinstance(cause, TimeoutError) for cause in causes)
    return TransportFault(type(causes[-1]).__name__, not unsent, timed_out, generation_id)


def _proxy_of(url: str) -> str | None:
    """Return the environment's proxy for a URL, None if there is none."""
    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or is_loopback(url) or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


class Transport:
    """Connections to one base URL with one key, opened at the first call on the running loop."""

    def __init__(self, base_url: str, api_key: str | None, headers: Mapping[str, str] | None = None) -> None:
        self.base_url = base_url.rstrip("/")
        self._api_key = api_key
        self.headers = dict(headers or {})
        self._client: AsyncOpenAI | None = None
        self._session: ClientSession | None = None
        self._completions = f"{self.base_url}/chat/completions"
        self._proxy: str | None = None

    @property
    def account(self) -> tuple[str, str | None]:
        """Return server and key, for which pages are cached."""
        return self.base_url, self._api_key

    @property
    def account_id(self) -> str:
        """Return the id of server and key in a ledger."""
        return blake2b(f"{self.base_url}\n{self._api_key}".encode(), digest_size=8).hexdigest()

    def scrub(self, text: str) -> str:
        """Return the text without the API key, in case a server echoes it."""
        key = self._api_key or ""
        return text.replace(key, "[api key]") if len(key) >= MIN_SCRUBBED else text

    def _open(self) -> "AsyncOpenAI":
        if self._client is None:
            from openai import AsyncOpenAI, DefaultAioHttpClient, Timeout

            self._client = AsyncOpenAI(
                base_url=self.base_url,
                api_key=self._api_key or NO_KEY,
                max_retries=0,
                timeout=Timeout(None, connect=CONNECT_TIMEOUT_S),
                default_headers=self.headers,
                http_client=DefaultAioHttpClient(
                    follow_redirects=False, mounts=_NO_PROXY if is_loopback(self.base_url) else None
                ),
            )
            # The SDK reads these from OPENAI_* variables, which belong to another server's account.
            self._client.organization = self._client.project = None
        return self._client

    def _connect(self) -> "ClientSession":
        """Return the session for completions, without cookies.

        The replay limits the number and duration of calls.
        """
        if self._session is None:
            import httpx2
            from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

            client = self._open()
            given = {**client.auth_headers, **client.default_headers}
            tls = httpx2.create_ssl_context() if urlsplit(self.base_url).scheme == "https" else True
            self._proxy = _proxy_of(self.base_url)
            self._session = ClientSession(
                connector=TCPConnector(limit=0, ssl=tls, keepalive_timeout=_IDLE_S),
                headers={name: value for name, value in given.items() if isinstance(value, str)},
                cookie_jar=DummyCookieJar(),
                timeout=ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
            )
        return self._session

    async def complete(self, body: bytes) -> HttpResponse:
        """Send POST /chat/completions with a serialised body.

        Raises TransportFault where no response came. The SDK's typed method would walk every message of the
        prompt in Python.
        """
        import aiohttp

        session, named = self._session or self._connect(), None
        try:
            async with session.post(
                self._completions, data=body, allow_redirects=False, proxy=self._proxy
            ) as answer:
                named = answer.headers.get(GENERATION_HEADER)
                text = (await answer.read()).decode("utf-8", "replace")
        except (aiohttp.ClientError, OSError) as error:
            raise _fault(error, named) from None
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return HttpResponse(answer.status, self.scrub(text), headers)

    async def models(self, query: dict[str, object]) -> HttpResponse:
        """Send GET /models."""
        return await self._received(self._open().models.with_raw_response.list(extra_query=query))

    async def endpoints(self, model: str) -> HttpResponse:
        """Send GET /models/{author}/{slug}/endpoints, OpenRouter's list of a model's providers."""
        place = f"/models/{quote(model, safe='/:')}/endpoints"
        return await self._received(self._open().get(place, cast_to=object, options=_RAW))

    async def key(self) -> HttpResponse:
        """Send GET /key, OpenRouter's page on the key."""
        return await self._received(self._open().get("/key", cast_to=object, options=_RAW))

    async def credits(self) -> HttpResponse:
        """Send GET /credits, OpenRouter's page on the account."""
        return await self._received(self._open().get("/credits", cast_to=object, options=_RAW))

    async def generation(self, generation_id: str) -> HttpResponse:
        """Send GET /generation, OpenRouter's page on one answer."""
        wanted: RequestOptions = {**_RAW, "params": {"id": generation_id}}
        return await self._received(self._open().get("/generation", cast_to=object, options=wanted))

    async def _received(self, call: Any) -> HttpResponse:
        import openai

        try:
            response = (await call).http_response
        except openai.APIStatusError as error:
            response = error.response
        except (openai.APIConnectionError, OSError) as error:
            raise _fault(error) from None
        headers = {name.lower(): value for name, value in response.headers.items()}
        return HttpResponse(response.status_code, self.scrub(response.text), headers)

    async def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        if self._client is not None:
            await self._client.close()
            self._client = None
        if self._session is not None:
            await self._session.close()
            self._session = None
