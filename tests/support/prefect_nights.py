"""A Prefect server and a worker as processes of their own, and what the server knows of their runs."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
from prefect_database import prefect_home

POOL = "tracemill"
_SCRIPT = Path(sys.executable).parent / "tracemill"


class PrefectHouse:
    """A server with its own home on one port, and a worker of the pool `tracemill`; both can be killed."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/api"
        self.env = {
            **os.environ,
            "PREFECT_HOME": str(prefect_home(folder / "prefect")),
            "PREFECT_API_URL": self.url,
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_SERVER_UI_ENABLED": "false",
            "PREFECT_WORKER_QUERY_SECONDS": "2",
            "DO_NOT_TRACK": "1",
            "PYTHONSAFEPATH": "1",
            **env,
        }
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start_server(self) -> None:
        command = [sys.executable, "-m", "uvicorn", "--factory", "prefect.server.api.server:create_app"]
        self._start("server", [*command, "--port", str(self.port), "--log-level", "error"])
        self.wait(self._answers, 180)

    def _answers(self) -> bool:
        with suppress(OSError), urllib.request.urlopen(f"{self.url}/health", timeout=5):
            return True
        return False

    def start_worker(self) -> None:
        command = ["prefect", "worker", "start", "--pool", POOL, "--type", "process"]
        self._start("worker", [sys.executable, "-m", *command])

    def start_schedule(self, config: Path) -> None:
        """`tracemill schedule`, whose time comes once a year."""
        command = [str(_SCRIPT), "schedule", str(config), "--cron", "0 3 1 1 *"]
        self._start("schedule", command)

    def _start(self, name: str, command: list[str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                command, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder
            )

    def kill(self, name: str) -> None:
        """`kill -9` of a process and of everything it started."""
        process = self.running.pop(name)
        below = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.wait()
        for each in below:
            with suppress(psutil.Error):
                each.send_signal(signal.SIGKILL)
        psutil.wait_procs(below, timeout=10)

    def tracemill(self, *arguments: object, cwd: Path | None = None) -> str:
        done = subprocess.run(
            [str(_SCRIPT), *map(str, arguments)],
            env=self.env,
            capture_output=True,
            text=True,
            cwd=cwd or self.folder,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    def post(self, path: str, **body: Any) -> Any:
        """What the server answers; asked again while its SQLite database is locked (503)."""
        url, busy = f"{self.url}/{path}", httpx.codes.SERVICE_UNAVAILABLE
        for _ in range(10):
            answer = httpx.post(url, json=body, timeout=60)
            if answer.status_code != busy:
                break
            time.sleep(1)
        answer.raise_for_status()
        return answer.json()

    def runs(self, flow: str, *states: str) -> list[dict[str, Any]]:
        """The runs of a flow, the oldest first; those in the named states."""
        wanted = {"flows": {"name": {"any_": [flow]}}, "sort": "START_TIME_ASC"}
        found = self.post("flow_runs/filter", **wanted)
        return [run for run in found if not states or run["state_name"] in states]

    def deployments(self, flow: str) -> list[str]:
        """The names of the deployments of a flow."""
        return [each["name"] for each in self.post("deployments/filter", flows={"name": {"any_": [flow]}})]

    def start_run(self, flow: str, deployment: str) -> None:
        """Start a deployment now.

        Prefect emits no event of a run that its scheduler makes. Where it is due within 5 minutes of that,
        automations hear of its later states a quarter of an hour late; these runs they hear of at once.
        """
        found = httpx.get(f"{self.url}/deployments/name/{flow}/{deployment}", timeout=60).json()
        self.post(f"deployments/{found['id']}/create_flow_run", state={"type": "SCHEDULED"})

    def count(self, flow: str) -> Counter[str]:
        """How many runs of a flow are in which state."""
        return Counter(run["state_name"] for run in self.runs(flow))

    def call_dead_after(self, seconds: float) -> None:
        """Let the automations that were deployed wait so long for a heartbeat; Prefect sends one in 30 s."""
        for each in self.post("automations/filter"):
            if each["name"].endswith("close dead runs"):
                each["trigger"]["within"] = seconds
                body = {key: value for key, value in each.items() if key not in ("id", "created", "updated")}
                url = f"{self.url}/automations/{each['id']}"
                self.wait(lambda url=url, body=body: httpx.put(url, json=body, timeout=60).is_success, 60)

    def events(self, name: str) -> list[dict[str, Any]]:
        filter_ = {"event": {"name": [name]}, "occurred": {"since": "2020-01-01T00:00:00Z"}}
        return self.post("events/filter", filter=filter_ | {"order": "ASC"})["events"]

    def artifacts(self, key: str) -> list[dict[str, Any]]:
        return self.post("artifacts/filter", artifacts={"key": {"any_": [key]}})

    def wait(self, ready: Callable[[], Any], seconds: float, every_s: float = 0.5) -> Any:
        until = time.monotonic() + seconds
        while not (found := ready()):
            assert time.monotonic() < until, self.told()
            time.sleep(every_s)
        return found

    def told(self) -> str:
        logs = [path.read_text()[-3000:] for path in self.folder.glob("*.log")]
        return "\n".join(logs)


@contextmanager
def prefect_house(folder: Path, env: dict[str, str]) -> Iterator[PrefectHouse]:
    """A house whose server and worker run; nothing of it is left afterwards."""
    house = PrefectHouse(folder, env)
    try:
        house.start_server()
        yield house
    finally:
        for name in list(house.running):
            house.kill(name)
