"""Rows that several processes share: the same outcome whatever their number, and none is left behind."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from touchy_operators import OPERATORS, pair

from tracemill.normalize.datajuicer.recipe import default_recipe
from tracemill.normalize.normalizer import DJNormalizer
from tracemill.normalize.operators.operator_rows import dump_operator_row, load_row, to_row
from tracemill.records.errors import NormalizeError
from tracemill.records.pair import DPOPair

ROOT = Path(__file__).resolve().parents[2]
ROWS = 3500  # four batches of at most a thousand
SCRIPT = """
import json, sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tracemill.normalize.datajuicer import ray_stub
ray_stub.install_ray_stub()
from tracemill.normalize.datajuicer.run_operators import build_operators, run_operators, settle
from tracemill.normalize.datajuicer.recipe import load_recipe
from tracemill.normalize.datajuicer.fork_workers import judge_in_fork_workers, read_forked_rows

rows, recipe, count = Path(sys.argv[1]), load_recipe(Path(sys.argv[2])), int(sys.argv[3])
operators, found = build_operators(recipe.process), []
for processes in (1, 2, 3, 9):
    judged = judge_in_fork_workers(rows, count, operators, processes)
    found.append(asdict(settle(operators, recipe.labels, judged, partial(read_forked_rows, rows))))
found.append(asdict(run_operators(operators, recipe.labels, [json.loads(line) for line in rows.open()])))
Path("found.json").write_text(json.dumps(found))
"""
AFTER = """
  - document_deduplicator: {text_key: rejected}
  - text_length_filter: {text_key: rejected, min_len: 60}
"""


def text(coin: random.Random) -> str:
    return " ".join(
        coin.choices(("look", "at", "file", "seven", "then", "!!", "42"), k=coin.randrange(1, 40))
    )


def test_any_number_of_processes_gives_the_same_bytes(tmp_path: Path) -> None:
    coin = random.Random(20261122)
    said = [f"{text(coin)} {n % 900}" for n in range(ROWS)]
    rows = [to_row(n, pair(n, said[coin.randrange(n + 1)])) for n in range(ROWS)]
    for row in rows:
        row["rejected"] = said[coin.randrange(ROWS)]
    (tmp_path / "rows.jsonl").write_bytes(b"".join(map(dump_operator_row, rows)))
    (tmp_path / "recipe.yaml").write_text(default_recipe().read_text("utf-8") + AFTER, "utf-8")
    (tmp_path / "share.py").write_text(SCRIPT, "utf-8")
    env = dict(os.environ) | {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "PIP_NO_INDEX": "1"}
    command = [sys.executable, "share.py", "rows.jsonl", "recipe.yaml", str(ROWS)]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads((tmp_path / "found.json").read_text("utf-8"))
    first, *others = (json.dumps(each) for each in found)
    assert others == [first] * 4
    kept, dropped = found[0]["kept"], found[0]["dropped"]
    assert len(kept) + len(dropped) == ROWS
    assert 100 < len(kept) < 2000
    by = {drop["operator"] for drop in dropped}
    assert {"pair_deduplicator(chosen, rejected)", "document_deduplicator(rejected)"} < by
    assert "text_length_filter(rejected)" in by
    assert kept == sorted(kept)
    assert not list(tmp_path.glob("rows.[0-9]*"))


@pytest.fixture
def touchy(tmp_path: Path) -> Path:
    """A recipe with an operator that goes wrong as a row tells it to, and says which process it is in."""
    said = f'if "hang" in text: open({str(tmp_path / "pid")!r}, "w").write(str(os.getpid()))\n'
    code = OPERATORS.replace(
        '            if "hang" in text:', f'            {said}            if "hang" in text:'
    )
    (tmp_path / "touchy_operators.py").write_text(code, "utf-8")
    recipe = tmp_path / "touchy.yaml"
    recipe.write_text(
        "custom_operator_paths: [touchy_operators.py]\nprocess:\n- touchy_filter: {text_key: chosen}\n",
        "utf-8",
    )
    return recipe


def rows_with(said: str) -> list[DPOPair]:
    """Two batches; the row that goes wrong is in the second, which is the helper's."""
    return [pair(n, said if n == 1500 else "fine one") for n in range(2000)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "error"), [("kill it", "was ended by SIGKILL"), ("exit now", "with code 7")]
)
def test_a_helper_that_dies_is_one_error(touchy: Path, said: str, error: str) -> None:
    with pytest.raises(NormalizeError, match=error):
        DJNormalizer(touchy, processes=2).normalize(rows_with(said))


@pytest.mark.slow
def test_a_helper_ends_with_the_process_that_ran_out_of_time(touchy: Path) -> None:
    with pytest.raises(NormalizeError, match="took longer than 12 s"):
        DJNormalizer(touchy, timeout_s=12, processes=2).normalize(rows_with("hang on there"))
    helper = Path("/proc") / touchy.with_name("pid").read_text("utf-8")
    until = time.monotonic() + 10
    while helper.exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not helper.exists()


def test_a_row_comes_back_as_it_went_also_with_a_lone_surrogate() -> None:
    for said in ("plain", "naïve\n日本", "half \ud83d of it"):
        row = to_row(3, pair(3, said))
        line = dump_operator_row(row)
        assert (line.count(b"\n"), line[-1:]) == (1, b"\n")
        assert load_row(line) == row
