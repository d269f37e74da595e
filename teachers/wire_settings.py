"""Configuration of the server that stands in for OpenRouter."""

from decimal import Decimal
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from teachers.presets import OFFLINE_PRICES
from teachers.settings import PriceSettings


class FaultKind(StrEnum):
    """Ways to misbehave; the first seven bill nothing, the others bill what the answer costs."""

    RATE_LIMIT = "429"  # with Retry-After
    SERVER_ERROR = "500"
    OVERLOADED = "503"
    NO_CREDIT = "402"
    IN_FLIGHT_HOLD = "402-hold"  # passes, with Retry-After
    FORBIDDEN = "403"  # the key's budget is spent
    FINISH_ERROR = "finish-error"  # 200, finish_reason "error": insured, not billed
    HANG = "hang"  # billed, never answered
    RESET = "reset"  # billed, then the connection is cut
    BAD_JSON = "bad-json"  # 200, the body cut in half
    ERROR_IN_200 = "err200"  # 200, an error body without usage
    EMPTY_CHOICES = "empty"  # 200, no choices
    LENGTH = "length"  # 200, finish_reason "length"
    PROXY_PAGE = "proxy-page"  # 502 with a page of HTML after the answer was paid for


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FaultSettings(_Settings):
    """When to misbehave, and how. All conditions given must hold; with none it is always."""

    kind: FaultKind
    probability: float = Field(default=1.0, ge=0, le=1, description="share of attempts hit, drawn by hash")
    first_attempts: int | None = Field(default=None, ge=0, description="hits so many attempts at a request")
    first_requests: int | None = Field(default=None, ge=0, description="hits so many requests in all")
    after_requests: int = Field(default=0, ge=0, description="leaves so many requests alone first")
    model: str | None = Field(default=None, description="only this model")
    retry_after_s: float = Field(default=1.0, ge=0, description="Retry-After, in seconds")


class WireSettings(_Settings):
    """What the server knows and how it answers; every answer is that of a simulated teacher."""

    api_key: Annotated[str, StringConstraints(min_length=1)] = "sk-or-simulated"
    models: dict[str, PriceSettings] = Field(
        default_factory=lambda: dict(OFFLINE_PRICES), description="prices by model id"
    )
    without_tools: tuple[str, ...] = Field(default=(), description="models listed as unable to call tools")
    credit_usd: Decimal | None = Field(default=None, ge=0, description="account balance; unset: no end")
    latency_s: float = Field(default=0.0, ge=0, description="median seconds until an answer")
    latency_spread: float = Field(default=0.0, ge=0, le=3, description="sigma of a lognormal around it")
    hang_s: float = Field(default=3600.0, ge=0, description="seconds a hanging request is held")
    faults: tuple[FaultSettings, ...] = ()
    keep_bodies: bool = Field(default=False, description="keep every request's body in memory")
    seed: int = 0
