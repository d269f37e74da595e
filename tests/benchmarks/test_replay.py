"""The cost of the order of questions, in a small version of its benchmark."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tracemill.teachers.pricing.prompt_cache import TokenCosts

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "cache_cost.py"


@pytest.fixture
def cost() -> Iterator[ModuleType]:
    """The script as a module while the test lasts."""
    spec = importlib.util.spec_from_file_location("cache_cost", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["cache_cost"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["cache_cost"]


def test_the_order_costs_within_a_tenth_of_the_best_there_is(cost: ModuleType) -> None:
    panel = cost.StateVotes.drawn(traces=60, steps=4, seed=2)
    assert len(cost.ROWS) == 6
    for family, prompt, answer, read, write in cost.ROWS.values():
        costs = TokenCosts(max(prompt, write) / 1e6, read / 1e6, answer / 1e6)
        ours = cost.scheduled(panel, 300.0, 8)
        best = cost.optimum_usd(panel, family, costs)
        spent = cost.cost_usd(panel, ours, family, costs)
        again = cost.cost_usd(
            panel, cost.unordered(panel, [call for _, _, call in ours], 8, 2), family, costs
        )
        assert best * 0.999 <= spent <= 1.05 * best
        assert spent < 0.95 * again
