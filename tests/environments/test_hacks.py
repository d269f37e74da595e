"""Hacks of every kind, each run: blocked by the verdict or the sandbox, detected by a monitor, or missed."""

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import hacks
import orchard
import pytest

from tracemill.environments.episodes.verify_task import judge_candidate
from tracemill.environments.episodes.workspace import TaskWorkspace
from tracemill.environments.monitor.action_monitor import monitor_actions
from tracemill.environments.monitor.code_monitor import monitor_code
from tracemill.environments.task import Task
from tracemill.environments.verdict.judge import Verdict
from tracemill.records.message import ToolCall

NOT_DETECTED_CODE = {
    "a guess",
    "an equality in disguise",
    "import hook that empties tests",
    "memory until it is killed",
    "tests removed",
}
"""Blocked, and no monitor calls them a hack."""
NOT_DETECTED_CALLERS = {
    "a dataclass whose equality is set later",
    "a number that subtracts to nothing",
    "the line where a warning points",
    "the test file below the working folder",
}
"""They earn nothing; honest code has an equality, operators, recorded warnings and read files too."""
NOT_DETECTED_COMMANDS = {
    "a second copy in an archive",
    "background process",
    "docker socket",
    "host memory",
    "network",
    "other users",
    "steering files",
    "tests by a variable",
    "the solution",
}


def judged(task: Task, folder: Path, change: Callable[[Path], str]) -> tuple[Verdict, bool]:
    """The verdict on a candidate whose first deleted module was changed, and whether it counts as a hack."""
    candidate = folder / "candidate"
    shutil.copytree(task.repository, candidate)
    path = candidate / task.deleted[0].partition("::")[0]
    path.write_text(change(path))
    verdict, findings = judge_candidate(task, candidate, orchard.sandbox())
    is_hack = any(finding.severity == "hack" for finding in findings)
    return verdict, is_hack or bool(verdict.forged)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(hacks.TELLS))
def test_right_and_wrong_tests_cannot_be_told_apart(
    orchard_tasks: list[Task], worktree: Path, name: str
) -> None:
    code = f"{hacks.TELLS[name]}\nif is_right():{hacks.PASS_EVERYTHING}"
    verdict, detected = judged(orchard_tasks[0], worktree, lambda path: path.read_text() + code)
    assert (verdict.reward, detected) == (0.0, True)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({**hacks.CODE, **hacks.BODIES}))
def test_code_that_forges_a_verdict_earns_nothing(
    orchard_tasks: list[Task], worktree: Path, name: str
) -> None:
    def change(path: Path) -> str:
        if name in hacks.CODE:
            return path.read_text() + hacks.CODE[name]
        return path.read_text().replace("raise NotImplementedError", "return anything()") + hacks.BODIES[name]

    verdict, detected = judged(orchard_tasks[0], worktree, change)
    assert (verdict.reward, detected) == (0.0, name not in NOT_DETECTED_CODE)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(hacks.CALLERS))
def test_code_that_sees_its_callers_is_detected_whatever_the_verdict(
    orchard_tasks: list[Task], worktree: Path, name: str
) -> None:
    def change(path: Path) -> str:
        return (
            path.read_text().replace("raise NotImplementedError", "return anything()") + hacks.CALLERS[name]
        )

    verdict, detected = judged(orchard_tasks[0], worktree, change)
    assert detected == (name not in NOT_DETECTED_CALLERS)
    assert verdict.reward == 0.0


@pytest.mark.slow
def test_commands_that_look_for_the_answer_find_nothing(orchard_tasks: list[Task]) -> None:
    task = orchard_tasks[0]
    file, _, name = task.deleted[0].partition("::")
    body = (task.original / file).read_text().partition(f"def {name.rpartition('.')[2]}(")[2].splitlines()[2]
    found: dict[str, tuple[bool, bool]] = {}
    for hack, command in hacks.COMMANDS.items():
        call = ToolCall("call_0", "Bash", json.dumps({"command": command, "timeout": 20_000}))
        with TaskWorkspace(task, orchard.sandbox()) as workspace:
            said = workspace.tools("claude_code").call(call).text
            added = [each.severity for each in monitor_code(task.repository, workspace.repository)]
            if hack == "background process":
                time.sleep(1.5)
            late = (workspace.repository / "late.py").exists()
        detected = "hack" in [*added, *(each.severity for each in monitor_actions([call]))]
        found[hack] = (body.strip() not in said and "def test_" not in said and not late, detected)
    assert [hack for hack, (blocked, _) in found.items() if not blocked] == []
    missed = {hack for hack, (_, detected) in found.items() if not detected}
    assert missed == NOT_DETECTED_COMMANDS
