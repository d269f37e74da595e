"""A folder of tasks as a taskset of verifiers (https://github.com/PrimeIntellect-ai/verifiers).

verifiers finds a taskset by the name of a top-level module that exports it:

    # tracemill_tasks.py
    from tracemill.environments.adapters.verifiers_taskset import TracemillTaskset, load_environment

    __all__ = ["TracemillTaskset"]

    $ eval tracemill-tasks --env.taskset.tasks tasks

It wants `verifiers`, whose requirements are not tracemill's: a virtual environment of its own.
"""

# verifiers is installed in an environment of its own: the types of what it gives are not known here.
# pyright: reportMissingImports=false

import asyncio
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import verifiers.v1 as vf

from tracemill.environments.adapters.verifiers_tools import TaskTools, TaskToolsConfig, WorkingCopyState
from tracemill.environments.episodes.workspace import TaskWorkspace
from tracemill.environments.sandbox.choose_sandbox import choose_sandbox
from tracemill.environments.task import Task, read_tasks
from tracemill.environments.tools.tool_session import SYSTEM_PROMPTS
from tracemill.records.message import ToolCall


class CodingTaskData(vf.TaskData):
    """A task, given by its folder."""

    folder: str


class CodingTaskConfig(vf.TaskConfig):
    """The tools of a rollout, and the sandbox in which they and the tests run."""

    tools: TaskToolsConfig = TaskToolsConfig()


class CodingTask(vf.Task[CodingTaskData, WorkingCopyState, CodingTaskConfig]):
    """A rollout of a task: a working copy, tools on it, the share of its tests that pass."""

    @classmethod
    def toolsets(cls, config: CodingTaskConfig) -> list[vf.Toolset]:
        """Return the tool server of a rollout."""
        return [TaskTools(config.tools)]

    async def setup(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        """Make the working copy."""
        workspace = await asyncio.to_thread(self._make)
        _WORKSPACES[trace.id] = workspace
        weakref.finalize(trace, _forget, trace.id)  # a rollout that fails is never scored
        trace.state.folder = str(workspace.repository.parent)
        trace.state.packages = str(workspace.packages)

    @vf.reward(weight=1.0)
    async def tests(self, trace: vf.Trace) -> Mapping[str, float]:
        """Return the reward: the share of passing tests; 0 after a hack finding or a passing canary."""
        workspace = _WORKSPACES.pop(trace.id)
        calls = [ToolCall(f"call_{n}", *call) for n, call in enumerate(trace.state.calls)]
        try:
            judgement = await asyncio.to_thread(workspace.judge, calls)
        finally:
            workspace.close()
        broken = len(judgement.verdict.broken)
        trace.record_metrics({"hacked": float(judgement.hacked), "broken": float(broken)})
        return {"tests": judgement.reward}

    def _make(self) -> TaskWorkspace:
        return TaskWorkspace(Task.read(Path(self.data.folder)), choose_sandbox(self.config.tools.sandbox))


_WORKSPACES: dict[str, TaskWorkspace] = {}
"""Working copies of rollouts that are under way, by the id of their trace."""


def _forget(trace_id: str) -> None:
    if workspace := _WORKSPACES.pop(trace_id, None):
        workspace.close()


class TracemillConfig(vf.TasksetConfig):
    """The folder of tasks, and how detailed their text is."""

    task: CodingTaskConfig = CodingTaskConfig()
    tasks: Path = Path("tasks")
    level: str = "detailed"


class TracemillTaskset(vf.Taskset[CodingTask, TracemillConfig]):
    """The tasks of a folder."""

    def load(self) -> Iterator[CodingTask]:
        """Yield each task, with its text as the prompt."""
        for task in read_tasks(self.config.tasks):
            data = CodingTaskData(
                name=task.name,
                id=task.name,
                prompt=task.texts[self.config.level],
                system_prompt=SYSTEM_PROMPTS[self.config.task.tools.tools],
                folder=str(task.folder.resolve()),
            )
            yield CodingTask(data, self.config.task)


def load_environment(tasks: str | Path, module: str = "tracemill_tasks", **agent: Any) -> vf.Env:
    """Return an environment of one agent on a folder of tasks; `agent` are settings of the agent.

    `module` is the top-level module that exports `TracemillTaskset`.
    """
    taskset = TracemillConfig(id=module, tasks=Path(tasks))
    return vf.SingleAgentEnv(vf.SingleAgentEnvConfig(taskset=taskset, agent=vf.AgentConfig(**agent)))
