"""A Prefect server that a killed run leaves behind is ended by the next run, and no other process is."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from console_says import INTERRUPTED
from prefect_database import prefect_home

from tracemill.flows.runtime.orphan_servers import OWNER, end_leftover_servers, tag_possible_orphan_servers

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "sessions" / "claude_code"
SERVER = "prefect.server.api.server:create_app"
Started = list[subprocess.Popen[bytes]]


@pytest.fixture
def started() -> Iterator[Started]:
    found: Started = []
    yield found
    for process in found:
        process.kill()
        process.wait()


def _stands_in(started: Started, owner: str | None, *words: str) -> subprocess.Popen[bytes]:
    """A process that waits, with a server's name among its arguments."""
    environ = {**os.environ, OWNER: owner} if owner else {k: v for k, v in os.environ.items() if k != OWNER}
    code = "import sys, time; print(1, flush=True); time.sleep(300)"
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", code, *words], env=environ, stdout=subprocess.PIPE
    )
    started.append(process)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    return process


def test_only_servers_of_runs_that_are_gone_are_ended(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(OWNER, raising=False)
    tag_possible_orphan_servers()
    alive = os.environ[OWNER]
    pid, ticks = alive.split(":")
    gone, reused = "4194305:77", f"{pid}:{int(ticks) - 1}"  # no process has that id; another had ours
    left = [_stands_in(started, owner, SERVER) for owner in (gone, reused)]
    others = [_stands_in(started, alive, SERVER), _stands_in(started, None, SERVER)]
    others += [_stands_in(started, gone, "something.else"), _stands_in(started, "no:number", SERVER)]
    assert {process.pid for process in left} <= set(end_leftover_servers())
    assert [process.wait(10) for process in left] == [-15, -15]
    assert [process.poll() for process in others] == [None] * 4


def _servers_of(process: subprocess.Popen[bytes]) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            owned = f"{OWNER}={process.pid}:".encode() in (folder / "environ").read_bytes()
            if owned and SERVER.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


def _command(folder: Path) -> tuple[list[str | Path], dict[str, str]]:
    """A run with a Prefect server of its own, and its environment."""
    environ = {k: v for k, v in os.environ.items() if k != "PREFECT_API_URL"}
    environ |= {"PREFECT_HOME": str(prefect_home(folder / "prefect")), "TRACEMILL_KINGFISHER": "none"}
    program = Path(sys.executable).parent / "tracemill"
    return [program, "run", "--path", EXAMPLES, "--workspace", folder / "w"], environ


def _wait_for_server(run: subprocess.Popen[bytes]) -> list[int]:
    while not (servers := _servers_of(run)):
        assert run.poll() is None
        time.sleep(0.05)
    return servers


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_told_to_end_leaves_no_server_also_before_its_flow_begins(
    tmp_path: Path, number: signal.Signals
) -> None:
    """A server that is left would hold the pipe that the command writes to."""
    command, environ = _command(tmp_path)
    ended = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    _wait_for_server(ended)
    ended.send_signal(number)
    said, wrong = ended.communicate(timeout=60)
    assert (ended.returncode, said) == (130, b"")
    assert wrong.endswith(INTERRUPTED)
    assert _servers_of(ended) == []


@pytest.mark.slow
@pytest.mark.long
def test_the_server_of_a_killed_run_is_ended_by_the_next_run(tmp_path: Path) -> None:
    command, environ = _command(tmp_path)
    killed = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    servers = _wait_for_server(killed)
    killed.kill()
    killed.wait()
    assert _servers_of(killed) == servers
    subprocess.run(command, env=environ, stdout=subprocess.DEVNULL, check=True)
    assert _servers_of(killed) == []
