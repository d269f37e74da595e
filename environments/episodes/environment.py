"""Environments as TRL's `environment_factory` takes them: `reset`, tools as methods, `get_reward`.

    from functools import partial
    GRPOTrainer(..., environment_factory=partial(ClaudeCodeEnvironment, tasks=Path("tasks")))

A row of the dataset names its task in `task`. Every public method is a tool, so everything else begins with
an underscore. Calls run in a sandbox and release the interpreter while they do: one episode never blocks
another.
"""

import itertools
import json
import weakref
from pathlib import Path
from typing import Any

from tracemill.environments.episodes.workspace import TaskWorkspace
from tracemill.environments.sandbox.choose_sandbox import choose_sandbox
from tracemill.environments.sandbox.sandbox import DEFAULT_LIMITS, Limits
from tracemill.environments.task import read_tasks
from tracemill.environments.tools.tool_session import HarnessName, ToolSession
from tracemill.records.errors import EnvironmentTaskError
from tracemill.records.message import ToolCall


class _TaskEnvironment:
    """An episode of a task; `reset` begins the next one."""

    _harness: HarnessName

    def __init__(
        self,
        tasks: Path,
        sandbox: str = "auto",
        level: str = "detailed",
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._tasks = {task.name: task for task in read_tasks(Path(tasks))}
        self._sandbox, self._level, self._limits = choose_sandbox(sandbox), level, limits
        self._workspace: TaskWorkspace | None = None
        self._session: ToolSession | None = None
        self._calls: list[ToolCall] = []
        self._numbers = itertools.count()
        self._reward: float | None = None

    def reset(self, task: str = "", **row: Any) -> str:
        """Begin the named task, by default the first one, and return its text."""
        chosen = self._tasks.get(task or next(iter(self._tasks)))
        if chosen is None:
            raise EnvironmentTaskError(
                f"there is no task {task!r}", f"one of {len(self._tasks)} in the folder"
            )
        if self._workspace is not None:
            self._workspace.close()
        self._workspace = TaskWorkspace(chosen, self._sandbox, self._limits)
        weakref.finalize(self, self._workspace.close)
        self._session = self._workspace.tools(self._harness)
        self._calls, self._reward = [], None
        return chosen.texts[self._level]

    def get_reward(self) -> float:
        """Return the share of the task's tests that pass; 0 after a hack finding or a passing canary."""
        if self._workspace is None:
            return 0.0
        if self._reward is None:
            self._reward = self._workspace.judge(self._calls).reward
        return self._reward

    def _call(self, name: str, **arguments: Any) -> str:
        if self._session is None:
            raise EnvironmentTaskError("no task was begun", "a call of reset first")
        given = {key: value for key, value in arguments.items() if value is not None}
        call = ToolCall(f"call_{next(self._numbers)}", name, json.dumps(given))
        self._calls.append(call)
        self._reward = None
        return self._session.call(call).text


class ClaudeCodeEnvironment(_TaskEnvironment):
    """A task with the tools of Claude Code."""

    _harness: HarnessName = "claude_code"

    def Bash(self, command: str, timeout: int | None = None) -> str:
        """Run a command with bash; the working directory stays between calls.

        Args:
            command: The command line.
            timeout: Longest time in milliseconds.
        """
        return self._call("Bash", command=command, timeout=timeout)

    def Read(self, file_path: str, offset: int | None = None, limit: int | None = None) -> str:
        """Read a file and return its lines with their numbers.

        Args:
            file_path: Absolute path of the file.
            offset: Number of the first line.
            limit: How many lines.
        """
        return self._call("Read", file_path=file_path, offset=offset, limit=limit)

    def Write(self, file_path: str, content: str) -> str:
        """Write a whole file.

        Args:
            file_path: Absolute path of the file.
            content: Its text.
        """
        return self._call("Write", file_path=file_path, content=content)

    def Edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> str:
        """Replace a text that occurs in a file exactly once, or everywhere.

        Args:
            file_path: Absolute path of the file.
            old_string: Text to replace.
            new_string: Text to put in its place.
            replace_all: Replace every occurrence.
        """
        more = {"replace_all": True} if replace_all else {}
        return self._call("Edit", file_path=file_path, old_string=old_string, new_string=new_string, **more)

    def Glob(self, pattern: str, path: str | None = None) -> str:
        """Find files by name.

        Args:
            pattern: Pattern such as **/*.py.
            path: Folder to look in.
        """
        return self._call("Glob", pattern=pattern, path=path)

    def Grep(self, pattern: str, path: str | None = None, output_mode: str | None = None) -> str:
        """Find text in files by a regular expression.

        Args:
            pattern: The regular expression.
            path: File or folder to look in.
            output_mode: One of files_with_matches, content, count.
        """
        return self._call("Grep", pattern=pattern, path=path, output_mode=output_mode)


class OpenHandsEnvironment(_TaskEnvironment):
    """A task with the tools of OpenHands."""

    _harness: HarnessName = "openhands"

    def execute_bash(self, command: str, timeout: float | None = None) -> str:
        """Run a command with bash; the working directory stays between calls.

        Args:
            command: The command line.
            timeout: Longest time in seconds.
        """
        return self._call("execute_bash", command=command, timeout=timeout)

    def str_replace_editor(
        self,
        command: str,
        path: str,
        file_text: str | None = None,
        old_str: str | None = None,
        new_str: str | None = None,
        insert_line: int | None = None,
        view_range: list[int] | None = None,
    ) -> str:
        """View, create and edit files.

        Args:
            command: One of view, create, str_replace, insert, undo_edit.
            path: Absolute path of a file or folder.
            file_text: Text of a new file.
            old_str: Text to replace; it occurs in the file once.
            new_str: Text to put in its place, or to insert.
            insert_line: Line after which to insert.
            view_range: First and last line to view.
        """
        return self._call(
            "str_replace_editor",
            command=command,
            path=path,
            file_text=file_text,
            old_str=old_str,
            new_str=new_str,
            insert_line=insert_line,
            view_range=view_range,
        )

    def think(self, thought: str) -> str:
        """Write a thought down; nothing happens.

        Args:
            thought: The thought.
        """
        return self._call("think", thought=thought)

    def finish(self, message: str) -> str:
        """Say that the work is done.

        Args:
            message: What was done.
        """
        return self._call("finish", message=message)
