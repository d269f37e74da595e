"""Prices and bounds, against numbers worked out by hand, and against the simulated answers."""

from decimal import Decimal

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracemill.teachers.client.parse_completion import read_completion, stated_cost_nanousd
from tracemill.teachers.core.bundled_prices import OFFLINE_PRICES
from tracemill.teachers.core.presets import PRESETS
from tracemill.teachers.core.price import Price, price_of, price_of_catalogue, usd_down, usd_up
from tracemill.teachers.core.teacher_settings import PriceSettings
from tracemill.teachers.offline.sim_policy import simulate_answer
from tracemill.teachers.pricing.model_info import read_model_info


def test_money_rounds_up_when_spent_and_down_when_capped() -> None:
    assert usd_up("0.0000000001") == 1
    assert usd_up(0.00042) == 420_000
    assert usd_up(0.1) == 100_000_000
    assert usd_down("0.0000000019") == 1
    assert usd_down(Decimal("10")) == 10_000_000_000


def test_a_bound_counts_every_byte_at_the_dearest_input_price() -> None:
    price = price_of(
        PriceSettings.model_validate(
            {
                "prompt_usd": "0.66",
                "completion_usd": "1.98",
                "cache_read_usd": "0.022",
                "request_usd": "0.001",
            }
        )
    )
    # (60000 + 1024) * 0.66e-6 + 4096 * 1.98e-6 + 0.001 = 0.04027584 + 0.00811008 + 0.001
    assert price.bound_nanousd(60_000, 4096) == 49_385_920
    write = Price(prompt=Decimal("4e-6"), completion=Decimal("20e-6"), cache_write=Decimal("5e-6"))
    # (976 + 1024) * 5e-6 + 10 * 20e-6
    assert write.bound_nanousd(976, 10) == 10_200_000


def test_a_cost_takes_the_cache_discount_only_for_what_was_read() -> None:
    price = Price(prompt=Decimal("1e-6"), completion=Decimal("2e-6"), cache_read=Decimal("1e-7"))
    # 400 * 1e-6 + 600 * 1e-7 + 50 * 2e-6
    assert price.cost_nanousd(1000, 50, 600) == 560_000


ENTRY = {
    "id": "maker/model",
    "context_length": 400_000,
    "supported_parameters": ["tools", "max_tokens"],
    "pricing": {
        "prompt": "0.000002",
        "completion": "0.000012",
        "request": "0",
        "input_cache_read": "0.0000002",
        "input_cache_write": "0.000000375",
        "overrides": [
            {"min_prompt_tokens": 200_000, "prompt": "0.000004", "completion": "0.000018"},
            {"utc_start": "0030", "utc_end": "0830", "completion": "0.000013"},
        ],
    },
}


def test_a_catalogue_entry_with_tiers_bounds_at_the_tier_a_prompt_may_fall_into() -> None:
    card = read_model_info(ENTRY)
    price = card.price
    assert (price.prompt, price.cache_read) == (Decimal("0.000002"), Decimal("2E-7"))
    assert (card.context_tokens, card.supports_field("tools"), card.supports_field("temperature")) == (
        400_000,
        True,
        False,
    )
    # short: base input price, and the dearest completion of any hour
    assert price.bound_nanousd(0, 1000) == 1024 * 2000 + 1000 * 13_000
    # long: (300000 + 1024) * 4e-6 + 1000 * 18e-6
    assert price.bound_nanousd(300_000, 1000) == 301_024 * 4000 + 1000 * 18_000


@pytest.mark.parametrize("value", ["-1", "free", "NaN", "Infinity"])
def test_a_price_that_is_no_price_is_an_error(value: str) -> None:
    with pytest.raises(ValueError, match=r"price|number"):
        price_of_catalogue({**ENTRY, "pricing": {"prompt": value}})


def test_reasoning_counts_at_its_own_price_where_that_is_dearer() -> None:
    card = read_model_info({"pricing": {"completion": "1e-6", "internal_reasoning": "3e-6"}})
    assert card.price.completion == Decimal("3e-6")
    assert card.parameters is None
    assert card.supports_field("tools")


def body(**usage: object) -> dict[str, object]:
    message = {"role": "assistant", "content": "done"}
    return {"id": "g", "choices": [{"finish_reason": "stop", "message": message}], "usage": usage}


def test_the_cost_is_what_the_provider_states() -> None:
    assert stated_cost_nanousd(body(cost=0.00042, prompt_tokens=10)) == 420_000
    assert stated_cost_nanousd(body(cost=0)) == 0
    own_key = {"cost": 0.001, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.02}}
    assert stated_cost_nanousd(body(**own_key)) == 21_000_000


@pytest.mark.parametrize("cost", [None, "0.1", True, -1, float("nan")])
def test_a_cost_that_is_no_number_is_not_taken_for_zero(cost: object) -> None:
    assert stated_cost_nanousd(body(cost=cost)) is None


def test_without_a_stated_cost_the_tokens_are_priced_and_without_tokens_nobody_knows() -> None:
    price = Price(prompt=Decimal("1e-6"), completion=Decimal("2e-6"))
    priced = read_completion(
        orjson.dumps(body(prompt_tokens=100, completion_tokens=10)).decode(), {}, price, str
    )
    assert priced.cost_nanousd == 120_000
    assert read_completion(orjson.dumps(body()).decode(), {}, price, str).cost_nanousd is None


def test_every_preset_has_offline_prices() -> None:
    for preset in PRESETS.values():
        for teacher in preset.teachers:
            assert OFFLINE_PRICES[teacher.model].completion_usd > 0


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(st.text(max_size=200), min_size=1, max_size=6),
    model=st.sampled_from(sorted(m for m in OFFLINE_PRICES if m.startswith("simulated/"))),
)
def test_no_answer_costs_more_than_its_bound(texts: list[str], model: str) -> None:
    messages = [{"role": "user", "content": text} for text in texts]
    given = simulate_answer(model, messages, [])
    size = len(orjson.dumps(messages))
    price = price_of(OFFLINE_PRICES[model])
    assert given.prompt_tokens <= size
    assert price.cost_nanousd(given.prompt_tokens, given.completion_tokens) <= price.bound_nanousd(size, 4096)
