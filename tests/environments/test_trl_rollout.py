"""TRL trains on tasks of an environment: a model that was taught to call tools explores."""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import orchard
import pytest

from benchmarks.composer import arithmetic_tasks

ROLLOUT = Path(__file__).parent.parent / "support" / "grpo_rollout.py"
STEPS = 6


@pytest.mark.slow
@pytest.mark.long
def test_grpo_earns_rewards_that_vary_on_tasks_of_one_line_and_of_two(tmp_path: Path) -> None:
    tasks = arithmetic_tasks.make(tmp_path, orchard.sandbox())
    assert sorted(task.difficulty.lines for task in tasks) == [1, 1, 1, 2, 2, 2]
    command = [sys.executable, ROLLOUT, tmp_path / "tasks", tmp_path, STEPS]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROLLOUT.parents[2]),
        "OMP_NUM_THREADS": "1",
        "TRL_EXPERIMENTAL_SILENCE": "1",
        "HF_HUB_OFFLINE": "1",
    }
    done = subprocess.run([*map(str, command)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads((tmp_path / "log.json").read_text())
    assert found["warm_start_loss"] < 0.5
    steps = [entry for entry in found["log"] if "reward" in entry]
    assert len(steps) == STEPS
    assert statistics.mean(entry["tools/call_frequency"] for entry in steps) > 0.5
    rewards = [entry["rewards/ClaudeCodeEnvironment/mean"] for entry in steps]
    assert 0.1 < statistics.mean(rewards) < 1.0
    assert len(set(rewards)) > 1
    assert sum(entry["reward_std"] > 0 for entry in steps) >= 2  # there is something to learn
    assert sum(entry["grad_norm"] > 0 for entry in steps) >= 2
