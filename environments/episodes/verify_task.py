"""Verify tasks: what they give without their feature, with it, and for a candidate."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from tracemill.environments.episodes.workspace import TaskWorkspace
from tracemill.environments.monitor.hack_finding import HackFinding
from tracemill.environments.sandbox.file_trees import copy_tree
from tracemill.environments.sandbox.sandbox import Sandbox
from tracemill.environments.task import Task
from tracemill.environments.verdict.judge import Verdict
from tracemill.records.errors import EnvironmentTaskError


@dataclass(frozen=True)
class TaskRewards:
    """Reward with the feature deleted, and of each fresh run with the original in place."""

    deleted: float
    runs: tuple[float, ...]

    @property
    def restored(self) -> float:
        """Return the mean reward with the original in place."""
        return sum(self.runs) / len(self.runs)


def verify_task(task: Task, sandbox: Sandbox, repeat: int = 1) -> TaskRewards:
    """Judge a task without its feature, and `repeat` times with its original files, in fresh copies."""
    with TaskWorkspace(task, sandbox) as workspace:
        deleted = workspace.verdict().reward
    restored = []
    for _ in range(repeat):
        with TaskWorkspace(task, sandbox) as workspace:
            workspace.change(lambda folder: shutil.copytree(task.original, folder, dirs_exist_ok=True))
            restored.append(workspace.verdict().reward)
    return TaskRewards(deleted, tuple(restored))


def judge_candidate(
    task: Task, repository: Path, sandbox: Sandbox
) -> tuple[Verdict, tuple[HackFinding, ...]]:
    """Judge a candidate repository; return the verdict and the code monitor's findings.

    Raises EnvironmentTaskError if the candidate is no folder.
    """
    if not repository.is_dir():
        raise EnvironmentTaskError(
            f"{repository} is no folder", f"a repository that is a candidate for {task.name}"
        )

    def replace(folder: Path) -> None:
        shutil.rmtree(folder)
        copy_tree(repository, folder)

    with TaskWorkspace(task, sandbox) as workspace:
        workspace.change(replace)
        return workspace.verdict(), workspace.findings([])
