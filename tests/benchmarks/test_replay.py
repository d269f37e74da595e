"""The cost of the order of questions, in a small version of its benchmark, and the bound of the other."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tracemill.teachers.planning.strand_state import StepWork
from tracemill.teachers.pricing.prompt_cache import TokenCosts

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def scripts() -> Iterator[list[ModuleType]]:
    """`stub_server`, `cache_cost` and `replay_makespan`, as modules while the test lasts."""
    names = ("stub_server", "cache_cost", "replay_makespan")
    yield [script(name) for name in names]
    for name in names:
        del sys.modules[name]


def test_the_order_costs_within_a_tenth_of_the_best_there_is(scripts: list[ModuleType]) -> None:
    cost = scripts[1]
    panel = cost.Panel.drawn(traces=60, steps=4, seed=2)
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


def test_the_bound_is_the_longest_path(scripts: list[ModuleType]) -> None:
    bound = scripts[2]
    works = [StepWork(f"t0:0:{step}", {"a": (0,), "b": (0,), "c": (0,)}) for step in range(2)]
    a, b, c = ([bound.takes_s(work.step_id, name) for work in works] for name in "abc")
    went = {(work.step_id, name) for work in works for name in "ab"} | {("t0:0:1", "c")}
    alone = dict.fromkeys(("t0:0:0", "t0:0:1"), 2)
    assert bound.path_s(works, went, "abc", alone) == pytest.approx(max(sum(a), sum(b)) + c[1])
    assert bound.path_s(works, went, "abc", dict.fromkeys(alone, 3)) == pytest.approx(
        max(sum(a), sum(b), c[1])
    )
    assert bound.path_s(works, went - {("t0:0:1", "c")}, "abc", dict.fromkeys(alone, 1)) == pytest.approx(
        max(a[0] + b[0], sum(a)) + b[1]
    )
