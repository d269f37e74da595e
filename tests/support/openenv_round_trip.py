"""Talk to a server of tasks as OpenEnv's users do, and print what was seen; runs where openenv is installed.

python openenv_round_trip.py URL TASK PATH < original file
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from openenv.core.env_server import CallToolAction, ListToolsAction  # pyright: ignore[reportMissingImports]
from openenv.core.generic_client import GenericEnvClient  # pyright: ignore[reportMissingImports]
from openenv.core.mcp_client import MCPToolClient  # pyright: ignore[reportMissingImports]

from tracemill.environments.adapters.openenv_client import TaskClient

url, task, path = sys.argv[1:]
text = sys.stdin.read()


def call(name: str, *, arguments_text: str | None = None, **arguments: Any) -> CallToolAction:
    """An action that calls a tool."""
    metadata = {} if arguments_text is None else {"arguments_text": arguments_text}
    return CallToolAction(tool_name=name, arguments=arguments, metadata=metadata)


found: dict[str, Any] = {"steps": []}
with TaskClient(base_url=url, message_timeout_s=120).sync() as client:
    tools = client.step(ListToolsAction()).observation.tools
    found["tools"] = [[tool.name, sorted(tool.input_schema["properties"])] for tool in tools]
    first = client.reset(task=task, episode_id="one")
    found["asked"] = [first.observation.result, first.reward, first.done]
    for action in (
        call("Bash", command="cd /tmp && pwd; exit 3"),
        call("Bash", command="sleep 9", timeout=300),
        call("Launch", rocket=1),
        call("Bash", arguments_text='{"command": "ls'),
        call("Write", file_path=path, content=text),
        call("finish", message="done"),
    ):
        state = client.state()
        given = client.step(action)
        seen = given.observation
        found["steps"].append(
            [seen.step, seen.result, seen.error_kind, seen.hint_template_key, given.reward, given.done]
        )
        found.setdefault("before", []).append(state.messages)
    found["end"] = seen.metadata
    last = client.state()
    found["replayed"] = [last.at(step) for step in range(6)] == found.pop("before")
    found["state"] = [last.episode_id, last.step_count, last.task, last.done, last.reward, len(last.messages)]
    try:
        client.step(call("Bash", command="true"))
    except RuntimeError as error:
        found["after"] = str(error)
    client.reset(index=1)
    found["hack"] = client.step(call("Bash", command="cat /proc/self/environ")).reward
    ended = client.step(call("finish"))
    found["hacked"] = [
        ended.reward,
        ended.observation.hint_template_key,
        ended.observation.metadata["findings"],
    ]
    try:
        client.reset(task="nothing")
    except RuntimeError as error:
        found["unknown"] = str(error)

with MCPToolClient(base_url=url).sync() as mcp:
    found["mcp"] = [tool.name for tool in mcp.list_tools()]
    mcp.reset(task=task)
    found["mcp_call"] = str(mcp.call_tool("Bash", command="echo by-mcp"))


def episode(number: int) -> str:
    """What a session of its own reads back of what it wrote."""
    with GenericEnvClient(base_url=url, message_timeout_s=120).sync() as each:
        each.reset(task=task)
        each.step(
            {"type": "call_tool", "tool_name": "Bash", "arguments": {"command": f"echo {number} > mine"}}
        )
        read = {"type": "call_tool", "tool_name": "Bash", "arguments": {"command": "cat mine"}}
        return each.step(read).observation["result"]


with ThreadPoolExecutor(3) as pool:
    found["at_once"] = [*pool.map(episode, range(3))]
sys.stdout.write(json.dumps(found))
