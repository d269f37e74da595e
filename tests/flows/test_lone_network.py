"""Nights with shipped settings in a network that has nothing but loopback: nothing tries to leave it.

Every process is seen, whatever it is written in: the schedule, Prefect's server and worker, the runs, the
training and the scanner of secrets.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from lone_network import ABSENT, RESOLVER, LoneNetwork, lone_network
from training_releases import tiny_model

SESSIONS = Path(__file__).resolve().parents[2] / "examples" / "sessions" / "claude_code"
BIN = Path(sys.executable).parent
OF_A_USER = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
TO_PREFECT = {"PREFECT_API_URL": "http://127.0.0.1:4200/api"}
QUIET = {"DO_NOT_TRACK": "1", "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
"""What `docs/nightly.md` wants in the environment of a server and a worker that one starts oneself."""


@pytest.fixture
def network(tmp_path: Path) -> Iterator[LoneNetwork]:
    with lone_network(tmp_path) as made:
        if made is None:
            pytest.skip(ABSENT)
        yield made


def config_of(folder: Path) -> Path:
    """A configuration with simulated teachers, which trains a tiny model on each version."""
    path = folder / "night.toml"
    teachers = "".join(
        f"[[teachers]]\ntype = 'simulated'\nmodel = 'simulated/{name}-a'\n"
        for name in ("deepseek", "kimi", "glm")
    )
    path.write_text(
        f"workspace = 'w'\n[sources]\npaths = ['{SESSIONS}']\nmin_age_minutes = 0\n"
        "[budget]\nmax_total_usd = 1\n[release]\nvalidation = 0\ntest = 0\n"
        f"[training]\nmodel = '{tiny_model(folder / 'tiny')}'\nmethod = 'sft'\nmax_steps = 2\n"
        f"device = 'cpu'\nsimulated = true\n{teachers}"
    )
    return path


@contextmanager
def started(folder: Path, name: str, command: list[str], env: dict[str, str]) -> Iterator[Path]:
    """A command that goes on while the block lasts and is then told to end; gives its log."""
    log = folder / f"{name}.log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            command, env=env, stdout=said, stderr=said, cwd=folder, start_new_session=True
        )
    try:
        yield log
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(60)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(ready: Callable[[], object], logs: list[Path], seconds: float = 600) -> None:
    until = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < until, "\n".join(log.read_text()[-2000:] for log in logs)
        time.sleep(0.5)


def trained(work: Path) -> bool:
    """A training ended with a checkpoint."""
    records = [json.loads(path.read_text()) for path in work.glob("trainings/*/*/record.json")]
    return any(record["state"] == "succeeded" for record in records)


def test_a_packet_that_tries_to_leave_is_seen(network: LoneNetwork) -> None:
    script = (
        "import socket\n"
        "for reach in (\n"
        "    lambda: socket.create_connection(('127.0.0.1', 9), 1),\n"
        "    lambda: socket.create_connection(('198.51.100.7', 443), 1),\n"
        "    lambda: socket.getaddrinfo('telemetry.example', 443),\n"
        "):\n"
        "    try: reach()\n"
        "    except OSError: pass\n"
    )
    subprocess.run(network.inside(sys.executable, "-c", script), check=True)
    left = network.left()  # a packet that nobody answers is sent again
    assert left[0] == "tcp 198.51.100.7:443"
    assert set(left) == {left[0], f"udp {RESOLVER}:53 telemetry.example"}


@pytest.mark.long
@pytest.mark.slow
def test_a_night_of_tracemill_schedule_reaches_nothing_but_loopback(
    network: LoneNetwork, tmp_path: Path
) -> None:
    env = OF_A_USER | {"HOME": str(tmp_path)}
    serve = network.inside(BIN / "tracemill", "schedule", config_of(tmp_path), "--cron", "* * * * *")
    with started(tmp_path, "schedule", serve, env) as log:
        wait_for(lambda: trained(tmp_path / "w"), [log])
    assert "release made" in log.read_text()
    assert network.left() == []


@pytest.mark.long
@pytest.mark.slow
def test_a_night_of_a_server_and_a_worker_reaches_nothing_but_loopback(
    network: LoneNetwork, tmp_path: Path
) -> None:
    env = OF_A_USER | TO_PREFECT | QUIET | {"HOME": str(tmp_path)}
    config = config_of(tmp_path)
    deploy = network.inside(
        *(BIN / "tracemill", "deploy", config, "--cron", "0 3 * * *", "--training-pool", "tracemill")
    )
    harvest = network.inside(BIN / "prefect", "deployment", "run", "harvest/nightly-harvest")
    worker = network.inside(BIN / "prefect", "worker", "start", "--pool", "tracemill")

    def done(command: list[str]) -> bool:
        return subprocess.run(command, env=env, cwd=tmp_path, capture_output=True).returncode == 0

    with started(tmp_path, "server", network.inside(BIN / "prefect", "server", "start"), env) as of_server:
        wait_for(lambda: done(deploy), [of_server])
        with started(tmp_path, "worker", worker, env) as of_worker:
            wait_for(lambda: done(harvest), [of_server])
            wait_for(lambda: trained(tmp_path / "w"), [of_server, of_worker])
    assert "release made" in of_worker.read_text()
    assert network.left() == []
