"""Serve a folder of tasks over OpenEnv's protocol (https://github.com/huggingface/OpenEnv).

    python -m tracemill.environments.adapters.openenv_server tasks --port 8000

An episode is a WebSocket session: reset, calls of tools, `finish`. The reward comes with the last observation
alone. It wants `openenv`, whose requirements are not tracemill's: a virtual environment of its own.
"""

# openenv is installed in an environment of its own: the types of what it gives are not known here.
# pyright: reportMissingImports=false

import argparse
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import uvicorn
from openenv.core.env_server import (
    CallToolAction,
    CallToolObservation,
    Environment,
    ListToolsAction,
    ListToolsObservation,
    Observation,
    State,
    Tool,
    create_app,
)
from openenv.core.env_server.types import EnvironmentMetadata
from pydantic import Field

from tracemill.environments.episodes.workspace import EpisodeJudgement, TaskWorkspace
from tracemill.environments.sandbox.choose_sandbox import choose_sandbox
from tracemill.environments.sandbox.sandbox import DEFAULT_LIMITS, Limits
from tracemill.environments.task import Task, read_tasks
from tracemill.environments.tools.tool_session import (
    SYSTEM_PROMPTS,
    HarnessName,
    ToolResult,
    ToolSession,
    tool_specs,
)
from tracemill.records.errors import EnvironmentTaskError
from tracemill.records.message import Message, ToolCall, ToolSpec

SPLIT = "train"
FINISH = "finish"


class TaskObservation(CallToolObservation):
    """The result of a call, with its failure for a trainer that makes hints.

    `error_kind` is the kind of failure, as in the records of tracemill. `hint_template_key` names the hint
    that fits it: `Bash.exit_code`, `unknown_tool`, `malformed_arguments`; at the end of an episode
    `verdict.hack`, `verdict.no_result`, `verdict.broke_other_tests`, `verdict.none_pass` or
    `verdict.some_pass`. Both are None if nothing failed.
    """

    step: int = 0
    task: str = ""
    error_kind: str | None = None
    hint_template_key: str | None = None


class TaskState(State):
    """An episode: its task, every message so far and, once it has ended, its reward.

    `messages` are in OpenAI's form. `at(t)` gives what was seen when step t was decided.
    """

    task: str = ""
    harness: str = ""
    done: bool = False
    reward: float | None = None
    messages: list[dict[str, Any]] = Field(default_factory=list)

    def at(self, step: int) -> list[dict[str, Any]]:
        """Return the messages that were seen when step `step`, counted from 0, was decided."""
        places = [place for place, each in enumerate(self.messages) if each["role"] == "assistant"]
        if not 0 <= step <= len(places):
            raise IndexError(f"step {step} of an episode of {len(places)} steps")
        return self.messages[: places[step]] if step < len(places) else self.messages


class TaskServerEnvironment(Environment[CallToolAction, TaskObservation, TaskState]):
    """Episodes of one session, on the tasks of a folder."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(
        self,
        tasks: Mapping[str, Task],
        *,
        harness: HarnessName = "claude_code",
        sandbox: str = "auto",
        level: str = "detailed",
        most_turns: int = 50,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        """Offer tasks by their names."""
        super().__init__()
        self._tasks, self._level = tasks, level
        self._harness: HarnessName = harness
        self._sandbox_name, self._most_turns, self._limits = sandbox, most_turns, limits
        self._workspace: TaskWorkspace | None = None
        self._session: ToolSession | None = None
        self._messages: list[Message] = []
        self._calls: list[ToolCall] = []
        self._task = ""
        self._episode_id: str | None = None
        self._judgement: EpisodeJudgement | None = None

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        task: str | None = None,
        split: str = SPLIT,
        index: int | None = None,
        **more: Any,
    ) -> Observation:
        """Begin an episode of a task: by its name, by its place in the split, or by the seed."""
        names = [*self._tasks]
        if task is None and index is not None:
            task = str(self.get_task(split, index)["name"])
        name = task or names[(seed or 0) % len(names)]
        if name not in self._tasks:
            raise EnvironmentTaskError(f"there is no task {name!r}", f"one of {len(names)} in the folder")
        self.close()
        sandbox, chosen = choose_sandbox(self._sandbox_name), self._tasks[name]
        self._workspace = TaskWorkspace(chosen, sandbox, self._limits)
        self._session = self._workspace.tools(self._harness)
        text = chosen.texts[self._level]
        self._messages = [Message("system", SYSTEM_PROMPTS[self._harness]), Message("user", text)]
        self._calls, self._judgement = [], None
        self._task, self._episode_id = name, episode_id
        return TaskObservation(tool_name="", result=text, task=name, metadata={"harness": self._harness})

    def step(self, action: Any, timeout_s: float | None = None, **more: Any) -> Observation:
        """List the tools, or call one.

        Arguments that are not a JSON object travel as text in `metadata.arguments_text`, and what the agent
        said beside its call in `metadata.text`: both stay in the record.
        """
        if isinstance(action, ListToolsAction):
            return ListToolsObservation(tools=[_as_mcp(spec) for spec in self._specs()])
        if self._session is None or self._judgement is not None:
            raise EnvironmentTaskError("no episode is under way", "a reset first")
        text = action.metadata.get("arguments_text") or json.dumps(action.arguments, ensure_ascii=False)
        call = ToolCall(f"call_{len(self._calls)}", action.tool_name, text)
        self._calls.append(call)
        said = str(action.metadata.get("text") or "")
        self._messages.append(Message("assistant", said, (call,)))
        finished = call.name == FINISH
        result = ToolResult("") if finished else self._session.call(call)
        if not finished:
            self._messages.append(result.to_message(call))
        seen = TaskObservation(
            tool_name=call.name,
            result=result.text,
            step=len(self._calls),
            task=self._task,
            error_kind=result.error_kind,
            hint_template_key=_hint_of_call(call, result, self._specs()),
        )
        return self._ended(seen) if finished or len(self._calls) >= self._most_turns else seen

    def _ended(self, seen: TaskObservation) -> TaskObservation:
        assert self._workspace is not None
        self._judgement = self._workspace.judge(self._calls)
        self._workspace.close()
        seen.done, seen.reward = True, self._judgement.reward
        seen.hint_template_key = _hint_of_verdict(self._judgement)
        verdict = self._judgement.verdict
        seen.metadata = {
            "passed": len(verdict.passed),
            "broken": len(verdict.broken),
            "hacked": self._judgement.hacked,
            "findings": [f"{each.severity}: {each.rule} ({each.where})" for each in self._judgement.findings],
        }
        return seen

    @property
    def state(self) -> TaskState:
        """Return the current state of the episode."""
        return TaskState(
            episode_id=self._episode_id,
            step_count=len(self._calls),
            task=self._task,
            harness=self._harness,
            done=self._judgement is not None,
            reward=None if self._judgement is None else self._judgement.reward,
            messages=[message.to_wire() for message in self._messages],
        )

    def close(self) -> None:
        """Remove the working copy."""
        if self._workspace is not None:
            self._workspace.close()
        self._workspace = self._session = None

    def get_metadata(self) -> EnvironmentMetadata:
        """Say what this environment is."""
        return EnvironmentMetadata(
            name="tracemill",
            description=f"{len(self._tasks)} coding tasks that verify themselves, tools of {self._harness}",
        )

    def list_splits(self) -> list[str]:
        """Return the one split."""
        return [SPLIT]

    def list_tasks(self, split: str) -> list[dict[str, Any]]:
        """Return name, origin and difficulty of every task."""
        return self.get_task_range(split)

    def num_tasks(self, split: str) -> int:
        """Return how many tasks there are."""
        return len(self.get_task_range(split))

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        """Return the task at a place; IndexError if there is none."""
        return self.get_task_range(split)[index]

    def get_task_range(
        self, split: str, start: int | None = None, stop: int | None = None
    ) -> list[dict[str, Any]]:
        """Return the tasks between two places."""
        tasks = [*self._tasks.values()] if split == SPLIT else []
        return [
            {
                "name": task.name,
                "origin": task.origin.name,
                "licence": task.origin.licence,
                "kind": task.difficulty.kind,
                "lines": task.difficulty.lines,
            }
            for task in tasks[start:stop]
        ]

    def _specs(self) -> tuple[ToolSpec, ...]:
        """Return the tools of the harness, with a `finish` tool added if it has none."""
        specs = tool_specs(self._harness)
        if any(spec.name == FINISH for spec in specs):
            return specs
        (finish,) = (spec for spec in tool_specs("openhands") if spec.name == FINISH)
        return (*specs, replace(finish, description="Say that the work is done; the tests run then."))


def _as_mcp(spec: ToolSpec) -> Tool:
    return Tool(name=spec.name, description=spec.description, input_schema=dict(spec.parameters))


def _hint_of_call(call: ToolCall, result: ToolResult, specs: tuple[ToolSpec, ...]) -> str | None:
    if result.malformed:
        known = call.name in {spec.name for spec in specs}
        return "malformed_arguments" if known else "unknown_tool"
    return f"{call.name}.{result.error_kind}" if result.failed else None


def _hint_of_verdict(judgement: EpisodeJudgement) -> str | None:
    verdict = judgement.verdict
    if judgement.hacked:
        return "verdict.hack"
    if verdict.solved:
        return None
    if verdict.notes:
        return "verdict.no_result"
    if verdict.broken:
        return "verdict.broke_other_tests"
    return "verdict.some_pass" if verdict.passed else "verdict.none_pass"


def make_app(tasks: Path, *, most_sessions: int = 8, **settings: Any) -> Any:
    """Return the FastAPI application that serves a folder of tasks, `most_sessions` at a time."""
    found = {task.name: task for task in read_tasks(tasks)}
    choose_sandbox(settings.get("sandbox", "auto"))  # one line now instead of one a session
    factory: Callable[[], Environment] = lambda: TaskServerEnvironment(found, **settings)  # noqa: E731
    return create_app(
        factory,
        CallToolAction,
        TaskObservation,
        env_name="tracemill",
        max_concurrent_envs=most_sessions,
        state_cls=TaskState,
    )


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="Serve a folder of tasks over OpenEnv's protocol.")
    parser.add_argument("tasks", type=Path, help="folder of tasks")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on (default: %(default)s)")
    parser.add_argument("--harness", choices=get_args(HarnessName), default="claude_code")
    parser.add_argument("--level", choices=("terse", "detailed"), default="detailed")
    parser.add_argument("--sandbox", default="auto")
    parser.add_argument("--turns", type=int, default=50, help="calls of an episode (default: %(default)s)")
    parser.add_argument("--sessions", type=int, default=8, help="episodes at a time (default: %(default)s)")
    given = parser.parse_args()
    try:
        app = make_app(
            given.tasks,
            most_sessions=given.sessions,
            harness=given.harness,
            level=given.level,
            sandbox=given.sandbox,
            most_turns=given.turns,
        )
    except EnvironmentTaskError as error:
        parser.exit(2, f"tracemill: {error}\n")
    logging.getLogger("openenv").setLevel(logging.WARNING)
    uvicorn.run(app, host=given.host, port=given.port, log_level="warning")


if __name__ == "__main__":
    main()
