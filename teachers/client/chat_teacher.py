"""Teachers behind the chat-completions wire: OpenRouter and any OpenAI-compatible server."""

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from tracemill.records.identity import request_key
from tracemill.records.reply import FailureKind, TeacherReply, TeacherUsage
from tracemill.teachers.client.build_request import count_message_bytes, count_request_bytes, request_body
from tracemill.teachers.client.check_model import card_found, check_model_entry, require_usable
from tracemill.teachers.client.error_policy import Fault, fault_of_error_status
from tracemill.teachers.client.model_catalogue import Catalogue
from tracemill.teachers.client.parse_completion import (
    Completion,
    billed_cost_nusd,
    counted_cost_nusd,
    parse_json,
    raw_failed_completion,
    read_completion,
)
from tracemill.teachers.client.transport import GENERATION_HEADER, Received, Transport, TransportFault
from tracemill.teachers.core.bundled_prices import OFFLINE_DAY, find_bundled_price
from tracemill.teachers.core.price import Price, nusd_to_usd, price_of
from tracemill.teachers.core.question import Question, require_redacted
from tracemill.teachers.core.teacher_protocol import Asked, reply_to
from tracemill.teachers.core.teacher_settings import OPENROUTER_URL, CompatibleSettings, OpenRouterSettings
from tracemill.teachers.core.token_chain import ChainMemory
from tracemill.teachers.pricing.model_info import ModelCard
from tracemill.teachers.pricing.price_book import PriceBook

SIMULATED_HEADER = "x-tracemill-simulated"
_REFUSALS = 2
"""Prompts of a context that are refused, one after the other, before no longer one of it is sent."""
MOST_BYTES_A_TOKEN = 16
"""Bytes of a request that one token stands for at most, on average over a prompt: a server that counts fewer
tokens has not counted them."""
BELIEVED = 0.99
"""The share of the least price at which a stated cost is believed."""
ROUNDING_NUSD = 1_000
"""What a stated cost may be above tokens times price without the price being another."""
UNKNOWN_PRICE = "nowhere: counted as free"


class ChatTeacher:
    """One model behind one server. Makes one attempt a call; retries and money are the replay's."""

    def __init__(
        self,
        settings: OpenRouterSettings | CompatibleSettings,
        transport: Transport,
        catalogue: Catalogue,
        redact: Callable[[str], str] = str,
        book: PriceBook | None = None,
    ) -> None:
        """`redact` is applied to every text a server answers before it is kept anywhere; `book` keeps
        what the catalogue said."""
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
        """The pinned provider; of a server other than OpenRouter also which one it is, so that what
        a stand-in answered is never taken for an answer of the real thing."""
        if isinstance(self._settings, CompatibleSettings):
            return self._transport.base_url
        if self._transport.base_url == OPENROUTER_URL:
            return self._settings.provider
        return f"{self._settings.provider or ''}@{urlsplit(self._transport.base_url).hostname}"

    def request_key(self, question: Question, sample: int) -> str:
        """What the answer is bought under: neither prices nor data policy are part of it."""
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
        """Reads the server's catalogue once. Raises TeacherError: no network, wrong key, unknown model,
        a model without tool calling, or one that the settings do not fit; prices that cannot be read."""
        models = await self._catalogue.models()
        settings, server = self._settings, self._transport.base_url
        if models or isinstance(settings, OpenRouterSettings):
            entry = check_model_entry(models, self.model, server)
            if isinstance(settings, OpenRouterSettings):
                await self._read_card(entry, settings)

    async def _read_card(self, entry: Mapping[str, Any], settings: OpenRouterSettings) -> None:
        endpoints = await self._catalogue.endpoints(self.model)
        card = card_found(entry, endpoints, settings)
        require_usable(card, settings)
        self._book.remember(self._transport.base_url, self.model, entry, endpoints)
        self._card = replace(card, price=self._card.price) if settings.prices is not None else card

    @property
    def price(self) -> Price:
        """The price list calls are bounded by."""
        return self._card.price

    @property
    def context_tokens(self) -> int | None:
        """The longest prompt and answer together, None where nobody said."""
        return self._card.context_tokens

    @property
    def url(self) -> str:
        """Where its requests go."""
        return f"{self._transport.base_url}/chat/completions"

    @property
    def headers(self) -> Mapping[str, str]:
        """What goes with its requests beside the key."""
        return self._transport.headers

    def body(self, question: Question, sample: int) -> bytes:
        """The request as it goes over the wire."""
        return request_body(self._settings, question, sample, self._card, self._chain.before(question))

    def recall(self, question: Question, reply: TeacherReply) -> None:
        """An answer bought before: later steps of its context are bound by what was counted for it."""
        if reply.usage.prompt_tokens:
            self._chain.answered(question, reply.usage.prompt_tokens)

    def follow(self, question: Question) -> None:
        """Goes on as if the question had been answered: the next one of its context is put like one that
        comes after it."""
        self._chain.answered(question, 0)

    def bound_nusd(self, question: Question) -> int:
        """The most one attempt can cost, at the dearest price: the tokens the teacher counted at an
        earlier step of the context and every byte of what is new, a token each; bytes alone where there is
        none. A model takes no prompt that is longer than its context."""
        before = self._chain.before(question)
        if before is not None and before.tokens:
            tokens = before.tokens + count_message_bytes(question.messages[before.messages :])
        else:
            tokens = count_request_bytes(self._settings, question, 0, self._card, before)
        longest = self._card.context_tokens
        bound = self._card.price.bound_nusd(
            tokens if longest is None else min(tokens, longest), self._card.room(self._settings)
        )
        times = self._book.times_charged(self._transport.base_url, self.model)
        return bound if times == 1 else math.ceil(bound * times)

    async def ask(self, question: Question, sample: int) -> Asked:
        """One attempt. Raises PrivacyError where the question was never redacted."""
        require_redacted([question])
        if (known := self._known_fault(question)) is not None:
            return replace(self._asked(question, sample, Completion(fault=known), 0.0), sent=False)
        body = self.body(question, sample)
        started = time.perf_counter()
        try:
            received = await self._transport.complete(body)
        except TransportFault as fault:
            kind = FailureKind.TIMEOUT if fault.timed_out else FailureKind.NETWORK
            broken = "broke off" if fault.sent else "cannot be reached"
            why = "gave no answer in time" if fault.timed_out else f"{broken} ({fault.kind})"
            found = Fault(kind, retry=True, billed=fault.sent, why=why)
            completion = Completion(fault=found, generation_id=fault.generation_id, raw=fault.kind)
            return self._asked(question, sample, completion, time.perf_counter() - started)
        latency_s = time.perf_counter() - started
        completion = self._compared(self._read(received), len(body))
        self._learn(question, completion)
        return self._asked(question, sample, completion, latency_s, received)

    def _known_fault(self, question: Question) -> Fault | None:
        """Why a question would fail like one before it in its context; None where it may be answered."""
        if self._is_too_long(question):
            return Fault(FailureKind.CONTEXT_TOO_LONG)
        if self._refused[question.context] >= _REFUSALS:
            return Fault(FailureKind.BAD_REQUEST, why="refuses the prompts of a session")
        return None

    def _is_too_long(self, question: Question) -> bool:
        """Whether the model has refused a beginning of this prompt as too long, or counted one that fills
        its context."""
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

    def _read(self, received: Received) -> Completion:
        if received.status == 200:
            return read_completion(received.text, received.headers, self._card.price, self._redact)
        body = parse_json(received.text)
        fault = fault_of_error_status(received.status, body, received.headers)
        fault = replace(fault, why=fault.why or f"answers {received.status}")
        named = received.headers.get(GENERATION_HEADER)
        return Completion(
            fault=fault, generation_id=named, raw=raw_failed_completion(body, received.text, self._redact)
        )

    def _compared(self, completion: Completion, sent_bytes: int) -> Completion:
        """The completion with its stated cost held against tokens times price. A cost below what its
        provider can charge at least is not taken for the truth: the tokens at our price stand in its place,
        nothing where so few cannot be all of the prompt. One above makes later reservations larger."""
        stated = completion.cost_nusd
        if stated is None or not completion.cost_said or not self._card.priced:
            return completion
        least, counted = self.cost_range_nusd(completion.provider, completion.usage, sent_bytes)
        if stated >= BELIEVED * least:
            if counted is not None and stated > counted + ROUNDING_NUSD:
                times = stated / counted
                self._book.charged(self._transport.base_url, self.model, times)
            return completion
        cost = None if counted is None else max(counted, stated)
        return replace(completion, cost_nusd=cost, cost_said=False)

    def cost_range_nusd(
        self, provider: str | None, usage: TeacherUsage, sent_bytes: int
    ) -> tuple[int, int | None]:
        """Return the least that the provider of an answer can charge for its tokens, and what they come to at
        our price; None for that where fewer were counted than a request of so many bytes has."""
        fewest = sent_bytes // MOST_BYTES_A_TOKEN
        counted = counted_cost_nusd(usage, self.price) if usage.prompt_tokens >= fewest else None
        likely = replace(usage, prompt_tokens=max(usage.prompt_tokens, fewest))
        return self._card.least_nusd(provider, likely), counted

    def _asked(
        self,
        question: Question,
        sample: int,
        completion: Completion,
        latency_s: float,
        received: Received | None = None,
    ) -> Asked:
        fault = completion.fault
        cost = completion.cost_nusd
        unbilled = fault is not None and not fault.billed and not cost
        if unbilled:
            cost = 0
        can_look = isinstance(self._settings, OpenRouterSettings) and not (unbilled or completion.cost_said)
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
            cost_usd=nusd_to_usd(cost or 0),
            latency_s=latency_s,
            simulated=received is not None and SIMULATED_HEADER in received.headers,
            raw=completion.raw,
        )
        stated = cost or 0 if completion.cost_said else 0
        claimed = completion.claimed_nusd
        if fault is None:
            return Asked(reply, cost, bill_id=bill_id or "", stated_nusd=stated, claimed_nusd=claimed)
        why = fault.why or f"answers with a fault ({fault.kind})"
        wait_s = fault.retry_after_s
        return Asked(
            reply,
            cost,
            fault.retry,
            wait_s,
            fault.halt,
            why,
            fault.account,
            bill_id or "",
            stated_nusd=stated,
            claimed_nusd=claimed,
        )

    async def billed_nusd(self, bill_id: str) -> int | None:
        """What OpenRouter's page on the answer says, looked up once; it may come seconds after the answer."""
        try:
            received = await self._transport.generation(bill_id)
        except TransportFault:
            return None
        return billed_cost_nusd(received.text) if received.status == 200 else None

    @property
    def account(self) -> str:
        """What server and key are known by; "" for a server that keeps no account."""
        return self._transport.account_id if isinstance(self._settings, OpenRouterSettings) else ""

    async def usage_nusd(self, fresh: bool) -> int | None:
        """Return what OpenRouter's page on the key, else on the account, says that was charged."""
        return await self._catalogue.usage_nusd(fresh)

    async def close(self) -> None:
        """Closes the connections to the server; teachers that share them open new ones."""
        await self._transport.close()


def _known_card(
    settings: OpenRouterSettings | CompatibleSettings, book: PriceBook, server: str
) -> tuple[ModelCard, str]:
    """What is known without a network, and from where: the prices of the settings, else those read last,
    else the table that ships."""
    if settings.prices is not None:
        return ModelCard(price_of(settings.prices)), "the configuration"
    if isinstance(settings, CompatibleSettings):
        return ModelCard(Price()), "free: a server of one's own"
    if (kept := book.card(server, settings.model, settings.provider)) is not None:
        return kept[0], f"the server on {kept[1]}"
    known = find_bundled_price(settings.model)
    return ModelCard(known or Price()), f"the table of {OFFLINE_DAY}" if known else UNKNOWN_PRICE
