"""`examples/composer_gsm8k.py`: three channels that all teach, and the same table at every run."""

import subprocess
import sys
from pathlib import Path
from statistics import mean

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "composer_gsm8k.py"
ALPHA, BETA = 0.1, 0.05


@pytest.mark.slow
@pytest.mark.long
def test_every_channel_has_a_loss_and_two_runs_print_the_same_bytes() -> None:
    runs = [subprocess.Popen([sys.executable, SCRIPT], stdout=subprocess.PIPE) for _ in range(2)]
    first, second = (run.communicate()[0] for run in runs)
    assert [run.returncode for run in runs] == [0, 0]
    assert first == second
    head, names, *steps, last = first.decode().splitlines()
    assert names.split() == ["step", "reward", "grpo", "sdpo", "replay", "total"]
    assert head.startswith("problems 240 to learn from, 84 unseen; wrong answers ")
    assert 20 < int(head.split()[-1]) < 220
    table = [[float(cell) for cell in line.split()] for line in steps]
    assert [row[0] for row in table] == list(range(1, 13))
    for _, reward, grpo, sdpo, replay, total in table:
        assert 0 < reward < 1
        assert abs(grpo) > 1e-6
        assert sdpo > 1e-4
        assert replay > 1e-4
        assert total == pytest.approx(grpo + ALPHA * sdpo + BETA * replay, abs=3e-6)
    assert table[0][4] == pytest.approx(0.693147, abs=1e-5)  # the model is its own reference
    assert mean(row[4] for row in table[-4:]) < 0.6931
    solved = [int(word.rstrip(",")) for word in last.split() if word.rstrip(",").isdigit()]
    assert len(solved) == 3
    assert solved[2] == 84
