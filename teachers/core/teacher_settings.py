"""Define the settings of teachers, budget, replay and gate; light to import."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from tracemill.records.families import family_of
from tracemill.records.frozen_model import FrozenModel

OPENROUTER_URL = "https://openrouter.ai/api/v1"
REASONING_ROOM = 8192
OPENROUTER_URL_VARIABLE = "TRACEMILL_OPENROUTER_URL"


class PriceTierSettings(FrozenModel):
    """Prices for every token of a prompt longer than `above_tokens`; unset ones stay."""

    above_tokens: int = Field(ge=0, description="minimum prompt tokens (exclusive) of these prices")
    prompt_usd: Decimal | None = Field(default=None, ge=0)
    completion_usd: Decimal | None = Field(default=None, ge=0)
    cache_read_usd: Decimal | None = Field(default=None, ge=0)
    cache_write_usd: Decimal | None = Field(default=None, ge=0)


class PriceSettings(FrozenModel):
    """Prices of a model in USD per million tokens; cache prices default to the prompt price."""

    prompt_usd: Decimal = Field(default=Decimal(0), ge=0, description="USD per million prompt tokens")
    completion_usd: Decimal = Field(default=Decimal(0), ge=0, description="USD per million answer tokens")
    cache_read_usd: Decimal | None = Field(
        default=None, ge=0, description="USD per million cached tokens read"
    )
    cache_write_usd: Decimal | None = Field(
        default=None, ge=0, description="USD per million tokens written to the cache"
    )
    request_usd: Decimal = Field(default=Decimal(0), ge=0, description="USD per call")
    tiers: tuple[PriceTierSettings, ...] = Field(default=(), description="other prices of long prompts")


class ReasoningSettings(FrozenModel):
    """Amount of reasoning before an answer, constant within a run. All unset: the model's default."""

    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    max_tokens: int | None = Field(default=None, ge=0, description="reasoning tokens, part of max_tokens")
    enabled: bool | None = None
    exclude: bool | None = Field(default=None, description="reason, but do not return the reasoning")

    def to_wire(self) -> dict[str, object]:
        """Return the `reasoning` object of a request: only the settings that are set."""
        return self.model_dump(exclude_none=True)


@dataclass(frozen=True, slots=True)
class DataPolicy:
    """Data policy that is requested of the server.

    `provider` is the pinned one, None if any may answer. `data_collection` is whether providers may keep
    prompts, None if no policy is requested. `distillable` is True if only endpoints whose author allows
    text distillation may answer.
    """

    provider: str | None = None
    data_collection: Literal["deny", "allow"] | None = None
    distillable: bool = False


_NEWER = frozenset({"reasoning_room", "terms"})


class BaseTeacherSettings(FrozenModel):
    """Settings of any teacher: one entry of `[[teachers]]`.

    A teacher type is a subclass with further keys, whose `type` has its name as default; `sends_to` returns
    the server that receives text. `name` is unique in a run; `family` defaults to that of the model id.
    """

    simulated: ClassVar[bool] = False
    """Whether no model answers: rows are marked, and a release of them is not published."""
    stand_in: ClassVar[str] = ""
    """What the answers are where `simulated`: `simulated` or `written by hand`."""
    vendor_answers: ClassVar[bool] = True
    """Whether the vendor of the model answers, or sells the answers: its terms hold for them."""

    name: str = Field(default="", description="name in rows and tables; empty: the model id")
    model: str = Field(min_length=1, description="pinned model id; a floating alias would mix two models")
    family: str = Field(default="", description="vendor family; empty: that of the model id")
    max_tokens: int = Field(
        default=4096, ge=1, description="maximum tokens of an answer without its reasoning"
    )
    reasoning_room: int | None = Field(
        default=None,
        ge=0,
        description="reasoning tokens on top of max_tokens; unset: 8192 if the model reasons",
    )
    temperature: float | None = Field(default=None, ge=0, le=2, description="unset: the model's default")
    reasoning: ReasoningSettings = ReasoningSettings()
    logprobs: int | None = Field(
        default=None,
        ge=0,
        le=20,
        description="number of alternatives per token with stored log probabilities",
    )
    prices: PriceSettings | None = Field(default=None, description="replaces the provider's list prices")
    terms: Literal["allowed", "forbidden", "unknown"] | None = Field(
        default=None, description="terms on training on its answers; unset: those of its family"
    )
    type: str = Field(default="", description="teacher type: a name in the registry")

    @abstractmethod
    def sends_to(self, environ: Mapping[str, str]) -> str | None:
        """Return the URL of the server that receives text; None if nothing leaves this process.

        Consent is asked for this URL, so it must be the one that the teacher really uses.
        """

    def reasoning_tokens(self, reasons: bool) -> int:
        """Return the tokens allowed on top of `max_tokens`; `reasons` is whether the model reasons."""
        if self.reasoning_room is not None:
            return self.reasoning_room
        given = self.reasoning
        if given.max_tokens is not None or given.enabled is False or given.effort == "none":
            return 0
        return REASONING_ROOM if reasons or given.enabled or given.effort is not None else 0

    def stays_here(self) -> bool:
        """Return whether a local server is configured to forward nothing, so that no consent is needed."""
        return False

    def data_policy(self) -> DataPolicy:
        """Return the data policy that is requested of the server."""
        return DataPolicy()

    def key_variable(self) -> str | None:
        """Return the environment variable that holds the API key, None if none is needed."""
        return None

    def catalogue_url(self, environ: Mapping[str, str]) -> str | None:
        """Return the server whose price list is kept with a run, None if there is no such list."""
        return None

    @model_serializer(mode="wrap")
    def _without_unset(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out unset settings that are newer than stored results, so that those stay valid."""
        found = dump(self)
        return {key: value for key, value in found.items() if value is not None or key not in _NEWER}

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, data: object) -> object:
        if isinstance(data, dict) and isinstance(data.get("model"), str):
            data = dict(data)
            data["name"] = data.get("name") or data["model"]
            data["family"] = data.get("family") or family_of(data["model"])
        return data

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.type != (own := type(self).model_fields["type"].default):
            raise ValueError(f"type is {own!r} here (found {self.type!r})")
        if (self.reasoning.max_tokens or 0) >= self.max_tokens:
            raise ValueError("reasoning.max_tokens is part of max_tokens and must leave room for the answer")
        if self.model.startswith("~"):
            raise ValueError("model is an alias that floats: give the id it stands for")
        return self


class OpenRouterTeacherSettings(BaseTeacherSettings):
    """A model of OpenRouter, or of a server with its API."""

    type: str = "openrouter"
    provider: str | None = Field(default=None, description="pinned provider (`provider.only`)")
    api_key_env: str = Field(default="OPENROUTER_API_KEY", description="environment variable of the key")
    base_url: str | None = Field(
        default=None, description=f"unset: {OPENROUTER_URL_VARIABLE}, then OpenRouter"
    )
    attribution_url: str | None = Field(
        default=None, description="HTTP-Referer, for the app page on OpenRouter"
    )
    data_collection: Literal["deny", "allow"] = "deny"
    enforce_distillable_text: bool = Field(
        default=False, description="route only to models that allow distillation"
    )
    require_parameters: bool = Field(
        default=True, description="route only to providers that support every parameter"
    )
    local: bool = Field(default=False, description="a server on this machine that forwards nothing")

    def sends_to(self, environ: Mapping[str, str]) -> str:
        """Return `base_url`, else the URL from the environment, else the API's."""
        return (self.base_url or environ.get(OPENROUTER_URL_VARIABLE) or OPENROUTER_URL).rstrip("/")

    def stays_here(self) -> bool:
        """Return `local`: even a server on this machine may forward its requests."""
        return self.local

    def data_policy(self) -> DataPolicy:
        """Return the policy that every request has under `provider`."""
        return DataPolicy(self.provider or None, self.data_collection, self.enforce_distillable_text)

    def key_variable(self) -> str:
        """Return the variable of the key, which OpenRouter always requires."""
        return self.api_key_env

    def catalogue_url(self, environ: Mapping[str, str]) -> str:
        """Return the same server, which lists its models and their prices."""
        return self.sends_to(environ)


class CompatibleTeacherSettings(BaseTeacherSettings):
    """A model of any other OpenAI-compatible server (vLLM, llama.cpp, Ollama); free by default."""

    vendor_answers: ClassVar[bool] = False

    type: str = "openai_compatible"
    base_url: str = Field(min_length=1, description="server URL, including /v1")
    api_key_env: str | None = Field(default=None, description="environment variable of the key, if any")
    local: bool = Field(default=False, description="a server on this machine that forwards nothing")

    def sends_to(self, environ: Mapping[str, str]) -> str:
        """Return `base_url`."""
        return self.base_url

    def stays_here(self) -> bool:
        """Return `local`: even a server on this machine may forward its requests."""
        return self.local

    def key_variable(self) -> str | None:
        """Return the variable of the key, None if the server needs none."""
        return self.api_key_env


class SimulatedTeacherSettings(BaseTeacherSettings):
    """A deterministic simulated teacher that ships with the product; its rows are marked as simulated."""

    simulated: ClassVar[bool] = True
    stand_in: ClassVar[str] = "simulated"
    vendor_answers: ClassVar[bool] = False

    type: str = "simulated"
    seed: int = 0
    latency_s: float = Field(default=0.0, ge=0, description="latency of an answer in seconds")

    def sends_to(self, environ: Mapping[str, str]) -> None:
        """Return None: it answers in this process."""


class RecordedTeacherSettings(BaseTeacherSettings):
    """A model of a table of recorded answers; sends nothing, and costs nothing unless `prices` are given."""

    vendor_answers: ClassVar[bool] = False

    type: str = "recorded"
    path: Path = Field(description="table of recorded answers (JSONL, also gzipped)")

    def sends_to(self, environ: Mapping[str, str]) -> None:
        """Return None: the table is a file."""


class HandwrittenTeacherSettings(BaseTeacherSettings):
    """A made-up teacher whose answers a person wrote for an example; its rows are marked as simulated."""

    simulated: ClassVar[bool] = True
    stand_in: ClassVar[str] = "written by hand"
    vendor_answers: ClassVar[bool] = False

    type: str = "handwritten"
    path: Path = Field(description="folder of answers, one YAML file per session")

    def sends_to(self, environ: Mapping[str, str]) -> None:
        """Return None: the answers are files."""


class BudgetSettings(FrozenModel):
    """Hard caps in USD on the sum of spent and reserved money; None means no cap of that kind."""

    max_total_usd: Decimal = Field(ge=0, le=1_000_000, description="cap of the run, over all its restarts")
    max_day_usd: Decimal | None = Field(
        default=None, ge=0, le=1_000_000, description="cap of a UTC day, over all runs of a ledger"
    )
    max_trace_usd: Decimal | None = Field(
        default=None, ge=0, le=1_000_000, description="cap of a trace, over all runs of a ledger"
    )


_NOT_IN_REQUESTS = {
    *("concurrency", "deadline_minutes", "grace_s"),
    *("max_paid_attempts", "reconcile_after_s"),
}


class ReplaySettings(FrozenModel):
    """Settings of a replay: concurrency, retries, stopping and deadlines."""

    concurrency: int = Field(default=32, ge=1, le=1024, description="maximum calls in flight")
    samples: int = Field(default=1, ge=1, le=16, description="answers per teacher and step")
    attempt_timeout_s: float = Field(default=180.0, gt=0, description="seconds until an attempt is cut off")
    max_attempts: int = Field(default=5, ge=1, le=20, description="attempts at one answer")
    max_paid_attempts: int = Field(
        default=2,
        ge=1,
        description="maximum paid but unreadable answers to one question, over all runs",
    )
    backoff_s: float = Field(default=0.5, ge=0, description="first wait; doubles, up to max_backoff_s")
    max_backoff_s: float = Field(default=30.0, ge=0, description="longest wait without a Retry-After")
    max_retry_after_s: float = Field(
        default=300.0, ge=0, description="a call with a longer Retry-After is given up"
    )
    grace_s: float | None = Field(
        default=None,
        ge=0,
        description="seconds calls in flight have to finish after an interrupt; unset: attempt_timeout_s",
    )
    write_off_after_s: float = Field(
        default=86_400.0,
        ge=0,
        description="age in seconds at which a call left open by a crash is booked as spent",
    )
    reconcile_after_s: float = Field(
        default=600.0,
        ge=0,
        description="age in seconds at which unpriced calls are reconciled with the account's usage",
    )
    stop: Literal["off", "lossless", "tiered"] = Field(
        default="lossless", description="rule of early stopping: no further teacher once the label is certain"
    )
    deadline_minutes: float | None = Field(
        default=None, gt=0, description="minutes after which no new call is made"
    )
    reredact: bool = Field(
        default=False, description="re-read and re-ask steps whose redaction rules changed"
    )

    @property
    def interrupt_wait_s(self) -> float:
        """Return the maximum seconds that calls in flight may take after an interrupt."""
        return self.attempt_timeout_s if self.grace_s is None else self.grace_s

    def request_fields(self) -> dict[str, Any]:
        """Return the settings as JSON, without those of speed and interruption."""
        return self.model_dump(mode="json", exclude=_NOT_IN_REQUESTS)


class GateSettings(FrozenModel):
    """Settings of the gate: which steps are asked."""

    share: float = Field(default=1.0, ge=0, le=1, description="share of the cost of asking at every step")
    seed: int = Field(default=0, description="seed of the random choices")
    explore: float = Field(
        default=0.05, ge=0, le=1, description="share of steps at which all teachers are asked at random"
    )
    skip_student_family: bool = Field(
        default=True, description="skip teachers of the agent's family, which may not vote"
    )
    step_scorer: Path | None = Field(
        default=None, description='checkpoint of method = "prm", whose score is an additional feature'
    )
