"""Teachers behind the chat-completions wire: OpenRouter and any OpenAI-compatible server."""

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import orjson

from records.errors import TeacherError
from records.identity import request_key
from records.reply import FailureKind, TeacherReply
from teachers.catalogue import Catalogue
from teachers.completion import Completion, parse_json, raw_of, read_completion
from teachers.faults import Fault, fault_of_status
from teachers.presets import OFFLINE_PRICES
from teachers.prices import Price, nusd_to_usd, price_of, price_of_catalogue
from teachers.question import Question, require_redacted
from teachers.settings import OPENROUTER_URL, CompatibleSettings, OpenRouterSettings
from teachers.teacher import Asked
from teachers.transport import Received, Transport, TransportFault

SIMULATED_HEADER = "x-tracemill-simulated"


class ChatTeacher:
    """One model behind one server. Makes one attempt a call; retries and money are the replay's."""

    def __init__(
        self,
        settings: OpenRouterSettings | CompatibleSettings,
        transport: Transport,
        catalogue: Catalogue,
        redact: Callable[[str], str] = str,
    ) -> None:
        """`redact` is applied to every text a server answers before it is kept anywhere."""
        self.name = settings.name
        self.family = settings.family
        self.model = settings.model
        self.simulated = False
        self._settings = settings
        self._transport = transport
        self._catalogue = catalogue
        self._redact = redact
        self._price = _offline_price(settings)

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
        return request_key(
            prompt_id=question.prompt_id,
            model=self.model,
            provider=self._route(),
            sampling={"max_tokens": settings.max_tokens, "temperature": settings.temperature},
            reasoning=settings.reasoning.to_wire(),
            presentation=question.presentation,
            sample=sample,
        )

    async def check(self) -> None:
        """Reads the server's catalogue once. Raises TeacherError: no network, wrong key, unknown model,
        a model without tool calling, prices that cannot be read."""
        models = await self._catalogue.models()
        entry = models.get(self.model)
        if entry is None and (models or isinstance(self._settings, OpenRouterSettings)):
            raise TeacherError(
                f"{self._transport.base_url} has no model {self.model!r}",
                "a model id from its list",
                "correct `model` of the teacher",
            )
        if entry is None or isinstance(self._settings, CompatibleSettings):
            return
        try:
            listed = price_of_catalogue(entry)
        except ValueError:
            raise TeacherError(
                f"the prices of {self.model!r} cannot be read", "a price per token", "set `prices`"
            ) from None
        if listed.tools is False:
            raise TeacherError(
                f"{self.model!r} cannot call tools", "a model that can", "choose another teacher"
            )
        if self._settings.prices is None:
            self._price = listed

    def body(self, question: Question, sample: int) -> bytes:
        """The request as it goes over the wire."""
        settings = self._settings
        body: dict[str, Any] = {
            "model": self.model,
            "messages": question.wire_messages(),
            "max_tokens": settings.max_tokens,
        }
        if question.tools:
            body |= {"tools": question.wire_tools(), "tool_choice": "auto"}
        if settings.temperature is not None:
            body["temperature"] = settings.temperature
        if isinstance(settings, OpenRouterSettings):
            body |= _openrouter_body(settings, question, sample)
        return orjson.dumps(body)

    def bound_nusd(self, question: Question) -> int:
        """The most one attempt can cost: every byte of the request a token, at the dearest price."""
        return self._price.bound_nusd(len(self.body(question, 0)), self._settings.max_tokens)

    async def ask(self, question: Question, sample: int) -> Asked:
        """One attempt. Raises PrivacyError where the question was never redacted."""
        require_redacted([question])
        body = self.body(question, sample)
        started = time.perf_counter()
        try:
            received = await self._transport.complete(body)
        except TransportFault as fault:
            kind = FailureKind.TIMEOUT if fault.timed_out else FailureKind.NETWORK
            completion = Completion(fault=Fault(kind, retry=True, billed=fault.sent), raw=fault.kind)
            return self._asked(question, sample, completion, time.perf_counter() - started)
        latency_s = time.perf_counter() - started
        return self._asked(question, sample, self._read(received), latency_s, received)

    def _read(self, received: Received) -> Completion:
        if received.status == 200:
            return read_completion(received.text, received.headers, self._price, self._redact)
        body = parse_json(received.text)
        fault = fault_of_status(received.status, body, received.headers)
        return Completion(fault=fault, raw=raw_of(body, received.text, self._redact))

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
        if cost is None and fault is not None and not fault.billed:
            cost = 0
        reply = TeacherReply(
            step_id=question.step_id,
            request_key=self.request_key(question, sample),
            teacher=self.name,
            family=self.family,
            sample=sample,
            order=0,
            model=completion.model,
            provider=completion.provider,
            generation_id=completion.generation_id,
            action=completion.action,
            failure=fault.kind.value if fault else None,
            finish_reason=completion.finish_reason,
            usage=completion.usage,
            cost_usd=nusd_to_usd(cost or 0),
            latency_s=latency_s,
            presentation=question.presentation,
            prompt_id=question.prompt_id,
            simulated=received is not None and SIMULATED_HEADER in received.headers,
            raw=completion.raw,
        )
        if fault is None:
            return Asked(reply, cost)
        return Asked(reply, cost, fault.retry, fault.retry_after_s, fault.halt, fault.why)

    async def close(self) -> None:
        """Closes the connections to the server; teachers that share them open new ones."""
        await self._transport.close()


def _offline_price(settings: OpenRouterSettings | CompatibleSettings) -> Price:
    if settings.prices is not None:
        return price_of(settings.prices)
    known = OFFLINE_PRICES.get(settings.model) if isinstance(settings, OpenRouterSettings) else None
    return price_of(known) if known else Price()


def _openrouter_body(settings: OpenRouterSettings, question: Question, sample: int) -> dict[str, Any]:
    """OpenRouter's own fields: routing and data policy, reasoning, and the trace as its session."""
    provider: dict[str, Any] = {
        "data_collection": settings.data_collection,
        "require_parameters": settings.require_parameters,
    }
    if settings.provider:
        provider["only"] = [settings.provider]
    if settings.enforce_distillable_text:
        provider["enforce_distillable_text"] = True
    extra: dict[str, Any] = {"provider": provider, "session_id": question.trace_id[:256]}
    if settings.reasoning.to_wire():
        extra["reasoning"] = settings.reasoning.to_wire()
    if sample:
        extra["metadata"] = {"sample": str(sample)}
    return extra
