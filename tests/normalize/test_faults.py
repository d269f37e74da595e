"""What goes wrong in the child process: rows that make an operator raise, dying, hanging, bad recipes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from touchy_operators import OPERATORS, pair

from tracemill.normalize.normalizer import DJNormalizer, NormalizedPairs
from tracemill.records.errors import NormalizeError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def touchy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe with operators that go wrong as a row tells them to, and that keep what they see of the
    environment in `seen.txt` beside it."""
    folder = tmp_path_factory.mktemp("touchy")
    spy = f"pathlib.Path({str(folder / 'seen.txt')!r}).write_text(repr(sorted(os.environ.items())))\n"
    (folder / "touchy_operators.py").write_text(f"import pathlib\n{OPERATORS}\n{spy}", encoding="utf-8")
    recipe = folder / "touchy.yaml"
    recipe.write_text(
        "custom_operator_paths: [touchy_operators.py]\n"
        "process:\n"
        "- touchy_filter: {text_key: chosen}\n"
        "- touchy_single_filter: {text_key: chosen}\n",
        encoding="utf-8",
    )
    return recipe


@pytest.fixture(scope="module")
def touched(touchy: Path) -> NormalizedPairs:
    """Some rows through that recipe, two of which make it raise, with keys in the environment."""
    texts = [
        "fine one",
        "boom goes this",
        "fine two",
        "zero division here",
        "a row to be dropped",
        "fine three",
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENROUTER_API_KEY", "sk-or-secret-of-the-test")
        patch.setenv("HF_TOKEN", "hf_secret_of_the_test")
        return DJNormalizer(touchy).normalize([pair(n, text) for n, text in enumerate(texts)])


def test_an_operator_that_raises_on_every_row_is_a_fault_of_the_recipe(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("process:\n- text_length_filter: {min_len: 5}\n", encoding="utf-8")
    with pytest.raises(
        NormalizeError, match=r"^text_length_filter.* raised KeyError on each of its 2 rows.*text_key"
    ):
        DJNormalizer(recipe).normalize([pair(0, "one action"), pair(1, "another action")])


def test_a_row_that_makes_an_operator_raise_is_dropped_and_named(touched: NormalizedPairs) -> None:
    assert [k.chosen_text for k in touched.kept] == ["fine one", "fine two", "fine three"]
    assert [(d.pair.step_id, d.operator, d.reason, d.value) for d in touched.dropped] == [
        ("trace-1:0:0", "touchy_filter(chosen)", "operator raised", "KeyError"),
        ("trace-3:0:0", "touchy_single_filter(chosen)", "operator raised", "ZeroDivisionError"),
        (
            "trace-4:0:0",
            "touchy_single_filter(chosen)",
            "outside the bounds of the operator",
            '{"length": 10}',
        ),
    ]
    assert [(c.rows_in, c.dropped, c.errors) for c in touched.counts] == [(6, 1, 1), (5, 2, 1)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("exit now", "ended with code 7", marks=pytest.mark.slow),
        ("kill it", "was ended by SIGKILL"),
    ],
)
def test_a_process_that_dies_is_one_error(touchy: Path, text: str, said: str) -> None:
    with pytest.raises(NormalizeError, match=said):
        DJNormalizer(touchy).normalize([pair(0, "fine one"), pair(1, text)])


def test_a_process_that_hangs_is_ended(touchy: Path) -> None:
    with pytest.raises(NormalizeError, match="took longer than 2 s"):
        DJNormalizer(touchy, timeout_s=2).normalize([pair(0, "hang on there")])


WRONG = {
    "{side_lenght_filter: {text_key: chosen}}": "Unknown operator .*did you mean: side_length_filter",
    "{side_length_filter: {text_key: chosen, min: 8}}": "Unknown parameter 'min'",
    "{side_length_filter: {text_key: chosen, min_len: lots}}": "'min_len' expects type 'int'",
    "{side_length_filter: {text_key: chosen, min_len: 9, max_len: 8}}": "minimum 9 above the maximum 8",
    "{side_length_filter: {min_len: 8}}": "side_length_filter does not say what it reads; expected text_key",
    "{clean_email_mapper: {text_key: chosen}}": "clean_email_mapper changes rows",
}
CHECK = """
import json, sys
from pathlib import Path
from tracemill.normalize.datajuicer.run_operators import build_operators
from tracemill.normalize.datajuicer.recipe import load_recipe
from tracemill.records.errors import NormalizeError

said = []
for path in json.loads(sys.argv[1]):
    try:
        said.append(str(len(build_operators(load_recipe(Path(path)).process))))
    except NormalizeError as error:
        said.append(str(error))
Path("said.json").write_text(json.dumps(said))
"""


def test_a_recipe_that_cannot_run_is_found_before_it_runs(tmp_path: Path) -> None:
    """What the worker does at the start of a check, for all of them in one process."""
    paths = []
    for process in (*WRONG, "{side_length_filter: {text_key: chosen, min_len: 8}}"):
        paths.append(str(tmp_path / f"recipe_{len(paths)}.yaml"))
        Path(paths[-1]).write_text(f"process: [{process}]", encoding="utf-8")
    env = dict(os.environ) | {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "PIP_NO_INDEX": "1"}
    command = [sys.executable, "-c", CHECK, json.dumps(paths)]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    *said, good = json.loads((tmp_path / "said.json").read_text())
    for found, wanted in zip(said, WRONG.values(), strict=True):
        assert re.search(wanted, found)
    assert good == "1"


def test_operators_of_the_recipe_that_do_not_load(tmp_path: Path) -> None:
    (tmp_path / "broken_operators.py").write_text("import no_such_module", encoding="utf-8")
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "custom_operator_paths: [broken_operators.py]\nprocess: [mine_filter]", encoding="utf-8"
    )
    with pytest.raises(NormalizeError, match=r"cannot be loaded .*No module named 'no_such_module'"):
        DJNormalizer(recipe).check()


def test_no_key_reaches_the_process(touchy: Path, touched: NormalizedPairs) -> None:
    assert len(touched.kept) == 3
    environment = touchy.with_name("seen.txt").read_text(encoding="utf-8")
    assert "secret" not in environment
    assert "('HF_HUB_OFFLINE', '1')" in environment
    assert f"('HOME', '{os.environ['HOME']}')" not in environment


def test_importing_the_normalizer_imports_no_data_juicer() -> None:
    code = "import sys, tracemill.normalize.normalizer as n; "
    code += "print('data_juicer' in sys.modules, 'datasets' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_a_block_has_one_process_and_a_new_one_once_that_died(touchy: Path) -> None:
    """A fault of one job ends no block: the next one starts a process."""
    normalizer = DJNormalizer(touchy)
    with normalizer.process() as process:
        kept = normalizer.normalize([pair(0, "fine one"), pair(1, "boom goes this")]).kept
        assert [each.chosen_text for each in kept] == ["fine one"]
        first = process.pid
        assert first is not None
        assert len(normalizer.normalize([pair(0, "fine two")]).kept) == 1
        assert process.pid == first
        with pytest.raises(NormalizeError, match="was ended by SIGKILL"):
            normalizer.normalize([pair(0, "kill it")])
        assert process.pid is None
        assert len(normalizer.normalize([pair(0, "fine three")]).kept) == 1
        second = process.pid
        assert second not in (None, first)
    assert not any(psutil.pid_exists(each) for each in (first, second))
