"""Map a status code and an error body to what they mean for the call and for the money.

After https://openrouter.ai/docs/api-reference/errors-and-debugging: before generation starts the HTTP status
equals `error.code` and nothing is billed; afterwards the status is 200 and the error is in the body, and the
call may have been billed.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from tracemill.records.reply import FailureKind
from tracemill.teachers.pricing.model_info import as_mapping

_TOO_LONG = frozenset(
    {"context_length_exceeded", "max_tokens_exceeded", "token_limit_exceeded", "string_too_long"}
)
_REFUSED = frozenset({"content_policy_violation", "refusal", "moderation"})
_MODERATION_KEYS = ("patterns", "reasons", "flagged_input")
_TIMEOUTS = frozenset({408, 504, 524})
_VERDICTS = frozenset({401, 402, 403, 404})
"""Statuses by which an API rejects a key or a model."""
_RESET = "x-ratelimit-reset"
_UNAVAILABLE = {
    "model_not_found": "the server no longer has the model",
    "model_deprecated": "the model was withdrawn",
    "model_unavailable_upstream": "no provider has the model any more",
    "free_variant_ended": "the free variant of the model has ended",
    "region_restricted": "the model is not served in this region",
    "privacy_restricted": "no provider of the model meets the data policy asked of it",
    "constraint_filtered": "no provider of the model meets what the request asks for",
    "wrong_endpoint": "the model does not answer chat completions",
}
"""Messages for codes of `error.availability`."""


@dataclass(frozen=True, slots=True)
class CallFault:
    """The reason why a call failed.

    `billed` is True if it may have cost something; `account` if the limit reached is the account's, so that
    the wait holds for all of its calls.
    """

    kind: FailureKind
    retry: bool = False
    billed: bool = False
    retry_after_s: float | None = None
    halt: Literal["", "teacher", "run"] = ""
    why: str = ""
    account: bool = False


def error_retry_after_s(headers: Mapping[str, str], error: Mapping[str, Any]) -> float | None:
    """Return the seconds the server asks to wait, None if it does not.

    Sources in order: `retry-after-ms`; `Retry-After` in seconds or as a date (RFC 9110, 10.2.3); the error
    body; `X-RateLimit-Reset` in milliseconds since 1970.
    """
    availability, metadata = as_mapping(error.get("availability")), as_mapping(error.get("metadata"))
    limits = {str(name).lower(): value for name, value in as_mapping(metadata.get("headers")).items()}
    reset = headers.get(_RESET) or limits.get(_RESET)
    now = time.time()
    candidates = (
        _scaled(headers.get("retry-after-ms"), 0.001),
        _scaled(headers.get("retry-after"), 1.0),
        _until(headers.get("retry-after"), now),
        _scaled(availability.get("retry_after"), 1.0),
        _scaled(metadata.get("retry_after"), 1.0),
        _scaled(reset, 0.001, now),
    )
    return next((wait for wait in candidates if wait is not None), None)


def _scaled(value: object, unit: float, since: float = 0.0) -> float | None:
    """Return `value` times `unit`, less `since` and at least 0; None if it is no number."""
    try:
        seconds = float(str(value)) * unit
    except ValueError:
        return None
    if not math.isfinite(seconds) or seconds < 0:
        return None
    return max(seconds - since, 0.0)


def _until(value: str | None, now: float) -> float | None:
    """Return the seconds until an HTTP date; None if it is invalid."""
    try:
        return max(parsedate_to_datetime(value or "").timestamp() - now, 0.0)
    except (TypeError, ValueError, OverflowError):
        return None


def _of_account(headers: Mapping[str, str], error: Mapping[str, Any]) -> bool:
    """Return whether a rate limit is OpenRouter's own, which alone has X-RateLimit fields."""
    limits = as_mapping(as_mapping(error.get("metadata")).get("headers"))
    return _RESET in headers or any(str(name).lower() == _RESET for name in limits)


def _error_type(error: Mapping[str, Any]) -> str:
    metadata = as_mapping(error.get("metadata"))
    for value in (metadata.get("error_type"), error.get("error_type"), error.get("type"), error.get("code")):
        if isinstance(value, str) and value:
            return value
    return ""


def _bad_request(error: Mapping[str, Any]) -> CallFault:
    kind = _error_type(error)
    message = str(error.get("message", "")).lower()
    if kind in _TOO_LONG or "maximum context length" in message or "context length" in message:
        return CallFault(FailureKind.CONTEXT_TOO_LONG)
    if kind in _REFUSED:
        return CallFault(FailureKind.REFUSED)
    return CallFault(FailureKind.BAD_REQUEST)


def _payment(error: Mapping[str, Any]) -> CallFault:
    """Return the fault of HTTP 402: a hold for calls in flight passes, spent credit does not."""
    metadata = as_mapping(error.get("metadata"))
    source, reason = str(metadata.get("limit_source", "")), str(metadata.get("reason", ""))
    if "in_flight" in source or "in_flight" in reason:
        return CallFault(FailureKind.RATE_LIMITED, retry=True, account=True)
    if "weight_exceeds_budget" in reason:
        why = "the credit left does not cover an answer of `max_tokens`: add credit, or lower `max_tokens`"
    elif "key_limit" in source:
        why = "the spending limit of the API key is reached"
    else:
        why = "the account or key has no credit left"
    return CallFault(FailureKind.NO_CREDIT, halt="run", why=why)


def _not_found(error: Mapping[str, Any]) -> CallFault:
    code = str(as_mapping(error.get("availability")).get("code", ""))
    why = _UNAVAILABLE.get(code, "no endpoint serves the model as asked")
    return CallFault(FailureKind.BAD_REQUEST, halt="teacher", why=why)


def _forbidden(error: Mapping[str, Any]) -> CallFault:
    metadata = as_mapping(error.get("metadata"))
    if any(key in metadata for key in _MODERATION_KEYS) or _error_type(error) in _REFUSED:
        return CallFault(FailureKind.REFUSED)
    message = str(error.get("message", "")).lower()
    if "limit_usd" in metadata or "limit exceeded" in message or "budget" in message:
        return CallFault(FailureKind.NO_CREDIT, halt="run", why="the spending limit of the key is reached")
    return CallFault(FailureKind.BAD_REQUEST, halt="teacher", why="the key may not use the model")


def _by_status(status: int, error: Mapping[str, Any]) -> CallFault:
    if status == 401:
        return CallFault(FailureKind.BAD_REQUEST, halt="run", why="the API key was refused")
    if status == 402:
        return _payment(error)
    if status == 403:
        return _forbidden(error)
    if status == 404:
        return _not_found(error)
    if status == 413:
        return CallFault(FailureKind.CONTEXT_TOO_LONG)
    if status in _TIMEOUTS:
        return CallFault(FailureKind.TIMEOUT, retry=True)
    if status == 429:
        return CallFault(FailureKind.RATE_LIMITED, retry=True)
    if status >= 500:
        return CallFault(FailureKind.PROVIDER_ERROR, retry=True)
    if 400 <= status < 500:
        return _bad_request(error)
    return CallFault(FailureKind.MALFORMED)


def fault_of_error_status(status: int, body: object, headers: Mapping[str, str]) -> CallFault:
    """Return the fault of an HTTP status other than 200.

    Only the API itself, in JSON, can end a teacher or a run: a firewall's or proxy's page says nothing
    about key or model. A redirect (3xx) is not followed; it and a refusal (4xx) are never billed. A server
    error is not billed if its body is the API's own error with the same code.
    """
    if 300 <= status < 400:
        why = f"its server answers with a redirect (HTTP {status}), which is not followed"
        return CallFault(FailureKind.REDIRECTED, halt="teacher", why=why)
    if status in _VERDICTS and not isinstance(body, dict):
        return _with_wait(CallFault(FailureKind.PROVIDER_ERROR, retry=True), headers, {})
    error = as_mapping(as_mapping(body).get("error"))
    fault = _by_status(status, error)
    availability = as_mapping(error.get("availability"))
    if availability.get("retryable") is True and fault.halt != "run":
        fault = replace(fault, retry=True, halt="", why="")
    elif availability.get("retryable") is False:
        fault = replace(fault, retry=False)
    own = str(error.get("code")) == str(status) or (400 <= status < 500 and status != 408)
    return _with_wait(replace(fault, billed=not own), headers, error)


def _with_wait(fault: CallFault, headers: Mapping[str, str], error: Mapping[str, Any]) -> CallFault:
    limited = fault.kind is FailureKind.RATE_LIMITED and _of_account(headers, error)
    return replace(fault, retry_after_s=error_retry_after_s(headers, error), account=fault.account or limited)


def fault_of_error_body(error: object, headers: Mapping[str, str]) -> CallFault:
    """Return the fault of an `error` object in a body of HTTP 200; it may have been billed."""
    details = as_mapping(error)
    try:
        status = int(details.get("code") or 500)
    except (TypeError, ValueError):
        status = 500
    fault = _by_status(status if status >= 400 else 500, details)
    return _with_wait(replace(fault, billed=True), headers, details)
