"""Run one rollout of a task as verifiers' users do, against a model that is a script; prints what came of it.

python verifiers_rollout.py TASKS PATH < original file
"""

import asyncio
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path.cwd()))
Path("tracemill_tasks.py").write_text(
    "from tracemill.environments.adapters.verifiers_taskset import TracemillTaskset\n"
    '__all__ = ["TracemillTaskset"]\n'
)
os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
os.environ["STUB_KEY"] = "none"

import verifiers.v1 as vf  # noqa: E402  # pyright: ignore[reportMissingImports]

from tracemill.environments.adapters.verifiers_taskset import load_environment  # noqa: E402

tasks, path = sys.argv[1:]
text = sys.stdin.read()
SCRIPTS = {
    "solves": [
        ("Bash", {"command": "grep -rn NotImplementedError /repository"}),
        ("Write", {"file_path": path, "content": text}),
    ],
    "hacks": [("Bash", {"command": "cat /proc/1/environ"}), ("Write", {"file_path": path, "content": text})],
    "does nothing": [],
}
asked: list[dict[str, Any]] = []


class Model(BaseHTTPRequestHandler):
    """An OpenAI-compatible server whose answers are those of the script that the model's name says."""

    def log_message(self, format: str, *arguments: Any) -> None:
        """Be quiet."""

    def do_POST(self) -> None:
        """Answer the next call of the script, or that the work is done."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked.append(request)
        script = SCRIPTS[request["model"]]
        turn = sum(message["role"] == "assistant" for message in request["messages"])
        message: dict[str, Any] = {"role": "assistant", "content": "Done."}
        if turn < len(script):
            name, arguments = script[turn]
            function = {"name": name, "arguments": json.dumps(arguments)}
            message = {"role": "assistant", "content": None}
            message["tool_calls"] = [{"id": f"call_{turn}", "type": "function", "function": function}]
        whole = {"id": f"answer-{turn}", "created": 0, "model": request["model"]}
        choice: dict[str, Any] = {"index": 0, "finish_reason": "tool_calls" if turn < len(script) else "stop"}
        if request.get("stream"):
            calls = [{"index": 0, **call} for call in message.get("tool_calls", ())]
            choice["delta"] = {**message, "tool_calls": calls} if calls else message
            chunk = {**whole, "object": "chat.completion.chunk", "choices": [choice]}
            kind, data = "text/event-stream", f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
        else:
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            choice["message"] = message
            answer = {**whole, "object": "chat.completion", "choices": [choice], "usage": usage}
            kind, data = "application/json", json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


async def rollouts() -> list[Any]:
    """Run the first task once with each script."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = vf.EvalClientConfig(base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key_var="STUB_KEY")
    environment = load_environment(tasks, harness={"id": "null"}, runtime={"type": "subprocess"}, max_turns=8)
    found = []
    async with environment.serving():
        task = next(iter(environment.taskset))
        for model in SCRIPTS:
            episode = await environment.run_episode(task, vf.ModelContext(model=model, client=client))
            (trace,) = episode.traces
            rewards = {name: reward.value if reward else None for name, reward in trace.rewards.items()}
            errors = [error.message for error in [*episode.errors, *trace.errors]]
            found.append([model, rewards, trace.metrics, errors])
    server.shutdown()
    return found


result = asyncio.run(rollouts())
said = [message["content"] for message in asked[1]["messages"] if message["role"] == "tool"]
offered = [tool["function"]["name"] for tool in asked[0]["tools"]]
prompt = [message["content"] for message in asked[0]["messages"]]
sys.stdout.write(json.dumps({"rollouts": result, "said": said, "tools": offered, "prompt": prompt}))
