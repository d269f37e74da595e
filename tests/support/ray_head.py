"""A Ray cluster of one machine for tests: a head in a process of its own, gone afterwards."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TOKEN = "t0ken-of-the-cluster" * 3
ENVIRONMENT = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN, "RAY_USAGE_STATS_ENABLED": "0"}


@contextmanager
def head(cpus: int, **environment: str) -> Iterator[str]:
    """The address of a cluster with so many CPUs; its workers have the environment as well."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = tempfile.mkdtemp(prefix="tm-", dir="/tmp")
    ray = str(Path(sys.executable).parent / "ray")
    command = [ray, "start", "--head", "--block", "--node-ip-address=127.0.0.1", f"--port={port}"]
    command += [f"--num-cpus={cpus}", "--num-gpus=0", f"--object-store-memory={100 * 1024 * 1024}"]
    command += ["--include-dashboard=false", f"--temp-dir={folder}", "--disable-usage-stats"]
    env = {**os.environ, **ENVIRONMENT, **environment}
    with (Path(folder) / "said").open("wb") as said:
        process = subprocess.Popen(command, env=env, stdout=said, stderr=said, start_new_session=True)
    try:
        _wait_for(port, process, Path(folder) / "said")
        yield f"127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(port: int, process: "subprocess.Popen[bytes]", said: Path) -> None:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline and process.poll() is None:
        if "Ray runtime started" in said.read_text(errors="replace"):
            return
        time.sleep(0.2)
    raise RuntimeError(f"Ray did not start: {said.read_text(errors='replace')[-1000:]}")
