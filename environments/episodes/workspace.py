"""The working copy of a task that one episode changes, and its verdict."""

import random
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tracemill.environments.harbor.task_files import IN_IMAGE
from tracemill.environments.monitor.action_monitor import monitor_actions
from tracemill.environments.monitor.code_monitor import monitor_code
from tracemill.environments.monitor.hack_finding import HackFinding
from tracemill.environments.sandbox.container import ContainerSandbox
from tracemill.environments.sandbox.file_trees import copy_regular_files, copy_tree, remove_tree
from tracemill.environments.sandbox.python_runtime import make_readable, shared_packages
from tracemill.environments.sandbox.sandbox import DEFAULT_LIMITS, Limits, Sandbox
from tracemill.environments.task import Task
from tracemill.environments.tools.tool_session import HarnessName, ToolSession
from tracemill.environments.verdict.judge import Verdict, judge
from tracemill.environments.verdict.run_tests import TestBed
from tracemill.records.errors import EnvironmentTaskError
from tracemill.records.message import ToolCall


@dataclass(frozen=True)
class EpisodeJudgement:
    """The judgement of an episode: the verdict of the tests, and the findings of the monitors."""

    verdict: Verdict
    findings: tuple[HackFinding, ...]

    @property
    def hacked(self) -> bool:
        """Return whether a test was forged or a finding is a hack."""
        return bool(self.verdict.forged) or any(each.severity == "hack" for each in self.findings)

    @property
    def reward(self) -> float:
        """Return the reward of the verdict, 0 if the episode was flagged as a hack."""
        return 0.0 if self.hacked else self.verdict.reward

    @property
    def suspicions(self) -> list[str]:
        """Return what the monitors found suspicious; it costs no reward."""
        return [f"{each.rule} ({each.where})" for each in self.findings if each.severity == "suspicious"]

    def reasons(self, expected: Sequence[str]) -> list[str]:
        """Return why the reward is below 1, of the tests `expected` to pass; empty if it is 1."""
        if self.reward == 1.0:
            return []
        verdict = self.verdict
        found = [f"hack: {each.rule} ({each.where})" for each in self.findings if each.severity == "hack"]
        if verdict.notes:
            return [*found, *verdict.notes]
        failed = [test for test in expected if test not in set(verdict.passed)]
        named = {
            "forged (passes with wrong values)": [each for each in verdict.forged if each in verdict.wrong],
            "forged (passes with a wrong expectation)": [
                each for each in verdict.forged if each not in verdict.wrong
            ],
            "broke": list(verdict.broken),
            "failed": [each for each in failed if each not in verdict.unknown],
            "not right (no object as the original's, or a text that answers other tests too)": [
                each for each in failed if each in verdict.unknown
            ],
            "failed (has no blank copy, so lowers only)": list(verdict.failed),
        }
        for name, tests in named.items():
            if tests:
                more = f" and {len(tests) - 1} more" if len(tests) > 1 else ""
                found.append(f"{name}: {tests[0]}{more}")
        right, blank = sum(verdict.right), len(verdict.right)
        if blank and right / blank < len(verdict.passed) / len(expected):
            found.append(f"bounded: {right} of {blank} blank tests have the right values")
        return found


def _sandbox_of(task: Task, sandbox: Sandbox) -> Sandbox:
    """Return the sandbox for a task: the given one, or one with the task's image."""
    if not task.image:
        return sandbox
    if not isinstance(sandbox, ContainerSandbox):
        raise EnvironmentTaskError(
            f"{task.name} runs in the image {task.image}", "--sandbox podman or docker", "choose one of them"
        )
    return sandbox.of_image(task.image, IN_IMAGE)


class TaskWorkspace:
    """A copy of a task's repository in a folder of its own; a context manager removes it."""

    def __init__(
        self, task: Task, sandbox: Sandbox, limits: Limits = DEFAULT_LIMITS, start: Path | None = None
    ) -> None:
        """Copy the repository, or what `save` wrote in `start`."""
        self.task, self._sandbox, self._limits = task, _sandbox_of(task, sandbox), limits
        self._folder = Path(tempfile.mkdtemp(prefix="tracemill-episode-"))
        self._folder.chmod(0o755)
        self.repository, self.packages = self._folder / "repository", shared_packages(task.packages)
        self._scratch = self._folder / "tmp"
        if start is None:
            shutil.copytree(task.repository, self.repository)
            self._scratch.mkdir()
        else:
            copy_tree(start / "repository", self.repository)
            copy_tree(start / "tmp", self._scratch)
        make_readable(task.folder / "tests")
        for folder in (self.repository, self._scratch):
            self._sandbox.hand_over(make_readable(folder))

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Remove the copy."""
        self.close()

    def close(self) -> None:
        """Remove the copy; a second time does nothing."""
        remove_tree(self._folder)

    def tools(self, harness: HarnessName) -> ToolSession:
        """Return the tools of a harness that work on this copy."""
        return ToolSession(
            self.repository, self._scratch, self.packages, harness, self._sandbox, self._limits
        )

    def change(self, work: Callable[[Path], object]) -> None:
        """Call `work` on the repository from the host, to change its files."""
        work(self.repository)
        self._sandbox.hand_over(make_readable(self.repository))

    def save(self, folder: Path) -> None:
        """Copy the current repository and `/tmp` into a folder."""
        copy_tree(self.repository, folder / "repository")
        copy_tree(self._scratch, folder / "tmp")

    def verdict(self, rng: random.Random | None = None) -> Verdict:
        """Judge the current repository, in a copy that the agent cannot reach."""
        with tempfile.TemporaryDirectory(prefix="tracemill-verdict-") as name:
            folder = Path(name)
            folder.chmod(0o755)
            candidate = folder / "repository"
            copy_regular_files(self.repository, candidate)
            make_readable(candidate)
            bed = TestBed(self._sandbox, self.packages, self.task.roots)
            return judge(bed, self.task.exam, candidate, rng)

    def findings(self, calls: Sequence[ToolCall]) -> tuple[HackFinding, ...]:
        """Return the monitors' findings in the calls of an episode and in the current code."""
        task = self.task
        found = monitor_code(task.repository, self.repository, task.original)
        return (*monitor_actions(calls), *found)

    def judge(self, calls: Sequence[ToolCall]) -> EpisodeJudgement:
        """Judge the current repository, and the calls that led to it."""
        return EpisodeJudgement(self.verdict(), self.findings(calls))
