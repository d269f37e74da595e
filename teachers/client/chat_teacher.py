"""Ask a model over the chat-completions API: OpenRouter or any OpenAI-compatible server."""

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from tracemill.records.identity import request_key
from tracemill.records.reply import FailureKind, TeacherReply, TeacherUsage
from tracemill.teachers.client.build_request import count_message_bytes, request_body
from tracemill.teachers.client.check_model import card_found, check_model_entry, require_usable
from tracemill.teachers.client.error_policy import CallFault, fault_of_error_status
from tracemill.teachers.client.model_catalogue import ModelCatalogue
from tracemill.teachers.client.parse_completion import (
    Completion,
    billed_cost_nanousd,
    counted_cost_nanousd,
    parse_json,
    raw_failed_completion,
    read_completion,
)
from tracemill.teachers.client.transport import GENERATION_HEADER, HttpResponse, Transport, TransportFault
from tracemill.teachers.core.bundled_prices import OFFLINE_DAY, find_bundled_price
from tracemill.teachers.core.price import Price, nanousd_to_usd, price_of
from tracemill.teachers.core.question import Question, require_redacted
from tracemill.teachers.core.teacher_protocol import AttemptResult, reply_to
from tracemill.teachers.core.teacher_settings import (
    OPENROUTER_URL,
    CompatibleTeacherSettings,
    OpenRouterTeacherSettings,
)
from tracemill.teachers.core.token_chain import ChainMemory
from tracemill.teachers.pricing.model_info import ModelCard
from tracemill.teachers.pricing.price_book import PriceBook

SIMULATED_HEADER = "x-tracemill-simulated"
_REFUSALS = 2
"""Refused prompts of a context in a row before no longer prompt of it is sent."""
MOST_BYTES_A_TOKEN = 16
"""Most bytes of a request per token, on average over a prompt: a server that counts fewer tokens did not
count all of them."""
BELIEVED = 0.99
"""Lowest ratio of a stated cost to the least possible price at which it is believed."""
ROUNDING_NANOUSD = 1_000
"""Most nano-USD that a stated cost may exceed tokens times price by rounding."""
UNKNOWN_PRICE = "nowhere: counted as free"


class ChatTeacher:
    """One model on one server. It makes one attempt a call; the replay handles retries and cost."""

    def __init__(
        self,
        settings: OpenRouterTeacherSettings | CompatibleTeacherSettings,
        transport: Transport,
        catalogue: ModelCatalogue,
        redact: Callable[[str], str] = str,
        book: PriceBook | None = None,
    ) -> None:
        """Set up the teacher without sending anything.

        `redact` is applied to every text of an answer before it is stored; `book` keeps prices.
        """
        self.name = settings.name
        self.family = settings.family
        self.model = settings.model
        self.simulated = False
        self._settings = settings
        self._transport = transport
        self._catalogue = catalogue
        self._redact = redact
        self._book = book or PriceBook()
        self._card, self.price_from = _known_card(settings, self._book, transport.base_url)
        self._chain = ChainMemory()
        self._too_long: dict[str, int] = {}
        self._refused: Counter[str] = Counter()

    def _route(self) -> str | None:
        """Return the pinned provider, with the server's name unless it is OpenRouter.

        This keeps answers of a stub server from being cached as real ones.
        """
        if isinstance(self._settings, CompatibleTeacherSettings):
            return self._transport.base_url
        if self._transport.base_url == OPENROUTER_URL:
            return self._settings.provider
        return f"{self._settings.provider or ''}@{urlsplit(self._transport.base_url).hostname}"

    def request_key(self, question: Question, sample: int) -> str:
        """Return the key under which an answer is bought; prices and data policy are no part of it."""
        settings = self._settings
        room = {} if settings.reasoning_room is None else {"reasoning_room": settings.reasoning_room}
        return request_key(
            prompt_id=question.prompt_id,
            model=self.model,
            provider=self._route(),
            sampling={"max_tokens": settings.max_tokens, "temperature": settings.temperature, **room},
            reasoning=settings.reasoning.to_wire(),
            presentation=question.presentation,
            sample=sample,
        )

    async def check(self) -> None:
        """Read the server's catalogue.

        Raises TeacherError for no network, a wrong key, an unknown model, one without tool calling or one
        that the settings do not fit, and unreadable prices.
        """
        models = await self._catalogue.models()
        settings, server = self._settings, self._transport.base_url
        if models or isinstance(settings, OpenRouterTeacherSettings):
            entry = check_model_entry(models, self.model, server)
            if isinstance(settings, OpenRouterTeacherSettings):
                await self._read_card(entry, settings)

    async def _read_card(self, entry: Mapping[str, Any], settings: OpenRouterTeacherSettings) -> None:
        endpoints = await self._catalogue.endpoints(self.model)
        card = card_found(entry, endpoints, settings)
        require_usable(card, settings)
        self._book.remember(self._transport.base_url, self.model, entry, endpoints)
        self._card = replace(card, price=self._card.price) if settings.prices is not None else card

    @property
    def price(self) -> Price:
        """Return the price from which upper bounds of calls are computed."""
        return self._card.price

    @property
    def context_tokens(self) -> int | None:
        """Return the maximum tokens of prompt and answer together, None if unknown."""
        return self._card.context_tokens

    @property
    def url(self) -> str:
        """Return the URL of its requests."""
        return f"{self._transport.base_url}/chat/completions"

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the headers of its requests, without the key."""
        return self._transport.headers

    def body(self, question: Question, sample: int) -> bytes:
        """Return the request as bytes."""
        return request_body(self._settings, question, sample, self._card, self._chain.before(question))

    def recall(self, question: Question, reply: TeacherReply) -> None:
        """Use a cached answer: its token count bounds later prompts of the context."""
        if reply.usage.prompt_tokens:
            self._chain.answered(question, reply.usage.prompt_tokens)

    def follow(self, question: Question) -> None:
        """Treat the question as answered: later prompts of the context follow it."""
        self._chain.answered(question, 0)

    def bound_nanousd(self, question: Question) -> int:
        """Return the most that one attempt can cost, in nano-USD.

        Prompt tokens are those counted at an earlier step of the context plus the bytes of the new text,
        else all bytes, limited by the model's context. The highest price counts.
        """
        before = self._chain.before(question)
        if before is not None and before.tokens:
            tokens = before.tokens + count_message_bytes(question.messages[before.messages :])
        else:
            tokens = len(request_body(self._settings, question, 0, self._card, before))
        longest = self._card.context_tokens
        bound = self._card.price.bound_nanousd(
            tokens if longest is None else min(tokens, longest), self._card.room(self._settings)
        )
        times = self._book.times_charged(self._transport.base_url, self.model)
        return bound if times == 1 else math.ceil(bound * times)

    async def ask(self, question: Question, sample: int) -> AttemptResult:
        """Make one attempt. Raises PrivacyError if the question was not redacted."""
        require_redacted([question])
        if (known := self._known_fault(question)) is not None:
            return replace(self._result(question, sample, Completion(fault=known), 0.0), sent=False)
        body = self.body(question, sample)
        started = time.perf_counter()
        try:
            received = await self._transport.complete(body)
        except TransportFault as fault:
            kind = FailureKind.TIMEOUT if fault.timed_out else FailureKind.NETWORK
            broken = "broke off" if fault.sent else "cannot be reached"
            why = "gave no answer in time" if fault.timed_out else f"{broken} ({fault.kind})"
            found = CallFault(kind, retry=True, billed=fault.sent, why=why)
            completion = Completion(fault=found, generation_id=fault.generation_id, raw=fault.kind)
            return self._result(question, sample, completion, time.perf_counter() - started)
        latency_s = time.perf_counter() - started
        completion = self._check_cost(self._read(received), len(body))
        self._learn(question, completion)
        return self._result(question, sample, completion, latency_s, received)

    def _known_fault(self, question: Question) -> CallFault | None:
        """Return why a question would fail like an earlier one of its context; None if it need not."""
        if self._is_too_long(question):
            return CallFault(FailureKind.CONTEXT_TOO_LONG)
        if self._refused[question.context] >= _REFUSALS:
            return CallFault(FailureKind.BAD_REQUEST, why="refuses the prompts of a session")
        return None

    def _is_too_long(self, question: Question) -> bool:
        """Return whether a beginning of this prompt was refused as too long, or fills the context."""
        before, longest = self._chain.before(question), self._card.context_tokens
        full = before is not None and longest is not None and before.tokens >= longest
        return full or len(question.messages) >= self._too_long.get(
            question.context, len(question.messages) + 1
        )

    def _learn(self, question: Question, completion: Completion) -> None:
        counted = completion.usage.prompt_tokens
        if counted or completion.action is not None:
            self._chain.answered(question, counted)
        fault = completion.fault
        if fault is not None and fault.kind is FailureKind.CONTEXT_TOO_LONG:
            context, size = question.context, len(question.messages)
            self._too_long[context] = min(size, self._too_long.get(context, size))
        if fault is not None and fault.kind is FailureKind.BAD_REQUEST:
            self._refused[question.context] += 1
        elif fault is None:
            self._refused.pop(question.context, None)

    def _read(self, received: HttpResponse) -> Completion:
        if received.status == 200:
            return read_completion(received.text, received.headers, self._card.price, self._redact)
        body = parse_json(received.text)
        fault = fault_of_error_status(received.status, body, received.headers)
        fault = replace(fault, why=fault.why or f"answers {received.status}")
        named = received.headers.get(GENERATION_HEADER)
        return Completion(
            fault=fault, generation_id=named, raw=raw_failed_completion(body, received.text, self._redact)
        )

    def _check_cost(self, completion: Completion, sent_bytes: int) -> Completion:
        """Compare a completion's stated cost with tokens times price.

        A cost below the provider's lowest price is replaced by tokens times price, or None if too few
        tokens were counted. A higher cost makes later reservations larger.
        """
        stated = completion.cost_nanousd
        if stated is None or not completion.cost_said or not self._card.priced:
            return completion
        least, counted = self.cost_range_nanousd(completion.provider, completion.usage, sent_bytes)
        if stated >= BELIEVED * least:
            if counted is not None and stated > counted + ROUNDING_NANOUSD:
                times = stated / counted
                self._book.charged(self._transport.base_url, self.model, times)
            return completion
        cost = None if counted is None else max(counted, stated)
        return replace(completion, cost_nanousd=cost, cost_said=False)

    def cost_range_nanousd(
        self, provider: str | None, usage: TeacherUsage, sent_bytes: int
    ) -> tuple[int, int | None]:
        """Return the provider's least charge for an answer, and tokens times price, in nano-USD.

        The latter is None if fewer tokens were counted than a request of this many bytes has.
        """
        fewest = sent_bytes // MOST_BYTES_A_TOKEN
        counted = counted_cost_nanousd(usage, self.price) if usage.prompt_tokens >= fewest else None
        likely = replace(usage, prompt_tokens=max(usage.prompt_tokens, fewest))
        return self._card.least_nanousd(provider, likely), counted

    def _result(
        self,
        question: Question,
        sample: int,
        completion: Completion,
        latency_s: float,
        received: HttpResponse | None = None,
    ) -> AttemptResult:
        fault = completion.fault
        cost = completion.cost_nanousd
        unbilled = fault is not None and not fault.billed and not cost
        if unbilled:
            cost = 0
        can_look = isinstance(self._settings, OpenRouterTeacherSettings) and not (
            unbilled or completion.cost_said
        )
        bill_id = completion.generation_id if can_look else None
        reply = replace(
            reply_to(self, question, sample, self.request_key(question, sample)),
            model=completion.model,
            provider=completion.provider,
            generation_id=completion.generation_id,
            action=completion.action,
            failure=fault.kind.value if fault else None,
            finish_reason=completion.finish_reason,
            usage=completion.usage,
            cost_usd=nanousd_to_usd(cost or 0),
            latency_s=latency_s,
            simulated=received is not None and SIMULATED_HEADER in received.headers,
            raw=completion.raw,
        )
        stated = cost or 0 if completion.cost_said else 0
        claimed = completion.claimed_nanousd
        if fault is None:
            return AttemptResult(
                reply, cost, bill_id=bill_id or "", stated_nanousd=stated, claimed_nanousd=claimed
            )
        why = fault.why or f"answers with a fault ({fault.kind})"
        wait_s = fault.retry_after_s
        return AttemptResult(
            reply,
            cost,
            fault.retry,
            wait_s,
            fault.halt,
            why,
            fault.account,
            bill_id or "",
            stated_nanousd=stated,
            claimed_nanousd=claimed,
        )

    async def billed_nanousd(self, bill_id: str) -> int | None:
        """Return the price of an answer on OpenRouter's page, in nano-USD; None if it has none yet."""
        try:
            received = await self._transport.generation(bill_id)
        except TransportFault:
            return None
        return billed_cost_nanousd(received.text) if received.status == 200 else None

    @property
    def account(self) -> str:
        """Return an id of server and key; "" for a server that keeps no account."""
        return self._transport.account_id if isinstance(self._settings, OpenRouterTeacherSettings) else ""

    async def usage_nanousd(self, fresh: bool) -> int | None:
        """Return the total charge on OpenRouter's page of the key, else of the account."""
        return await self._catalogue.usage_nanousd(fresh)

    async def close(self) -> None:
        """Close the connections to the server; teachers that share them open new ones."""
        await self._transport.close()


def _known_card(
    settings: OpenRouterTeacherSettings | CompatibleTeacherSettings, book: PriceBook, server: str
) -> tuple[ModelCard, str]:
    """Return the known card of the model, without network, and its origin.

    Prices of the settings come first, then those read last, then the bundled table.
    """
    if settings.prices is not None:
        return ModelCard(price_of(settings.prices)), "the configuration"
    if isinstance(settings, CompatibleTeacherSettings):
        return ModelCard(Price()), "free: a server of one's own"
    if (kept := book.card(server, settings.model, settings.provider)) is not None:
        return kept[0], f"the server on {kept[1]}"
    known = find_bundled_price(settings.model)
    return ModelCard(known or Price()), f"the table of {OFFLINE_DAY}" if known else UNKNOWN_PRICE
