"""Tasks over OpenEnv: a server and clients as processes of the virtual environment that has it."""

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orchard
import pytest

from tracemill.environments.task import Task

pytestmark = pytest.mark.slow
PYTHON = Path(sys.prefix) / "openenv" / "bin" / "python"
SERVER = "tracemill.environments.adapters.openenv_server"
CLIENT = Path(orchard.__file__).with_name("openenv_round_trip.py")


@pytest.fixture(autouse=True)
def _installed() -> None:
    orchard.sandbox()
    if not (PYTHON.parent.parent / ".ready").exists():
        pytest.skip("NOT RUN: openenv is not in .venv/openenv; `make test-all` puts it there where PyPI is")


@contextmanager
def served(tasks: Path, *options: str) -> Iterator[str]:
    """Serve a folder of tasks on loopback until the end of the block; gives the address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(PYTHON), "-m", SERVER, str(tasks), "--port", str(port), *options]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            assert server.poll() is None, server.stderr.read() if server.stderr else ""
            try:
                with urllib.request.urlopen(f"{url}/health", timeout=5):
                    break
            except OSError:
                time.sleep(0.1)
        yield url
    finally:
        server.terminate()
        server.wait(timeout=30)
        if server.stderr:
            server.stderr.close()


def test_a_client_works_on_a_task_over_a_websocket(orchard_tasks: list[Task]) -> None:
    task = orchard_tasks[0]
    path = sorted(each for each in task.original.rglob("*.py"))[0]
    inside = f"/repository/{path.relative_to(task.original).as_posix()}"
    with served(task.folder.parent) as url:
        with urllib.request.urlopen(f"{url}/schema") as answer:
            schema = json.loads(answer.read())
        ran = subprocess.run(
            [str(PYTHON), str(CLIENT), url, task.name, inside],
            input=path.read_text(),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert {"error_kind", "hint_template_key"} <= schema["observation"]["properties"].keys()
    found = json.loads(ran.stdout)
    names = ["Bash", "Read", "Write", "Edit", "Glob", "Grep", "finish"]
    assert [name for name, _ in found["tools"]] == names == found["mcp"]
    assert {"command", "timeout"} <= set(found["tools"][0][1])
    assert found["asked"] == [task.texts["detailed"], None, False]
    assert found["steps"] == [
        [1, "Exit code 3\n/tmp", "exit_code", "Bash.exit_code", None, False],
        [2, found["steps"][1][1], "timeout", "Bash.timeout", None, False],
        [3, "Error: No such tool available: Launch", "tool_error", "unknown_tool", None, False],
        [
            4,
            "InputValidationError: the arguments of Bash are not a JSON object",
            "tool_error",
            "malformed_arguments",
            None,
            False,
        ],
        [5, found["steps"][4][1], None, None, None, False],
        [6, "", None, None, 1.0, True],
    ]
    assert found["end"] == {
        "passed": len(task.exam.fail_to_pass), "broken": 0, "hacked": False, "findings": []
    }  # fmt: skip
    assert found["replayed"] is True
    assert found["state"] == ["one", 6, task.name, True, 1.0, 2 + 5 * 2 + 1]
    assert "no episode is under way" in found["after"]
    assert found["hack"] is None
    assert found["hacked"] == [0.0, "verdict.hack", ["hack: reads /proc (call 1, Bash)"]]
    assert "there is no task 'nothing'" in found["unknown"]
    assert "by-mcp" in found["mcp_call"]
    assert found["at_once"] == ["0", "1", "2"]


def test_a_folder_without_tasks_is_refused_in_one_line(tmp_path: Path) -> None:
    ran = subprocess.run(
        [str(PYTHON), "-m", SERVER, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2
    assert ran.stderr.splitlines() == [
        f"tracemill: {tmp_path} holds no task; expected folders that `tracemill env make` wrote"
    ]
