"""Call tools on a working copy of a repository, one after the other, and keep what lasts between calls."""

import copy
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tracemill.environments.sandbox.marked_answer import read_marked_answer
from tracemill.environments.sandbox.python_runtime import PACKAGES
from tracemill.environments.sandbox.sandbox import DEFAULT_LIMITS, Limits, Mount, Sandbox
from tracemill.harnesses.core.schema_builders import load_stand_in_tools
from tracemill.records.errors import EnvironmentTaskError
from tracemill.records.message import ErrorKind, Message, ToolCall, ToolSpec

HarnessName = Literal["claude_code", "openhands"]
TOOLS: Mapping[HarnessName, tuple[str, ...]] = {
    "claude_code": ("Bash", "Read", "Write", "Edit", "Glob", "Grep"),
    "openhands": ("execute_bash", "str_replace_editor", "think", "finish"),
}
"""Tools that an environment offers, with the schemas of these agents."""
SYSTEM_PROMPTS: Mapping[HarnessName, str] = {
    "claude_code": (
        "You are a coding agent in a terminal. You work on the repository in /repository with the tools you "
        "are given. Look before you change, check what you changed, and answer without a tool call when you "
        "are done."
    ),
    "openhands": (
        "You are a coding agent that works on a computer through tools. The repository is in /repository. "
        "Look before you change, check what you changed, and call finish when you are done."
    ),
}
REPOSITORY = "/repository"
_SCRIPT = Path(__file__).with_name("run_tool.py")
_INSIDE = "/runner/run_tool.py"
_MOST_BYTES = 64_000_000
"""What a call may print: undo buffers are part of its answer."""


@dataclass(frozen=True)
class ToolResult:
    """The result of a call: the text the agent is shown and, where it failed, the kind of failure."""

    text: str
    failed: bool = False
    error_kind: str | None = None
    malformed: bool = False
    seconds: float = 0.0

    def to_message(self, call: ToolCall) -> Message:
        """Return the message by which the agent is shown the result of its call."""
        return Message(
            "tool",
            self.text,
            tool_call_id=call.id,
            name=call.name,
            is_error=self.failed,
            error_kind=self.error_kind,
        )


def tool_specs(harness: HarnessName) -> tuple[ToolSpec, ...]:
    """Return the tools that an environment offers, as a model is given them."""
    offered = load_stand_in_tools(harness)
    return tuple(replace(offered[name], origin="recorded") for name in TOOLS[harness])


class ToolSession:
    """The tools of an episode in a sandbox; folder and undo buffers last from call to call."""

    def __init__(
        self,
        repository: Path,
        scratch: Path,
        packages: Path,
        harness: HarnessName,
        sandbox: Sandbox,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        """Work on `repository`, a copy that the sandbox may write in, with `scratch` as `/tmp`."""
        self._repository, self._scratch, self._packages = repository, scratch, packages
        self._harness: HarnessName = harness
        if sandbox.name == "unsafe-process":
            raise EnvironmentTaskError(
                "tools need a separate file system",
                "bubblewrap, podman or docker",
                "choose it with --sandbox",
            )
        self._sandbox, self._limits = sandbox, replace(limits, output_bytes=_MOST_BYTES)
        self._state: dict[str, Any] = {"cwd": REPOSITORY, "backups": {}, "seconds": limits.seconds - 5}

    def kept(self) -> Mapping[str, Any]:
        """Return the state of the session beside files: working directory, undo buffers."""
        return copy.deepcopy(self._state)

    def resume(self, kept: Mapping[str, Any]) -> None:
        """Continue with the state of another session, from `kept`."""
        self._state = copy.deepcopy(dict(kept))

    def call(self, call: ToolCall) -> ToolResult:
        """Execute a call; a malformed one gives a failed result, as it would in the agent's own harness."""
        arguments = call.parsed()
        if call.name not in TOOLS[self._harness]:
            return ToolResult(f"Error: No such tool available: {call.name}", True, ErrorKind.TOOL_ERROR, True)
        if arguments is None or arguments.keys() == {"malformed"}:
            text = f"InputValidationError: the arguments of {call.name} are not a JSON object"
            return ToolResult(text, True, ErrorKind.TOOL_ERROR, True)
        marker = secrets.token_hex(16)
        request = {"tool": call.name, "arguments": arguments, "state": self._state, "marker": marker}
        ended = self._sandbox.run(
            [*self._sandbox.python, _INSIDE],
            [
                Mount(self._repository, REPOSITORY, writable=True),
                Mount(self._scratch, "/tmp", writable=True),
                Mount(self._packages, PACKAGES),
                Mount(_SCRIPT, _INSIDE),
            ],
            cwd="/tmp",
            stdin=json.dumps(request).encode(),
            environment={"PYTHONPATH": PACKAGES},
            limits=self._limits,
        )
        if marker not in ended.text:
            kind = ErrorKind.TIMEOUT if ended.ending == "timed_out" else ErrorKind.TOOL_ERROR
            why = ended.ending.replace("_", " ") if ended.ending != "exited" else f"exit code {ended.code}"
            text = f"The call was stopped: {why}"
            return ToolResult(text, True, kind, seconds=ended.seconds)
        answer = read_marked_answer(ended.text, marker)
        try:
            text, failed, kind = str(answer["text"]), bool(answer["failed"]), answer["kind"]
            self._state = {**answer["state"], "seconds": self._limits.seconds - 5}
        except (KeyError, TypeError):  # a command wrote over the answer
            return ToolResult("The call gave no result", True, ErrorKind.TOOL_ERROR, seconds=ended.seconds)
        malformed = failed and text.startswith("InputValidationError")
        return ToolResult(text, failed, str(kind) if kind else None, malformed, ended.seconds)
