"""The stand-in server itself: its pages, its refusals, its books, its configuration."""

import asyncio
import json
import socket
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from pydantic import ValidationError

from tracemill.records.errors import ConfigError
from tracemill.teachers.core.bundled_prices import OFFLINE_PRICES
from tracemill.teachers.core.price import price_of
from tracemill.teachers.openrouter_stub.server import running, serve
from tracemill.teachers.openrouter_stub.stub_settings import FaultKind, FaultSettings, StubSettings
from tracemill.teachers.pricing.model_info import read_model_info

BODY = {"model": "simulated/qwen-a", "messages": [{"role": "user", "content": "Mend src/a.py"}]}


def call(url: str, body: Any = None, key: str = "sk-or-simulated") -> tuple[int, dict[str, Any]]:
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    request = Request(url, data, {"Authorization": f"Bearer {key}"})
    try:
        with urlopen(request, timeout=10) as response:
            assert response.headers["X-Tracemill-Simulated"] == "1"
            return response.status, json.load(response)
    except HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_a_completion_states_what_it_charges() -> None:
    with running() as server:
        status, answer = call(f"{server.url}/chat/completions", BODY)
        call(f"{server.url}/chat/completions", BODY)
        _, stats = call(server.url.replace("/api/v1", "/__stats"))
    assert status == 200
    assert answer["id"].startswith("gen-")
    usage = answer["usage"]
    # qwen-a: $0.3 in, $1.2 out per million tokens
    cost_nanousd = usage["prompt_tokens"] * 300 + usage["completion_tokens"] * 1200
    assert round(usage["cost"] * 1e9) == cost_nanousd
    assert stats["charged_nanousd"] == 2 * cost_nanousd
    assert (stats["received"], stats["paid"], stats["paid_twice"]) == (2, 2, 1)


def test_the_model_list_gives_back_the_prices_it_was_made_from() -> None:
    with running(StubSettings(without_tools=("z-ai/glm-5.3",))) as server:
        _, page = call(f"{server.url}/models")
    cards = {entry["id"]: read_model_info(entry) for entry in page["data"]}
    assert set(cards) == set(OFFLINE_PRICES)
    for model, prices in OFFLINE_PRICES.items():
        assert cards[model].price == price_of(prices)
        assert cards[model].supports_field("tools") is (model != "z-ai/glm-5.3")


def test_what_it_refuses_it_does_not_charge() -> None:
    with running() as server:
        url = f"{server.url}/chat/completions"
        refused = [
            call(url, BODY, key="sk-wrong"),
            call(url, {**BODY, "model": "nobody/nothing"}),
            call(url, {"model": "simulated/qwen-a"}),
            call(url, b"[1, 2"),
            call(f"{server.url}/key", key="sk-wrong"),
        ]
        assert server.stats()["charged_nanousd"] == 0
    assert [status for status, _ in refused] == [401, 404, 400, 400, 401]
    assert [body["error"]["code"] for _, body in refused] == [401, 404, 400, 400, 401]


def test_the_balance_goes_down_and_ends() -> None:
    with running(StubSettings.model_validate({"credit_usd": "0.00006"})) as server:
        statuses = [call(f"{server.url}/chat/completions", {**BODY, "seed": n})[0] for n in range(6)]
        _, page = call(f"{server.url}/key")
        charged = server.stats()["charged_usd"]
    assert statuses[0] == 200
    assert statuses[-1] == 402
    assert page["data"]["limit_remaining"] == pytest.approx(0.00006 - charged)


def test_faults_by_probability_hit_their_share_and_the_same_requests_again() -> None:
    fault = FaultSettings(kind=FaultKind.SERVER_ERROR, probability=0.3)
    hits: list[list[int]] = []
    for _ in range(2):
        with running(StubSettings(faults=(fault,))) as server:
            url = f"{server.url}/chat/completions"
            hits.append([call(url, {**BODY, "seed": n})[0] for n in range(60)])
    assert hits[0] == hits[1]
    assert 8 <= hits[0].count(500) <= 28


def test_a_fault_can_be_kept_to_one_model() -> None:
    fault = FaultSettings(kind=FaultKind.OVERLOADED, model="simulated/kimi-a", retry_after_s=2)
    with running(StubSettings(faults=(fault,))) as server:
        url = f"{server.url}/chat/completions"
        assert call(url, BODY)[0] == 200
        assert call(url, {**BODY, "model": "simulated/kimi-a"})[0] == 503


def test_a_port_that_is_taken_is_one_clear_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"cannot listen on 127\.0\.0\.1:{port}"):
            asyncio.run(serve("127.0.0.1", port))


def test_unknown_faults_and_keys_are_refused() -> None:
    for data in ({"kind": "gremlin"}, {"kind": "429", "probabilty": 1}, {"kind": "429", "probability": 2}):
        with pytest.raises(ValidationError):
            FaultSettings.model_validate(data)
