"""The default recipe under `dj-process` as a user runs it: the same rows stay, and nothing is installed."""

import json
import os
import random
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tracemill.normalize.datajuicer.recipe import default_recipe, load_recipe

pytestmark = pytest.mark.slow

ROWS = 400
OURS = """
import json, sys
from dataclasses import asdict
from pathlib import Path
from tracemill.normalize.datajuicer.recipe import load_recipe
from tracemill.normalize.datajuicer.run_operators import build_operators, run_operators

recipe, count = load_recipe(Path(sys.argv[1])), int(sys.argv[2])
outcome = run_operators(build_operators(recipe.process), recipe.labels, Path("rows.jsonl"), count)
Path("ours.json").write_text(json.dumps(asdict(outcome)))
"""
# What pip and uv are replaced by: a module that is found before theirs and says that it was run.
INSTALLER = """
import sys
from pathlib import Path
Path(__file__).with_name("installs.txt").open("a").write(" ".join(sys.argv) + "\\n")
sys.exit(1)
"""
WORDS = [
    f"{a}{b}{c}"
    for a in "klmnp"
    for b in "aeiou"
    for c in ("ren", "dor", "tis", "vel", "sum", "gat", "bor", "fin")
]
VERBS = ("read", "edit", "test")


def side(coin: random.Random) -> str:
    kind = coin.choice(["short", "special", "loop", "turns", *("speech", "long", "near") * 5])
    return {
        "short": "",
        "special": "!!! ### $$$ %%% ab",
        "speech": f"I would {coin.choice(VERBS)} file {coin.randrange(9)} of the {coin.choice('abcd')}",
        "long": " ".join(coin.choices(WORDS, k=200)),
        "near": " ".join([*WORDS[:100], coin.choice(WORDS), *WORDS[100:]]),
        "loop": "it goes on and on and " * 20,
        "turns": f"I look at {coin.randrange(99)} files.\n\nHuman: go on",
    }[kind]


def row(number: int, coin: random.Random) -> dict[str, Any]:
    chosen, rejected = side(coin), side(coin)
    if number % 25 == 4:
        rejected = chosen
    calls = [int(coin.random() < 0.2) for _ in range(2)]
    return {
        "row": number,
        "row_id": f"trace-{number}:0:0:teachers",
        "label_source": coin.choice(["teachers", "teachers", "hindsight"]),
        "chosen": chosen,
        "rejected": rejected,
        "chosen_calls": calls[0],
        "rejected_calls": calls[1],
        "chosen_said": None if number % 50 == 7 else chosen,  # no text: operators raise
        "rejected_said": rejected,
        "chosen_messages": 1 + (number % 97 == 3),
        "rejected_messages": 1,
        "calls_differ": calls[0] != calls[1],
        "verified": "none",
        "preference": f"state {number - (number % 10 == 9)}",
    }


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    coin = random.Random(20261121)
    return [row(number, coin) for number in range(ROWS)]


@pytest.fixture(scope="module")
def folder(rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which both ways have gone over the rows."""
    folder = tmp_path_factory.mktemp("executor")
    (folder / "rows.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    for name in ("pip", "uv"):
        (folder / "first" / name).mkdir(parents=True)
        (folder / "first" / name / "__init__.py").touch()
        (folder / "first" / name / "__main__.py").write_text(INSTALLER, encoding="utf-8")
    (folder / "installed.json").write_text(json.dumps(installed()), encoding="utf-8")
    recipe = str(default_recipe())
    for name, command in {
        "ours": ["-c", OURS, recipe, str(ROWS)],
        "theirs": [
            *("-m", "data_juicer.tools.process_data", "--config", recipe),
            *("--dataset_path", "rows.jsonl", "--export_path", "out/kept.jsonl"),
        ],
    }.items():
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder / "home"),
            "PYTHONPATH": f"{folder / 'first'}:{recipe_root()}",
            "HF_HUB_OFFLINE": "1",
        }
        done = subprocess.run(
            [sys.executable, *command],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (name, done.stderr[-2000:])
    return folder


def installed() -> list[str]:
    return sorted(path.name for path in Path(sysconfig.get_path("purelib")).iterdir())


def recipe_root() -> Path:
    return default_recipe().parent.parent.parent


def exported(folder: Path) -> Iterator[dict[str, Any]]:
    return map(json.loads, (folder / "out" / "kept.jsonl").read_text(encoding="utf-8").splitlines())


@pytest.mark.long
def test_the_same_rows_stay_one_by_one(folder: Path) -> None:
    ours = json.loads((folder / "ours.json").read_text(encoding="utf-8"))
    assert [r["row"] for r in exported(folder)] == ours["kept"]
    assert 50 < len(ours["kept"]) < 300


def test_the_rows_hit_every_operator(folder: Path, rows: list[dict[str, Any]]) -> None:
    ours = json.loads((folder / "ours.json").read_text(encoding="utf-8"))
    assert {drop["operator"] for drop in ours["dropped"]} == set(load_recipe().labels)
    raised = [drop["row"] for drop in ours["dropped"] if drop["reason"] == "operator raised"]
    assert len(raised) > 2
    assert all(rows[number]["chosen_said"] is None for number in raised)


def test_dj_process_installs_nothing(folder: Path) -> None:
    assert not list((folder / "first").rglob("installs.txt"))
    before = json.loads((folder / "installed.json").read_text(encoding="utf-8"))
    assert installed() == before
    assert "data_juicer" in before


def test_what_is_missing_is_refused_in_one_line(tmp_path: Path) -> None:
    """A package that data-juicer would install as soon as a name of it is used."""
    code = """
import data_juicer.ops
from data_juicer.utils.lazy_loader import LazyLoader
try:
    LazyLoader("no_such_module_of_anybody").name
except ImportError as error:
    open("said.txt", "w").write(str(error))
"""
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(recipe_root())}
    subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, check=True
    )
    said = (tmp_path / "said.txt").read_text(encoding="utf-8")
    assert said.startswith(
        "no_such_module_of_anybody is not installed, and tracemill lets data-juicer install"
    )
    assert "\n" not in said
