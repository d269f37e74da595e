"""An OpenAI-compatible server behind which the scripted teachers of a regime answer.

It is told nothing but what any server is told: the model and the messages. It plays the task of the messages'
ticket again up to where they end, and answers with the action of the model's policy there.
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from benchmarks.teaching.formats import actions_of_messages, call_arguments
from benchmarks.teaching.policies import REGIMES, Teacher, replay
from benchmarks.teaching.worlds.world import Action, World

PRICES = {"prompt_usd": 0.5, "completion_usd": 2.0}
"""USD per million tokens: about what open-weight coding models are listed at."""
_TICKET = re.compile(r"#(\d+)")


def answer(world: World, teacher: Teacher, messages: list[dict[str, Any]]) -> Action:
    """Return what a teacher does behind messages. Raises ValueError where they name no ticket."""
    text, actions = actions_of_messages(messages)
    found = _TICKET.search(text)
    if found is None:
        raise ValueError("the messages name no ticket")
    task = int(found[1])
    return teacher.action(world, replay(world, task, actions), (world.name, task, len(actions)))


def completion(model: str, action: Action, prompt_chars: int) -> dict[str, Any]:
    """Return the body of a chat completion that does an action."""
    message: dict[str, Any] = {"role": "assistant", "content": action.text}
    if action.tool:
        function = {"name": action.tool, "arguments": call_arguments(action)}
        message["tool_calls"] = [{"id": "call_t", "type": "function", "function": function}]
    completion_tokens = len(json.dumps(message)) // 4
    usage = {"prompt_tokens": prompt_chars // 4, "completion_tokens": completion_tokens}
    usage["total_tokens"] = usage["prompt_tokens"] + completion_tokens
    reason = "tool_calls" if action.tool else "stop"
    choice = {"index": 0, "finish_reason": reason, "message": message}
    body = {"id": "gen-teaching", "object": "chat.completion", "created": 0, "model": model}
    return {**body, "choices": [choice], "usage": usage}


@contextmanager
def teacher_server(world: World, regime: str) -> Iterator[str]:
    """Serve the teachers of a regime on a free port of the loopback; give the base URL."""
    teachers = {teacher.name: teacher for teacher in REGIMES[regime]}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            listed = [{"id": name, "object": "model"} for name in teachers]
            self._send(200, {"object": "list", "data": listed})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            asked = json.loads(body)
            try:
                action = answer(world, teachers[asked["model"].split("/")[-1]], asked["messages"])
            except (KeyError, ValueError) as error:
                self._send(400, {"error": {"message": f"{type(error).__name__}: {error}"}})
                return
            self._send(200, completion(asked["model"], action, len(body)))

        def _send(self, status: int, value: dict[str, Any]) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            return

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
