"""Define the settings of the OpenRouter stub server."""

from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from tracemill.records.frozen_model import FrozenModel
from tracemill.teachers.core.bundled_prices import OFFLINE_PRICES
from tracemill.teachers.core.teacher_settings import PriceSettings


class FaultKind(StrEnum):
    """Kinds of faults. Those up to `finish-error` bill nothing, the others bill the answer."""

    BAD_REQUEST = "400"
    TOO_LONG = "400-context"  # the prompt is longer than the model's context
    WRONG_KEY = "401"
    NO_CREDIT = "402"  # the account is empty
    KEY_LIMIT = "402-key"  # the key's own limit is reached
    TOO_DEAR = "402-weight"  # the balance does not cover max_tokens
    IN_FLIGHT_HOLD = "402-hold"  # passes, with Retry-After
    FORBIDDEN = "403"  # the key's budget is spent
    MODERATED = "403-moderation"
    NO_ENDPOINT = "404"
    FILTERED = "404-filtered"  # no provider meets what the request asks for
    REQUEST_TIMEOUT = "408"
    TOO_LARGE = "413"
    UNPROCESSABLE = "422"
    RATE_LIMIT = "429"  # with Retry-After
    SERVER_ERROR = "500"
    UNAVAILABLE = "502"
    OVERLOADED = "503"  # with Retry-After
    GATEWAY_TIMEOUT = "504"
    EDGE_TIMEOUT = "524"
    EDGE_OVERLOADED = "529"
    REDIRECT = "307"
    GATEWAY_PAGE = "502-page"  # a page of HTML
    FIREWALL_PAGE = "403-page"  # a page of HTML
    DROPPED = "dropped"  # the connection is cut
    STALLED = "stalled"  # never answered
    FINISH_ERROR = "finish-error"  # 200, finish_reason "error": insured, not billed
    HANG = "hang"  # billed, never answered
    RESET = "reset"  # billed, then the connection is cut
    CUT = "cut"  # billed, the connection ends in the middle of the body
    BAD_JSON = "bad-json"  # 200, the body cut in half
    ERROR_IN_200 = "err200"  # 200, an error body without usage
    LIMIT_IN_200 = "err200-429"  # 200, the error body of a rate limit
    EMPTY_CHOICES = "empty"  # 200, no choices
    EMPTY_MESSAGE = "empty-message"  # 200, neither text nor call
    LENGTH = "length"  # 200, finish_reason "length"
    CONTENT_FILTER = "content-filter"  # 200, finish_reason "content_filter"
    REFUSAL = "refusal"  # 200, a refusal in place of a text
    NO_USAGE = "no-usage"  # 200, the answer without its usage: GET /generation has the price
    NO_BILL = "no-bill"  # the same, and GET /generation never has it
    PROXY_PAGE = "proxy-page"  # 502 with a page of HTML after the answer was paid for


class FaultSettings(FrozenModel):
    """The conditions under which a fault is injected, and its kind. All given conditions must hold."""

    kind: FaultKind
    probability: float = Field(default=1.0, ge=0, le=1, description="share of attempts hit, drawn by hash")
    first_attempts: int | None = Field(default=None, ge=0, description="maximum hits per request")
    first_requests: int | None = Field(default=None, ge=0, description="maximum hits in all")
    after_requests: int = Field(default=0, ge=0, description="number of first requests without hits")
    model: str | None = Field(default=None, description="only this model")
    retry_after_s: float = Field(default=1.0, ge=0, description="Retry-After, in seconds")
    retry_after_as: Literal["seconds", "date", "milliseconds", "reset", "body"] = Field(
        default="seconds", description="place of the wait: a header in one of its forms, or the error's body"
    )


class StubSettings(FrozenModel):
    """The stub server's models and behaviour; every answer is a simulated teacher's."""

    api_key: Annotated[str, StringConstraints(min_length=1)] = "sk-or-simulated"
    models: dict[str, PriceSettings] = Field(
        default_factory=lambda: dict(OFFLINE_PRICES), description="prices by model id"
    )
    without_tools: tuple[str, ...] = Field(default=(), description="models listed as unable to call tools")
    contexts: dict[str, int] = Field(
        default_factory=dict, description="maximum prompt and answer tokens of a model; else a million"
    )
    unlisted: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, description="request fields that a model ignores, by model"
    )
    credit_usd: Decimal | None = Field(default=None, ge=0, description="account balance; unset: no end")
    endpoints: dict[str, dict[str, PriceSettings]] = Field(
        default_factory=dict, description="providers of a model, by tag; default: one at the list price"
    )
    in_flight_usd: Decimal | None = Field(
        default=None, ge=0, description="maximum cost of calls in flight; more is refused with 402"
    )
    prompt_cache: bool = Field(default=True, description="simulate prompt caching and its charges")
    cache_lifetime_s: float | None = Field(
        default=None, ge=0, description="lifetime of cached prompts in seconds; replaces the family's"
    )
    latency_s: float = Field(default=0.0, ge=0, description="median seconds until an answer")
    latency_spread: float = Field(default=0.0, ge=0, le=3, description="sigma of a lognormal around it")
    bill_delay_s: float = Field(
        default=0.0, ge=0, description="seconds after an answer until GET /generation has it"
    )
    bill_pages: bool = Field(default=True, description="GET /generation has the charge of an answer")
    stated_share: Decimal = Field(
        default=Decimal(1), ge=0, description="share of its charge that an answer states as cost"
    )
    dearer_after: int | None = Field(
        default=None, ge=0, description="requests after which answers cost `dearer_times` the list price"
    )
    dearer_times: int = Field(default=3, ge=1)
    says_usage: Literal["key", "credits", "nowhere"] = Field(
        default="key", description="the page with the total charge"
    )
    used_elsewhere_usd: Decimal = Field(default=Decimal(0), ge=0, description="charged to the key by others")
    heeds_max_price: bool = Field(default=True, description="refuse if `provider.max_price` is exceeded")
    hang_s: float = Field(default=3600.0, ge=0, description="seconds a hanging request is held")
    faults: tuple[FaultSettings, ...] = ()
    page_failures: int = Field(
        default=0, ge=0, description="requests for other pages than answers that get a 503 first"
    )
    keep_bodies: bool = Field(default=False, description="keep every request's body in memory")
    seed: int = 0
