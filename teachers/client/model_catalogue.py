"""Read what a server says before any money is spent: models, prices, and the key's state."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tenacity import (
    AsyncRetrying,
    retry_if_exception,
    retry_if_result,
    stop_after_attempt,
    wait_exponential,
)

from tracemill.records.errors import TeacherError
from tracemill.teachers.client.parse_completion import parse_json
from tracemill.teachers.client.transport import HttpResponse, Transport, TransportFault
from tracemill.teachers.core.price import usd_up
from tracemill.teachers.pricing.price_book import PriceBook

_PAGE = 1000
_MAX_PAGES = 50
_ATTEMPTS = 4
_FIRST_WAIT_S = 0.5
"""Seconds before a page is requested again; doubles: 3.5 s in all."""


class ModelCatalogue:
    """The model list of one server, shared by its teachers."""

    def __init__(self, transport: Transport, key_page: bool, book: PriceBook) -> None:
        """Set up without a request.

        `key_page` is True for servers that have `GET /key`; `book` remembers recent pages.
        """
        self._transport = transport
        self._key_page = key_page
        self._book = book
        self._lock = asyncio.Lock()
        self._fault: TeacherError | None = None

    async def models(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the catalogue's entries by model id.

        Raises TeacherError if there is no network, the key is refused, or its limit is reached.
        """
        async with self._lock:
            if self._fault is not None:  # it holds for every teacher of the server
                raise self._fault
            place = (self._transport.account, "models")
            found = self._book.recent(place)
            try:
                if found is None:
                    if self._key_page:
                        await self._check_key()
                    found = await self._read_models()
                    self._book.just_read(place, found)
            except TeacherError as fault:
                self._fault = fault
                raise
            return found

    async def endpoints(self, model: str) -> list[Mapping[str, Any]]:
        """Return the endpoints that serve a model; none if the server has no such page.

        Raises TeacherError if there is no network.
        """
        if not self._key_page:
            return []
        async with self._lock:
            place = (self._transport.account, "endpoints", model)
            found = self._book.recent(place)
            if found is None:
                found = await self._read_endpoints(model)
                self._book.just_read(place, found)
            return found

    async def usage_nanousd(self, fresh: bool) -> int | None:
        """Return the total charge of the key, else of its account; None if unknown.

        It is a recent reading unless `fresh`.
        """
        if not self._key_page:
            return None
        place = (self._transport.account, "usage")
        if not fresh:
            return self._book.recent(place)
        for page in (self._transport.key, self._transport.credits):
            try:
                received = await page()
            except TransportFault:
                return None
            used = charged_usage_nanousd(_data(received)) if received.status == 200 else None
            if used is not None:
                self._book.just_read(place, used)
                return used
        return None

    async def _get(self, page: Callable[..., Awaitable[HttpResponse]], *about: object) -> HttpResponse:
        """Return a page, with retries. Raises TeacherError if the server does not answer."""
        retrying = AsyncRetrying(
            stop=stop_after_attempt(_ATTEMPTS),
            wait=wait_exponential(multiplier=_FIRST_WAIT_S),
            retry=retry_if_result(_may_pass) | retry_if_exception(_broke_off),
            retry_error_callback=lambda state: state.outcome and state.outcome.result(),
        )
        try:
            return await retrying(page, *about)
        except TransportFault as fault:
            raise self._no_network(fault) from None

    async def _read_endpoints(self, model: str) -> list[Mapping[str, Any]]:
        received = await self._get(self._transport.endpoints, model)
        data = _data(received) if received.status == 200 else None
        found = data.get("endpoints") if isinstance(data, dict) else None
        return [e for e in found if isinstance(e, dict)] if isinstance(found, list) else []

    def _require_no_redirect(self, received: HttpResponse) -> None:
        if received.redirected:
            raise TeacherError(
                f"{self._transport.base_url} answers with {received.redirected}",
                "a server without redirects",
                "correct the base URL",
            )

    def _no_network(self, fault: TransportFault) -> TeacherError:
        return TeacherError(
            f"{self._transport.base_url} does not answer ({fault.kind})",
            "a server with OpenAI's API",
            "check the network and the base URL",
        )

    def _refused(self) -> TeacherError:
        return TeacherError(
            f"{self._transport.base_url} refused the API key", "a valid key", "set it in the environment"
        )

    async def _check_key(self) -> None:
        received = await self._get(self._transport.key)
        self._require_no_redirect(received)
        if received.status == 401 and not _may_pass(received):
            raise self._refused()
        data = _data(received)
        self._book.just_read((self._transport.account, "usage"), charged_usage_nanousd(data))
        left = data.get("limit_remaining") if isinstance(data, dict) else None
        if isinstance(left, int | float) and left <= 0:
            raise TeacherError(
                "the API key has reached its spending limit", "credit on it", "raise the limit of the key"
            )

    async def _read_models(self) -> dict[str, Mapping[str, Any]]:
        found: dict[str, Mapping[str, Any]] = {}
        for _ in range(_MAX_PAGES):
            received = await self._page(len(found))
            data = _data(received)
            entries = [e for e in data if isinstance(e, dict)] if isinstance(data, list) else []
            fresh = {str(e["id"]): e for e in entries if "id" in e and e["id"] not in found}
            found.update(fresh)
            if not fresh or len(found) >= _total(received):
                break
        return found

    async def _page(self, offset: int) -> HttpResponse:
        query: dict[str, object] = {"limit": _PAGE, "offset": offset} if self._key_page else {}
        received = await self._get(self._transport.models, query)
        self._require_no_redirect(received)
        if received.status in (401, 403) and not _may_pass(received):
            raise self._refused()
        if received.status != 200 or not isinstance(_data(received), list):
            raise TeacherError(
                f"{self._transport.base_url}/models gave no model list (HTTP {received.status})",
                "a server with OpenAI's API",
                "check the base URL",
            )
        return received


def charged_usage_nanousd(data: object) -> int | None:
    """Return the total charge on a page, in nano-USD; None if it has none.

    A page on a key has `usage`, and `byok_usage` at one's own providers; one on an account has `total_usage`.
    """
    page = data if isinstance(data, dict) else {}
    found = [page.get("usage", page.get("total_usage")), page.get("byok_usage") or 0]
    amounts = [each for each in found if isinstance(each, int | float) and not isinstance(each, bool)]
    if len(amounts) != len(found) or not all(math.isfinite(each) and each >= 0 for each in amounts):
        return None
    return sum(map(usd_up, amounts))


def _may_pass(received: HttpResponse) -> bool:
    """Return whether the page may be available later.

    It may if the server cannot answer now, or if something other than the API refused.
    """
    if received.status in (401, 403):
        return not isinstance(parse_json(received.text), dict)
    return received.status in (408, 429) or received.status >= 500


def _broke_off(error: BaseException) -> bool:
    """Return whether the request was sent before the error; an unsent one is reported at once."""
    return isinstance(error, TransportFault) and error.sent


def _data(received: HttpResponse) -> object:
    body = parse_json(received.text)
    return body.get("data") if isinstance(body, dict) else None


def _total(received: HttpResponse) -> int:
    body = parse_json(received.text)
    total = body.get("total_count") if isinstance(body, dict) else None
    return total if isinstance(total, int) else 0
