"""Build injected faults: refusals by status, and unusable bodies with HTTP 200.

Codes, types and metadata are those of https://openrouter.ai/docs/api-reference/errors-and-debugging and its
page on limits.
"""

import math
import time
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any

from tracemill.teachers.openrouter_stub.stub_settings import FaultKind, FaultSettings

ERROR_TYPES = {
    400: "invalid_request",
    401: "authentication",
    402: "payment_required",
    403: "permission_denied",
    404: "not_found",
    408: "timeout",
    413: "payload_too_large",
    422: "unprocessable",
    429: "rate_limit_exceeded",
    500: "server",
    502: "provider_unavailable",
    503: "provider_overloaded",
    504: "timeout",
    524: "timeout",
    529: "provider_overloaded",
}


def injected_error_body(code: int, message: str, **metadata: Any) -> dict[str, Any]:
    """Return an error in OpenRouter's format."""
    return {
        "error": {"code": code, "message": message, "metadata": {"error_type": ERROR_TYPES[code], **metadata}}
    }


@dataclass(frozen=True, slots=True)
class _Refusal:
    code: int
    message: str
    metadata: dict[str, Any] = field(default_factory=dict)
    availability: dict[str, Any] = field(default_factory=dict)
    waits: bool = False


_REFUSALS = {
    FaultKind.BAD_REQUEST: _Refusal(400, "Invalid request"),
    FaultKind.TOO_LONG: _Refusal(
        400, "This endpoint's maximum context length is exceeded", {"error_type": "context_length_exceeded"}
    ),
    FaultKind.WRONG_KEY: _Refusal(401, "User not found"),
    FaultKind.NO_CREDIT: _Refusal(402, "Insufficient credits", {"limit_source": "openrouter_credits"}),
    FaultKind.KEY_LIMIT: _Refusal(402, "Key limit exceeded", {"limit_source": "openrouter_key_limit"}),
    FaultKind.TOO_DEAR: _Refusal(
        402,
        "This request requires more credits, or fewer max_tokens",
        {"limit_source": "openrouter_credits", "reason": "weight_exceeds_budget"},
    ),
    FaultKind.IN_FLIGHT_HOLD: _Refusal(
        402,
        "Too much in flight",
        {"limit_source": "openrouter_in_flight_budget", "reason": "in_flight_budget_exhausted"},
        waits=True,
    ),
    FaultKind.FORBIDDEN: _Refusal(403, "Budget limit exceeded", {"limit_usd": 1, "spend_usd": 1}),
    FaultKind.MODERATED: _Refusal(403, "Input flagged", {"reasons": ["violence"], "flagged_input": "..."}),
    FaultKind.NO_ENDPOINT: _Refusal(404, "No endpoints found"),
    FaultKind.FILTERED: _Refusal(
        404,
        "No endpoints found matching your data policy",
        availability={"code": "privacy_restricted", "retryable": False},
    ),
    FaultKind.REQUEST_TIMEOUT: _Refusal(408, "Request timed out"),
    FaultKind.TOO_LARGE: _Refusal(413, "Payload too large"),
    FaultKind.UNPROCESSABLE: _Refusal(422, "Unprocessable"),
    FaultKind.RATE_LIMIT: _Refusal(429, "Rate limit exceeded", waits=True),
    FaultKind.SERVER_ERROR: _Refusal(500, "Internal Server Error"),
    FaultKind.UNAVAILABLE: _Refusal(502, "Provider returned error"),
    FaultKind.OVERLOADED: _Refusal(
        503, "Provider overloaded", availability={"code": "capacity_exhausted", "retryable": True}, waits=True
    ),
    FaultKind.GATEWAY_TIMEOUT: _Refusal(504, "Timed out"),
    FaultKind.EDGE_TIMEOUT: _Refusal(524, "Timed out"),
    FaultKind.EDGE_OVERLOADED: _Refusal(529, "Provider overloaded"),
    FaultKind.REDIRECT: _Refusal(307, "Moved"),
}

PAGES = {FaultKind.GATEWAY_PAGE: 502, FaultKind.FIREWALL_PAGE: 403}
"""HTML pages of a proxy in front of the server, which the request never reached."""

UNBILLED = frozenset((*_REFUSALS, *PAGES, FaultKind.DROPPED, FaultKind.STALLED, FaultKind.FINISH_ERROR))
"""Faults that are not charged."""


def injected_fault_refusal(fault: FaultSettings) -> tuple[int, dict[str, Any], dict[str, str]] | None:
    """Return status, body and headers of a fault before any answer; None for the others."""
    found = _REFUSALS.get(fault.kind)
    if found is None:
        return None
    if fault.kind is FaultKind.REDIRECT:
        return found.code, {}, {"Location": "/elsewhere"}
    body = injected_error_body(found.code, found.message, **found.metadata)
    if found.availability:
        body["error"]["availability"] = dict(found.availability)
    headers = _wait(fault, body["error"]) if found.waits else {}
    return found.code, body, headers


def _wait(fault: FaultSettings, error: dict[str, Any]) -> dict[str, str]:
    """Return the wait of a fault as headers, or put it into the error; dates are rounded up."""
    wait_s = fault.retry_after_s
    if fault.retry_after_as == "milliseconds":
        return {"retry-after-ms": f"{wait_s * 1000:g}"}
    if fault.retry_after_as == "date":
        return {"Retry-After": formatdate(math.ceil(time.time() + wait_s), usegmt=True)}
    if fault.retry_after_as == "reset":
        return {"X-RateLimit-Reset": f"{(time.time() + wait_s) * 1000:.0f}"}
    if fault.retry_after_as == "body":
        error.setdefault("availability", {})["retry_after"] = wait_s
        return {}
    return {"Retry-After": f"{wait_s:g}"}


def inject_body_fault(kind: FaultKind, body: dict[str, Any]) -> dict[str, Any]:
    """Return a completion as one of the unusable answers with HTTP 200."""
    if kind is FaultKind.ERROR_IN_200:
        return {"id": body["id"], **injected_error_body(502, "Provider returned error")}
    if kind is FaultKind.LIMIT_IN_200:
        return {"id": body["id"], **injected_error_body(429, "Rate limit exceeded")}
    if kind in (FaultKind.NO_USAGE, FaultKind.NO_BILL):
        return {name: value for name, value in body.items() if name != "usage"}
    if kind is FaultKind.EMPTY_CHOICES:
        return {**body, "choices": []}
    choice = dict(body["choices"][0])
    if kind is FaultKind.LENGTH:
        choice["finish_reason"] = "length"
    if kind is FaultKind.CONTENT_FILTER:
        choice["finish_reason"] = "content_filter"
    if kind is FaultKind.REFUSAL:
        message = {"role": "assistant", "content": "", "refusal": "I cannot help with that."}
        choice |= {"message": message, "finish_reason": "stop"}
    if kind is FaultKind.EMPTY_MESSAGE:
        choice |= {"message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}
    if kind is FaultKind.FINISH_ERROR:
        choice["finish_reason"] = "error"
        return {**body, "choices": [choice], "usage": {**body["usage"], "cost": 0}}
    return {**body, "choices": [choice]}
