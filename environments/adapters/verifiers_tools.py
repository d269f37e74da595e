"""The tools of a task as an MCP server of verifiers: a process for each rollout, on its working copy.

The host makes the working copy and judges it; the folder and the calls travel in the state of the rollout.
"""

# verifiers is installed in an environment of its own: the types of what it gives are not known here.
# pyright: reportMissingImports=false

import asyncio
import functools
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import verifiers.v1 as vf
from pydantic import Field

from tracemill.environments.episodes.environment import ClaudeCodeEnvironment, OpenHandsEnvironment
from tracemill.environments.sandbox.choose_sandbox import choose_sandbox
from tracemill.environments.tools.tool_session import TOOLS, HarnessName, ToolSession
from tracemill.records.message import ToolCall

_SHAPES: dict[HarnessName, type] = {"claude_code": ClaudeCodeEnvironment, "openhands": OpenHandsEnvironment}


class WorkingCopyState(vf.State):
    """The folders of a rollout, made by the host, and its calls so far: names and arguments."""

    folder: str = ""
    packages: str = ""
    calls: list[tuple[str, str]] = Field(default_factory=list)


class TaskToolsConfig(vf.ToolsetConfig):
    """The tools, and the sandbox they run in."""

    tools: HarnessName = "claude_code"
    sandbox: str = "auto"


class TaskTools(vf.Toolset[TaskToolsConfig, WorkingCopyState]):
    """Tools with the names that the agent's own harness gives them."""

    TOOL_PREFIX = None

    def register(self, mcp: Any) -> None:
        """Offer the tools, with the parameters of `ClaudeCodeEnvironment` or `OpenHandsEnvironment`."""
        self._session: ToolSession | None = None
        shape = _SHAPES[self.config.tools]
        for name in TOOLS[self.config.tools]:
            method = getattr(shape, name)
            mcp.add_tool(self._with_state(self._tool(method)), name=name, description=inspect.getdoc(method))

    def _tool(self, method: Callable[..., str]) -> Callable[..., Any]:
        """Wrap a method of an environment as a function that calls this server's session."""

        async def call(**arguments: Any) -> str:
            return await asyncio.to_thread(method, self, **arguments)

        functools.update_wrapper(call, method, updated=())
        signature = inspect.signature(method)
        call.__signature__ = signature.replace(parameters=[*signature.parameters.values()][1:])  # type: ignore[attr-defined]
        return call

    def _call(self, name: str, **arguments: Any) -> str:
        state = self.state
        if self._session is None:
            self._session = self._open(Path(state.folder), Path(state.packages))
        text = json.dumps({key: value for key, value in arguments.items() if value is not None})
        state.calls = [*state.calls, (name, text)]
        return self._session.call(ToolCall(f"call_{len(state.calls)}", name, text)).text

    def _open(self, folder: Path, packages: Path) -> ToolSession:
        sandbox = choose_sandbox(self.config.sandbox)
        repository, scratch = folder / "repository", folder / "tmp"
        for each in (repository, scratch):
            sandbox.hand_over(each)
        return ToolSession(repository, scratch, packages, self.config.tools, sandbox)


if __name__ == "__main__":
    TaskTools.run()
