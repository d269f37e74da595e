"""What each status and error body means, row by row, as OpenRouter documents them."""

from typing import Any

import pytest

from tracemill.teachers.client.error_policy import (
    error_retry_after_s,
    fault_of_error_body,
    fault_of_error_status,
)
from tracemill.teachers.client.parse_completion import parse_json, read_completion
from tracemill.teachers.core.price import Price


def error(code: int | str, message: str = "", **more: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, **more}}


def typed(code: int, error_type: str) -> dict[str, Any]:
    return error(code, metadata={"error_type": error_type})


def available(code: int, reason: str, retryable: bool, **more: Any) -> dict[str, Any]:
    return error(code, availability={"code": reason, "retryable": retryable, **more})


TABLE = [
    # status, body, kind, asked again, what it ends
    (400, typed(400, "context_length_exceeded"), "context_too_long", False, ""),
    (400, typed(400, "max_tokens_exceeded"), "context_too_long", False, ""),
    (400, typed(400, "token_limit_exceeded"), "context_too_long", False, ""),
    (400, typed(400, "string_too_long"), "context_too_long", False, ""),
    (400, error(400, "This model's maximum context length is 8192"), "context_too_long", False, ""),
    (400, typed(400, "content_policy_violation"), "refused", False, ""),
    (400, typed(400, "refusal"), "refused", False, ""),
    (400, typed(400, "invalid_request"), "bad_request", False, ""),
    (400, typed(400, "invalid_prompt"), "bad_request", False, ""),
    (401, typed(401, "authentication"), "bad_request", False, "run"),
    (402, typed(402, "payment_required"), "no_credit", False, "run"),
    (403, typed(403, "permission_denied"), "bad_request", False, "teacher"),
    (403, error(403, metadata={"patterns": ["x"]}), "refused", False, ""),
    (403, error(403, "Budget limit exceeded", metadata={"limit_usd": 5}), "no_credit", False, "run"),
    (404, typed(404, "not_found"), "bad_request", False, "teacher"),
    (404, available(404, "model_deprecated", False), "bad_request", False, "teacher"),
    (408, error(408), "timeout", True, ""),
    (413, typed(413, "payload_too_large"), "context_too_long", False, ""),
    (422, typed(422, "unprocessable"), "bad_request", False, ""),
    (429, typed(429, "rate_limit_exceeded"), "rate_limited", True, ""),
    (500, typed(500, "server"), "provider_error", True, ""),
    (502, typed(502, "provider_unavailable"), "provider_error", True, ""),
    (503, typed(503, "provider_overloaded"), "provider_error", True, ""),
    (503, available(503, "capacity_exhausted", True), "provider_error", True, ""),
    (404, available(404, "temporarily_unavailable", True), "bad_request", True, ""),
    (503, available(503, "something_new", False), "provider_error", False, ""),
    (504, typed(504, "timeout"), "timeout", True, ""),
    (524, error(524), "timeout", True, ""),
    (529, error(529), "provider_error", True, ""),
    (418, "a teapot", "bad_request", False, ""),
    (204, None, "malformed", False, ""),
    (500, "<html>", "provider_error", True, ""),
    *((status, page, "provider_error", True, "") for status in (401, 402, 403, 404) for page in (None, "No")),
]


@pytest.mark.parametrize(("status", "body", "kind", "retry", "halt"), TABLE)
def test_a_status_means_one_thing(status: int, body: Any, kind: str, retry: bool, halt: str) -> None:
    fault = fault_of_error_status(status, body, {})
    assert (fault.kind.value, fault.retry, fault.halt) == (kind, retry, halt)
    assert bool(fault.why) == bool(halt)


@pytest.mark.parametrize(("status", "body", "kind", "retry", "halt"), TABLE)
def test_the_same_error_after_generation_began_may_have_been_billed(
    status: int, body: Any, kind: str, retry: bool, halt: str
) -> None:
    if not isinstance(body, dict) or "availability" in body["error"]:
        return
    fault = fault_of_error_body(body["error"], {})
    assert (fault.kind.value, fault.retry, fault.halt, fault.billed) == (kind, retry, halt, True)


PAYMENT = [
    ({"limit_source": "openrouter_in_flight_budget"}, "rate_limited", "", True),
    ({"reason": "in_flight_budget_exhausted"}, "rate_limited", "", True),
    ({"limit_source": "openrouter_credits"}, "no_credit", "no credit left", False),
    (
        {"limit_source": "openrouter_credits", "reason": "weight_exceeds_budget"},
        "no_credit",
        "lower `max_tokens`",
        False,
    ),
    ({"limit_source": "openrouter_key_limit"}, "no_credit", "limit of the API key", False),
    ({}, "no_credit", "no credit left", False),
]


@pytest.mark.parametrize(("metadata", "kind", "why", "waits"), PAYMENT)
def test_a_402_is_told_by_its_kind(metadata: dict[str, str], kind: str, why: str, waits: bool) -> None:
    fault = fault_of_error_status(402, error(402, metadata=metadata), {"retry-after": "7"})
    assert (fault.kind.value, fault.retry, fault.account) == (kind, waits, waits)
    assert (fault.halt, fault.billed, fault.retry_after_s) == ("" if waits else "run", False, 7.0)
    assert why in fault.why


WAITS = [
    ({"retry-after": "3"}, {}, 3.0),
    ({"retry-after": "0.25"}, {}, 0.25),
    ({"retry-after-ms": "1500", "retry-after": "2"}, {}, 1.5),
    ({}, {"availability": {"retry_after": 4}}, 4.0),
    ({}, {"metadata": {"retry_after": "5"}}, 5.0),
    ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, {}, 0.0),
    ({}, {"metadata": {"headers": {"X-RateLimit-Reset": "1000"}}}, 0.0),
    ({"retry-after": "soon"}, {}, None),
    ({"retry-after": "-1"}, {}, None),
    ({"retry-after": "inf"}, {}, None),
    ({"retry-after": "nan"}, {}, None),
    ({"retry-after": ""}, {}, None),
    ({}, {}, None),
]


@pytest.mark.parametrize(("headers", "details", "expected_s"), WAITS)
def test_a_wait_in_any_form(
    headers: dict[str, str], details: dict[str, Any], expected_s: float | None
) -> None:
    assert error_retry_after_s(headers, details) == expected_s


def read(text: str, hidden: str = "") -> Any:
    redact = (lambda t: t.replace(hidden, "SECRET")) if hidden else str
    return read_completion(text, {}, Price(), redact)


def test_keep_alive_blanks_before_the_body_are_no_fault() -> None:
    found = read('\n\n   {"choices": [{"finish_reason": "stop", "message": {"content": "done"}}]}')
    assert found.action is not None
    assert found.action.text == "done"


def test_an_error_inside_the_choice_is_read_like_any_other() -> None:
    found = read('{"choices": [{"finish_reason": "error", "error": {"code": 429}, "message": {}}]}')
    assert found.fault is not None
    assert (found.fault.kind.value, found.fault.retry, found.fault.billed) == ("rate_limited", True, True)


@pytest.mark.parametrize("text", ['{"choices": [{"fin', '{"error": {"code": 502}}', '{"choices": []}'])
def test_a_useless_answer_keeps_the_id_its_cost_can_be_looked_up_by(text: str) -> None:
    found = read_completion(text, {"x-generation-id": "gen-7"}, Price(), str)
    assert (found.generation_id, found.action) == ("gen-7", None)


LOGPROBS = (
    '{"choices": [{"finish_reason": "stop", "message": {"content": "the key is abcdef"},'
    ' "logprobs": {"content": [{"token": " abc", "logprob": -0.5}, {"token": "def", "logprob": -0.1}]}}]}'
)


def test_log_probabilities_are_kept_but_where_they_would_spell_out_what_was_redacted() -> None:
    kept = parse_json(read(LOGPROBS).raw)
    assert isinstance(kept, dict)
    assert kept["choices"][0]["logprobs"]["content"][0]["logprob"] == -0.5
    hidden = parse_json(read(LOGPROBS, "abcdef").raw)
    assert isinstance(hidden, dict)
    assert hidden["choices"][0]["logprobs"] is None
    assert hidden["choices"][0]["message"]["content"] == "the key is SECRET"
