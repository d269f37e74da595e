"""What a server says before any money is spent: its models and their prices, and whose key this is."""

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
from tracemill.teachers.client.transport import Received, Transport, TransportFault
from tracemill.teachers.core.price import usd_up
from tracemill.teachers.pricing.price_book import PriceBook

_PAGE = 1000
_MAX_PAGES = 50
_ATTEMPTS = 4
_FIRST_WAIT_S = 0.5
"""Seconds before a page is asked for again; doubles: 3.5 s in all."""


class Catalogue:
    """The model list of one server; shared by the teachers that ask there."""

    def __init__(self, transport: Transport, key_page: bool, book: PriceBook) -> None:
        """`key_page` is True for servers that have `GET /key`; `book` remembers what was read lately."""
        self._transport = transport
        self._key_page = key_page
        self._book = book
        self._lock = asyncio.Lock()
        self._fault: TeacherError | None = None

    async def models(self) -> Mapping[str, Mapping[str, Any]]:
        """Entries by model id. Raises TeacherError where there is no network, the key is refused, or nothing
        is left on it."""
        async with self._lock:
            if self._fault is not None:  # what one teacher was told holds for the others
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
        """The endpoints that serve a model; none where the server has no such page. Raises TeacherError
        where there is no network."""
        if not self._key_page:
            return []
        async with self._lock:
            place = (self._transport.account, "endpoints", model)
            found = self._book.recent(place)
            if found is None:
                found = await self._read_endpoints(model)
                self._book.just_read(place, found)
            return found

    async def usage_nusd(self, fresh: bool) -> int | None:
        """Return what was ever charged to the key, else to its account; with `fresh` as it is now, else as
        read lately. None where the server does not say."""
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
            used = charged_usage_nusd(_data(received)) if received.status == 200 else None
            if used is not None:
                self._book.just_read(place, used)
                return used
        return None

    async def _get(self, page: Callable[..., Awaitable[Received]], *about: object) -> Received:
        """Return a page; one that the server cannot give at the moment is asked for again. Raises
        TeacherError where it does not answer."""
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

    def _require_no_redirect(self, received: Received) -> None:
        if received.redirected:
            raise TeacherError(
                f"{self._transport.base_url} answers with {received.redirected}",
                "a server that answers itself",
                "correct the base URL",
            )

    def _no_network(self, fault: TransportFault) -> TeacherError:
        return TeacherError(
            f"{self._transport.base_url} does not answer ({fault.kind})",
            "a server that speaks the OpenAI wire format",
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
        self._book.just_read((self._transport.account, "usage"), charged_usage_nusd(data))
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

    async def _page(self, offset: int) -> Received:
        query: dict[str, object] = {"limit": _PAGE, "offset": offset} if self._key_page else {}
        received = await self._get(self._transport.models, query)
        self._require_no_redirect(received)
        if received.status in (401, 403) and not _may_pass(received):
            raise self._refused()
        if received.status != 200 or not isinstance(_data(received), list):
            raise TeacherError(
                f"{self._transport.base_url}/models gave no model list (HTTP {received.status})",
                "a server that speaks the OpenAI wire format",
                "check the base URL",
            )
        return received


def charged_usage_nusd(data: object) -> int | None:
    """Return all that was ever charged by a page on a key (`usage`, and `byok_usage` at providers of one's
    own) or on an account (`total_usage`); None where it does not say."""
    page = data if isinstance(data, dict) else {}
    found = [page.get("usage", page.get("total_usage")), page.get("byok_usage") or 0]
    amounts = [each for each in found if isinstance(each, int | float) and not isinstance(each, bool)]
    if len(amounts) != len(found) or not all(math.isfinite(each) and each >= 0 for each in amounts):
        return None
    return sum(map(usd_up, amounts))


def _may_pass(received: Received) -> bool:
    """Whether the page may be given later: the server cannot at the moment, or it was not the API that
    refused."""
    if received.status in (401, 403):
        return not isinstance(parse_json(received.text), dict)
    return received.status in (408, 429) or received.status >= 500


def _broke_off(error: BaseException) -> bool:
    """Whether the server was there; one that is not, or that nobody knows, is told at once."""
    return isinstance(error, TransportFault) and error.sent


def _data(received: Received) -> object:
    body = parse_json(received.text)
    return body.get("data") if isinstance(body, dict) else None


def _total(received: Received) -> int:
    body = parse_json(received.text)
    total = body.get("total_count") if isinstance(body, dict) else None
    return total if isinstance(total, int) else 0
