"""What a step of the three-channel trainer costs: the benchmark runs, here at a size that says nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "benchmarks.composer.step_cost", "--context", "16", "--completion", "4"]

pytestmark = pytest.mark.slow  # as all that needs PyTorch


def run(*more: str) -> "subprocess.CompletedProcess[str]":
    command = [*COMMAND, "--generations", "2", *more]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.long
def test_every_arm_is_a_line_and_each_channel_has_a_loss_where_it_is_on() -> None:
    done = run("--steps", "3")
    assert done.returncode == 0, done.stderr[-2000:]
    head, *lines = (line.split() for line in done.stdout.splitlines())
    assert head == ["size", "arm", "s", "a", "step", "peak", "MB", "grpo", "hints", "replay"]
    arms = {" ".join(line[1:-5]): line[-5:] for line in lines}
    assert list(arms) == ["grpo", "grpo + hints", "grpo + replay", "all"]
    for name, (seconds, peak, _, hints, replay) in arms.items():
        assert float(seconds) > 0
        assert peak == "-"  # the memory of a GPU
        assert (hints == "off") == (name in ("grpo", "grpo + replay"))
        assert (replay == "off") == (name in ("grpo", "grpo + hints"))
        assert replay == "off" or 0.5 < float(replay) < 0.9  # log 2 at the first step


def test_too_few_steps_to_measure_one_is_an_error() -> None:
    done = run("--steps", "2")
    assert done.returncode == 2
    assert "--steps is 2; the first 2 are left out, so give more" in done.stderr
