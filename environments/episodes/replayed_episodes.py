"""Execute actions from the states of recorded episodes: the step environment `episodes`.

A state is restored by executing all calls that were recorded before it, in a fresh copy of the task. What
they give must equal what was recorded. The tree is kept and copied for every execution from that state.

Behind an action follows the recorded rest of the agent's episode, call by call, whatever the calls give now;
then the tests of the task speak. So the agent's own action has the value that the episode had. What comes to
the same, such as a look before the same edit, is no difference, and an answer that ends the episode is judged
as it stands.
"""

import random
import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tracemill.environments.episodes.workspace import TaskWorkspace
from tracemill.environments.sandbox.choose_sandbox import choose_sandbox
from tracemill.environments.sandbox.file_trees import remove_tree
from tracemill.environments.sandbox.sandbox import Sandbox
from tracemill.environments.task import Task, read_tasks
from tracemill.environments.tools.tool_session import HarnessName, ToolSession
from tracemill.records.errors import ConfigError
from tracemill.records.message import Action, Message, ToolCall
from tracemill.records.step_environment import NotExecuted
from tracemill.records.trace import TraceState

MOST_CALLS = 50
"""Calls of the recorded rest that follow an action."""
_DURATION = re.compile(r"\bin \d+\.\d+s\b")
"""What a run of pytest took, which differs from run to run."""


@dataclass(frozen=True)
class _RestoredState:
    """A state restored by replaying calls: the task, its files, the tool session and the calls."""

    task: Task
    harness: HarnessName
    folder: Path
    tools: Mapping[str, Any]
    calls: tuple[ToolCall, ...]


class ReplayedEpisodes:
    """A step environment that restores states of episodes of given tasks; `of_tasks` names their folder."""

    name, version = "episodes", 1

    def __init__(self, tasks: Sequence[Task] = (), sandbox: Sandbox | None = None) -> None:
        """Restore episodes of these tasks; a task is recognised by the text that the agent was given."""
        self._tasks: dict[str, Task | None] = {}
        for task in tasks:
            for text in {*task.texts.values()}:
                self._tasks[text.strip()] = None if text.strip() in self._tasks else task
        self._sandbox = sandbox
        self._kept: tuple[str, _RestoredState | str] | None = None

    def of_tasks(self, folder: Path) -> Self:
        """Return an environment of the tasks in a folder; EnvironmentTaskError if there is none."""
        return type(self)(read_tasks(folder), choose_sandbox())

    def restores(self, state: TraceState) -> bool:
        """Return whether replaying the recorded calls gives the recorded results."""
        try:
            self._restored(state)
        except NotExecuted:
            return False
        return True

    def succeeds(self, state: TraceState, action: Action, run: int) -> bool:
        """Execute an action, then the recorded calls after it, and return whether the task is solved."""
        at = self._restored(state)
        with self._workspace(at.task, at.folder) as workspace:
            session = workspace.tools(at.harness)
            session.resume(at.tools)
            calls = [*at.calls]
            for call in (*action.tool_calls, *_rest(state, action)):
                calls.append(call)
                session.call(call)
            hacked = any(finding.severity == "hack" for finding in workspace.findings(calls))
            return not hacked and workspace.verdict(random.Random(run)).solved

    def close(self) -> None:
        """Remove the files of the last restored state."""
        if self._kept is not None and isinstance(self._kept[1], _RestoredState):
            remove_tree(self._kept[1].folder)
        self._kept = None

    def _workspace(self, task: Task, start: Path | None = None) -> TaskWorkspace:
        if self._sandbox is None:
            raise ConfigError("the environment `episodes` has no tasks", "the key `tasks` under [verified]")
        return TaskWorkspace(task, self._sandbox, start=start)

    def _restored(self, state: TraceState) -> _RestoredState:
        """Return the restored state. Raises NotExecuted, again for a state that failed before."""
        key = str(state.step_id)
        if self._kept is None or self._kept[0] != key:
            self.close()
            try:
                found: _RestoredState | str = self._restore(state)
            except NotExecuted as error:
                found = str(error)
            self._kept = key, found
        kept = self._kept[1]
        if isinstance(kept, str):
            raise NotExecuted(kept)
        return kept

    def _restore(self, state: TraceState) -> _RestoredState:
        asked = next((message.content for message in state.messages if message.role == "user"), "")
        task = self._tasks.get(asked.strip())
        if task is None:
            raise NotExecuted("the session is no episode of one of the tasks")
        names = {tool.name for tool in state.context.tools}
        harness: HarnessName = "openhands" if "execute_bash" in names else "claude_code"
        with self._workspace(task) as workspace:
            session = workspace.tools(harness)
            calls = _execute_recorded(session, state.messages)
            folder = Path(tempfile.mkdtemp(prefix="tracemill-state-"))
            weakref.finalize(self, remove_tree, folder)
            try:
                workspace.save(folder)
            except (OSError, shutil.Error):
                remove_tree(folder)
                raise NotExecuted("the files of the state cannot be copied") from None
            return _RestoredState(task, harness, folder, session.kept(), tuple(calls))


def _execute_recorded(session: ToolSession, messages: Sequence[Message]) -> list[ToolCall]:
    """Execute the calls of messages and return them. Raises NotExecuted where one gives another result."""
    calls: list[ToolCall] = []
    given: dict[str | None, str] = {}
    for message in messages:
        for call in message.tool_calls:
            calls.append(call)
            given[call.id] = session.call(call).text
        if message.role == "tool" and not _same(given.get(message.tool_call_id), message.content):
            raise NotExecuted("a call gave another result than the recorded one")
    return calls


def _same(given: str | None, recorded: str) -> bool:
    return given is not None and _DURATION.sub("", given) == _DURATION.sub("", recorded)


def _rest(state: TraceState, action: Action) -> Iterator[ToolCall]:
    """Yield the recorded calls that follow an action; none after an action that ends the episode."""
    if not action.tool_calls or any(call.name == "finish" for call in action.tool_calls):
        return
    given = 0
    for message in state.context.messages[state.step.cut + 1 :]:
        if message.role == "assistant" and not message.tool_calls:
            return
        for call in message.tool_calls:
            if given >= MOST_CALLS:
                return
            given += 1
            yield call


ENVIRONMENT = ReplayedEpisodes()
