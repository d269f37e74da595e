"""The example of the environments, as a newcomer runs it."""

import re
import subprocess
import sys
from pathlib import Path

import orchard
import pytest

from tracemill.environments.task import read_tasks

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "feature_deletion" / "feature_deletion.py"


@pytest.mark.slow
@pytest.mark.long
def test_the_example_makes_verifies_runs_and_reads(worktree: Path) -> None:
    orchard.sandbox()
    ended = subprocess.run(
        [sys.executable, str(SCRIPT), str(worktree)], capture_output=True, text=True, timeout=600, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    said = ended.stdout
    assert "\ntasks made 2 of 5 features tried\n" in said
    assert "\ntasks that hold 2 of 2\n" in said
    rewards = {
        part.partition(" ")[0]: [float(each) for each in re.findall(r"reward (\S+) ", part)]
        for part in said.split("scripted_policies:")[1:]
    }
    assert (rewards["wrong"], rewards["right"]) == ([0.0, 0.0], [1.0, 1.0])
    assert len(rewards["plausible"]) == 2
    assert all(reward < 1 for reward in rewards["plausible"])
    assert "  hack" not in said
    files = [task.difficulty.files for task in read_tasks(worktree / "tasks")]
    assert files == [1, 1]
    assert len([*worktree.glob("sessions-*/**/*.jsonl")]) == 6
    read = said.rpartition("$ tracemill ingest")[2]
    assert re.search(r"\bfiles +6\n +traces +6\n", read)
    steps = 3 * sum(2 + each for each in files)  # of three policies: a look, a write of each file, an end
    assert re.search(rf"\bsteps +{steps}\n", read)
    assert re.search(r"\bfiles not read +none\n", read)
