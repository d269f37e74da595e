"""The recipe run bare and under data-juicer's own executor leaves the same rows; stock filters do not."""

import json
import os
import random
import subprocess
import sys
from typing import Any

import pytest

from tracemill.normalize.datajuicer.recipe import default_recipe

pytestmark = pytest.mark.slow

SCRIPT = """
import importlib.util, json, sys
from pathlib import Path
from types import SimpleNamespace
from tracemill.normalize.datajuicer import ray_stub
ray_stub.install_ray_stub()
from data_juicer.config import init_configs
from data_juicer.core.executor import DefaultExecutor
if importlib.util.find_spec("torch") is None:  # wanted at the end, to free GPU memory
    from data_juicer.utils import model_utils
    model_utils.torch = SimpleNamespace(cuda=SimpleNamespace(empty_cache=lambda: None))
from tracemill.normalize.datajuicer.run_operators import build_operators, run_operators
from tracemill.normalize.datajuicer.recipe import load_recipe

folder, recipe, stock = (Path(argument) for argument in sys.argv[1:])
rows = [json.loads(line) for line in (folder / "rows.jsonl").open()]
found = {}
for name, path in (("ours", recipe), ("stock", stock)):
    loaded = load_recipe(path)
    found[name] = run_operators(build_operators(loaded.process), loaded.labels, rows).kept
    arguments = ["--config", str(path), "--dataset_path", str(folder / "rows.jsonl")]
    config = init_configs([*arguments, "--export_path", str(folder / name / "kept.jsonl")])
    found[f"{name} in the executor"] = list(DefaultExecutor(config).run()["row"])
(folder / "found.json").write_text(json.dumps(found))
"""
WORDS = [
    f"{a}{b}{c}"
    for a in "klmnp"
    for b in "aeiou"
    for c in ("ren", "dor", "tis", "vel", "sum", "gat", "bor", "fin")
]
VERBS = ("read", "edit", "test")
STOCK = """
text_keys: [chosen, rejected]
np: 1
process:
- text_length_filter: {text_key: chosen, min_len: 8}
- text_length_filter: {text_key: rejected, min_len: 8}
"""


def side(coin: random.Random) -> str:
    kind = coin.choice(["short", "word", "special", "loop", "turns", *("speech", "long", "near") * 4])
    return {
        "short": "abc",
        "word": "onewordonly",
        "special": "!!! ### $$$ %%% abc def",
        "speech": f"I would {coin.choice(VERBS)} file {coin.randrange(9)} of the {coin.choice('abcd')}",
        "long": " ".join(coin.choices(WORDS, k=200)),
        "near": " ".join([*WORDS[:100], coin.choice(WORDS), *WORDS[100:]]),
        "loop": "it goes on and on and " * 20,
        "turns": f"I look at {coin.randrange(99)} files.\n\nHuman: go on",
    }[kind]


def row(number: int, coin: random.Random) -> dict[str, Any]:
    chosen, rejected = side(coin), side(coin)
    return {
        "row": number,
        "pair_id": f"trace-{number}:0:0:teachers",
        "chosen": chosen,
        "rejected": rejected,
        "chosen_calls": None if number % 50 == 7 else coin.randrange(2),  # None > 0 raises
        "rejected_calls": coin.randrange(2),
        "chosen_said": chosen,
        "rejected_said": rejected,
        "chosen_messages": 1 + (number % 97 == 3),
        "rejected_messages": 1,
    }


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    coin = random.Random(20261121)
    return [row(number, coin) for number in range(2000)]


@pytest.fixture(scope="module")
def found(rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[int]]:
    folder = tmp_path_factory.mktemp("executor")
    (folder / "rows.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    (folder / "stock.yaml").write_text(STOCK, encoding="utf-8")
    (folder / "both.py").write_text(SCRIPT, encoding="utf-8")
    root = default_recipe().parent.parent.parent
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "PYTHONPATH": str(root)}
    command = [sys.executable, "both.py", str(folder), str(default_recipe()), str(folder / "stock.yaml")]
    environment |= {"HF_HUB_OFFLINE": "1", "PIP_NO_INDEX": "1", "UV_OFFLINE": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads((folder / "found.json").read_text(encoding="utf-8"))


def test_bare_and_under_the_executor_the_same_rows_stay(found: dict[str, list[int]]) -> None:
    assert found["ours"] == found["ours in the executor"]
    assert 500 < len(found["ours"]) < 1500


def test_rows_that_raise_stay_nowhere(rows: list[dict[str, Any]], found: dict[str, list[int]]) -> None:
    raising = {r["row"] for r in rows if r["chosen_calls"] is None}
    assert len(raising) == 40
    assert raising.isdisjoint(found["ours in the executor"])
    assert raising.isdisjoint(found["ours"])
    assert not raising.isdisjoint(found["stock"])


def test_ours_look_at_both_sides(rows: list[dict[str, Any]], found: dict[str, list[int]]) -> None:
    kept = [rows[number] for number in found["ours in the executor"]]
    assert all(len(r["chosen"]) >= 8 and len(r["rejected"]) >= 8 for r in kept)


def test_a_stock_filter_on_a_second_field_never_filters_under_the_executor(
    rows: list[dict[str, Any]], found: dict[str, list[int]]
) -> None:
    long_chosen = [r["row"] for r in rows if len(r["chosen"]) >= 8]
    both = [r["row"] for r in rows if len(r["chosen"]) >= 8 and len(r["rejected"]) >= 8]
    assert found["stock in the executor"] == long_chosen  # also rows with 3 characters on the other side
    assert len(long_chosen) > len(both)
    assert found["stock"] == both
