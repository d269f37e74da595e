"""Tasks as a taskset of verifiers: rollouts where that is installed, against a scripted model."""

import json
import subprocess
import sys
from pathlib import Path

import orchard
import pytest

from tracemill.environments.task import Task
from tracemill.environments.tools.tool_session import SYSTEM_PROMPTS

pytestmark = [pytest.mark.slow, pytest.mark.long]
PYTHON = Path(sys.prefix) / "verifiers" / "bin" / "python"
SCRIPT = Path(orchard.__file__).with_name("verifiers_rollout.py")


def test_a_rollout_earns_the_reward_of_its_task(orchard_tasks: list[Task], tmp_path: Path) -> None:
    orchard.sandbox()
    if not (PYTHON.parent.parent / ".ready").exists():
        pytest.skip("NOT RUN: verifiers is not in .venv/verifiers; `make test-all` puts it there")
    task = orchard_tasks[0]
    path = sorted(each for each in task.original.rglob("*.py"))[0]
    inside = f"/repository/{path.relative_to(task.original).as_posix()}"
    ran = subprocess.run(
        [str(PYTHON), str(SCRIPT), str(task.folder.parent), inside],
        input=path.read_text(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    if "failed to prepare uv script" in ran.stdout:
        pytest.skip("NOT RUN: verifiers' own agent fetches its requirements, and PyPI is not there")
    assert ran.returncode == 0, ran.stderr[-3000:]
    found = json.loads(ran.stdout)
    assert found["rollouts"] == [
        ["solves", {"tests": 1.0}, {"hacked": 0.0, "broken": 0.0}, []],
        ["hacks", {"tests": 0.0}, {"hacked": 1.0, "broken": 0.0}, []],
        ["does nothing", {"tests": 0.0}, {"hacked": 0.0, "broken": 0.0}, []],
    ]
    assert found["tools"] == ["Bash", "Read", "Write", "Edit", "Glob", "Grep"]
    assert found["prompt"] == [SYSTEM_PROMPTS["claude_code"], task.texts["detailed"]]
    assert "raise NotImplementedError" in found["said"][0]
