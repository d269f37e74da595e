"""The command of the stand-in server: its flags as the server understands them."""

from typing import Any

import pytest

from tracemill.flows.simulate_server import simulate_server_settings
from tracemill.records.errors import ConfigError
from tracemill.teachers.openrouter_stub.account import StubAccount
from tracemill.teachers.openrouter_stub.stub_settings import FaultKind, StubSettings

GIVEN: dict[str, Any] = {"api_key": "k", "latency_s": 8.0, "latency_spread": 0.7, "credit_usd": "5"}


def test_flags_become_settings() -> None:
    found = simulate_server_settings(GIVEN, ["429=0.1", "hang=0.02@z-ai/glm-5.3", "402-hold"], 3.0)
    assert [(f.kind, f.probability, f.model, f.retry_after_s) for f in found.faults] == [
        (FaultKind.RATE_LIMIT, 0.1, None, 3.0),
        (FaultKind.HANG, 0.02, "z-ai/glm-5.3", 3.0),
        (FaultKind.IN_FLIGHT_HOLD, 1.0, None, 3.0),
    ]
    assert (found.latency_s, float(found.credit_usd or 0)) == (8.0, 5.0)


@pytest.mark.parametrize("fault", ["gremlin", "429=2", "429=x", "429=-1", "=0.5", ""])
def test_an_unknown_fault_is_one_line_that_names_the_kinds(fault: str) -> None:
    with pytest.raises(ConfigError, match="402-hold"):
        simulate_server_settings(GIVEN, [fault], 1.0)


@pytest.mark.parametrize(
    "wrong", [{"latency_spread": 9}, {"credit_usd": "nan"}, {"api_key": ""}, {"cache_lifetime_s": -1}]
)
def test_a_value_out_of_range_is_one_line(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        simulate_server_settings(GIVEN | wrong, [], 1.0)


def test_latencies_are_lognormal_around_the_median_and_the_same_for_the_same_request() -> None:
    account = StubAccount(StubSettings(latency_s=8.0, latency_spread=0.7))
    drawn = sorted(account.latency_s(str(number), 0) for number in range(2_000))
    assert drawn[1_000] == pytest.approx(8.0, rel=0.05)
    # one sigma above the median lies 84.1 % of all: 8 * exp(0.7) = 16.1
    assert drawn[1_683] == pytest.approx(16.1, rel=0.08)
    assert drawn == sorted(account.latency_s(str(number), 0) for number in range(2_000))
