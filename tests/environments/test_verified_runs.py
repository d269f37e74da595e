"""`tracemill run` on episodes whose disputed steps the environment decides."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orchard
import pytest
from datasets import load_dataset

from tracemill.environments.episodes.episode_folder import write_sessions
from tracemill.environments.episodes.run_episode import run_episodes
from tracemill.environments.task import Task
from tracemill.records.message import Message, ToolCall

MODELS = {"right": "deepseek", "wrong": "qwen", "looks": "glm"}


def bash(command: str) -> dict[str, Any]:
    return {"name": "Bash", "arguments": json.dumps({"command": command})}


def spoil(task: Task) -> dict[str, Any]:
    return bash(f"sed -i 's/raise NotImplementedError/return 0/' {_file(task)}")


def _file(task: Task) -> str:
    return f"/repository/{task.deleted[0].partition('::')[0]}"


def _commands(task: Task) -> dict[str, dict[str, Any]]:
    """What each teacher does at every step of a task."""
    text = (task.original / task.deleted[0].partition("::")[0]).read_text()
    wrong = {"file_path": _file(task), "old_string": "raise NotImplementedError", "new_string": "return None"}
    return {
        "right": {
            "name": "Write",
            "arguments": json.dumps({"file_path": _file(task), "content": text}),
        },
        "wrong": {"name": "Edit", "arguments": json.dumps(wrong)},
        "looks": {"name": "Read", "arguments": json.dumps({"file_path": _file(task)})},
    }


@pytest.fixture
def teachers(orchard_tasks: list[Task]) -> Iterator[str]:
    """A server behind which three teachers never agree; it tells tasks by their text."""
    answers = {task.texts["detailed"]: _commands(task) for task in orchard_tasks}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send({"object": "list", "data": [{"id": name, "object": "model"} for name in MODELS]})

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            text = json.dumps(asked["messages"])
            [commands] = [each for known, each in answers.items() if json.dumps(known)[1:-1] in text]
            call = {"id": "call_t", "type": "function", "function": commands[asked["model"]]}
            message = {"role": "assistant", "content": "", "tool_calls": [call]}
            choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
            usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
            head = {"id": "gen-t", "object": "chat.completion", "created": 0, "model": asked["model"]}
            self._send({**head, "choices": [choice], "usage": usage})

        def _send(self, value: dict[str, Any]) -> None:
            data = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    server.server_close()


@pytest.mark.slow
@pytest.mark.long
def test_disputes_of_episodes_are_settled_by_execution(
    orchard_tasks: list[Task], teachers: str, tmp_path: Path
) -> None:
    """An agent spoils a task and stops; of three teachers that differ, the one that is right is labelled."""
    tasks = orchard_tasks[:2]

    def policy(task: Task):
        def answer(messages, tools):
            if len(messages) > 2:
                return Message("assistant", "Done.")
            made = spoil(task)
            return Message("assistant", "", (ToolCall("call_0", made["name"], made["arguments"]),))

        return answer

    episodes = [*run_episodes(tasks, policy, orchard.sandbox, at_once=2)]
    assert [episode.reward < 1.0 for episode in episodes] == [True, True]
    write_sessions(episodes, tmp_path / "episodes")
    config = tmp_path / "run.toml"
    lines = ["workspace = 'w'", "[sources]", "paths = ['episodes']", "min_age_minutes = 0"]
    lines += ["[budget]", "max_total_usd = 1", "[release]", "name = 'verified'"]
    lines += ["[verified]", "environment = 'episodes'", f"tasks = '{tasks[0].folder.parent}'", "runs = 2"]
    for model, family in MODELS.items():
        lines += ["[[teachers]]", "type = 'openai_compatible'", f"model = '{model}'", f"family = '{family}'"]
        lines += [f"base_url = '{teachers}'", "local = true", "max_tokens = 1000"]
        lines += ["prices = { prompt_usd = 0.5, completion_usd = 2.0 }"]
    config.write_text("\n".join(lines) + "\n")
    command = [str(Path(sys.executable).with_name("tracemill")), "run", str(config), "--yes", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    rows = load_dataset(record["release"]["path"], "dpo")["train"]
    verified = [row for row in rows if row["label_source"] == "verified"]
    assert len(verified) == 2 * 2  # at the edit and at the end of each episode
    for row in verified:
        assert row["chosen"][0]["tool_calls"][0]["function"]["name"] == "Write"
        assert row["verified"] == "execution"
        assert row["evidence"].startswith("episodes 1: 2 of 2 against 0 of 2 executions succeed")
