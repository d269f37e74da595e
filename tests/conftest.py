"""Every test starts from a clean environment: no keys, no proxies, no telemetry, no real services."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

_CLEARED = ("OPENROUTER_API_KEY", "TRACEMILL_OPENROUTER_URL", "HF_TOKEN", "HF_ENDPOINT", "PREFECT_API_URL")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _CLEARED:
        monkeypatch.delenv(name, raising=False)
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("DO_NOT_TRACK", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def free_port() -> int:
    """A port nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="session")
def prefect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """One real Prefect server for the session: the environment of a run that reports to it."""
    home, port = tmp_path_factory.mktemp("prefect"), free_port()
    env = {"PREFECT_HOME": str(home), "DO_NOT_TRACK": "1", "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
    script = Path(sys.executable).parent / "prefect"
    command = [str(script), "server", "start", "--port", str(port), "--no-ui"]
    url = f"http://127.0.0.1:{port}/api"
    with (home / "server.log").open("wb") as log:
        server = subprocess.Popen(
            command, env=dict(os.environ) | env, stdout=log, stderr=log, start_new_session=True
        )
    try:
        _wait_for(url, server, home / "server.log")
        yield env | {"PREFECT_API_URL": url}
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"the Prefect server did not start: {log.read_text()[-500:]}")


@pytest.fixture
def tracemill(prefect_server: dict[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the console script as a user would: `tracemill("run", "--json", OPENROUTER_API_KEY="k")`."""

    def call(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        script = Path(sys.executable).parent / "tracemill"
        env = dict(os.environ) | prefect_server | environment
        command = [str(script), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, env=env, timeout=240, check=False)

    return call
