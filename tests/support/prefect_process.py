"""A real Prefect server and its worker, as processes of their own."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from prefect_database import prefect_home
from teacher_chains import free_port

_QUIET = {"DO_NOT_TRACK": "1", "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "PREFECT_UI_ENABLED": "0"}


@contextmanager
def prefect_serving(home: Path, **settings: str) -> Iterator[dict[str, str]]:
    """The environment of a client of a server with its database in `home`."""
    port = free_port()
    env = {"PREFECT_HOME": str(home), "PREFECT_API_URL": f"http://127.0.0.1:{port}/api", **_QUIET}
    command = [sys.executable, "-m", "uvicorn", "--factory", "prefect.server.api.server:create_app"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--log-level", "error"]
    prefect_home(home)
    with _running(command, home / "server.log", dict(os.environ) | env | settings) as server:
        _wait_for(f"{env['PREFECT_API_URL']}/health", server, home / "server.log")
        yield env


@contextmanager
def worker_of(pool: str, env: dict[str, str]) -> Iterator[None]:
    """A process worker of a pool."""
    script = str(Path(sys.executable).parent / "prefect")
    log = Path(env["PREFECT_HOME"]) / "worker.log"
    command = [script, "worker", "start", "--pool", pool, "--type", "process"]
    with _running(command, log, dict(os.environ) | env):
        yield


@contextmanager
def _running(command: list[str], log: Path, env: dict[str, str]) -> Iterator["subprocess.Popen[bytes]"]:
    with log.open("ab") as said:
        process = subprocess.Popen(command, env=env, stdout=said, stderr=said, start_new_session=True)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_for(url: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline and server.poll() is None:
        with suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.2)
    raise RuntimeError(f"the Prefect server did not start: {log.read_text()[-500:]}")
